"""Validates the fields of a heartbeat, whatever its group is.

Knows nothing of groups. The rules and their order are those of Apache Kafka 4.3
(``GroupCoordinatorService.throwIfStreamsGroupHeartbeatRequestIs...``).
"""

from collections.abc import Mapping

from barnabas.errors import InvalidRequest, StreamsInvalidTopology
from barnabas.groups.streams.configuring import ConfiguredSubtopology
from barnabas.groups.streams.messages import JOINING, LEAVING_STATIC, Heartbeat, TaskIds
from barnabas.wire.messages.group_records import StreamsGroupTopologyValue


def validate(request: Heartbeat) -> None:
    """Validates a heartbeat.

    :raises KafkaError: the request is refused
    """
    _validate_features(request)
    for name, value in (
        ("member id", request.member_id),
        ("group id", request.group_id),
        ("instance id", request.instance_id),
        ("rack id", request.rack_id),
    ):
        if value is not None and not value.strip():
            raise InvalidRequest(f"The {name} must not be empty.")
    if request.member_epoch == JOINING:
        _validate_joining(request)
    elif request.member_epoch < LEAVING_STATIC:
        raise InvalidRequest(f"{request.member_epoch} is not a member epoch.")
    elif request.member_epoch == LEAVING_STATIC:
        raise InvalidRequest("Only a member with an instance id may leave for a while.")
    roles = (request.active, request.standby, request.warmup)
    if any(each is None for each in roles) and any(each is not None for each in roles):
        raise InvalidRequest("A member must say which tasks it owns in all roles, or in none.")
    if request.member_epoch != JOINING and request.topology is not None:
        raise InvalidRequest("Only a member that joins may bring a topology.")


def _validate_features(request: Heartbeat) -> None:
    """Refuses what the protocol has fields for, and Apache Kafka's brokers do not support."""
    if request.instance_id is not None:
        raise InvalidRequest("Streams groups do not have static members yet.")
    if request.tells_offsets:
        raise InvalidRequest("Offsets of tasks are not taken yet.")
    if request.warmup:
        raise InvalidRequest("There are no warm-up tasks yet.")
    if request.topology is not None and any(each.source_topic_regex for each in request.topology.subtopologies):
        raise InvalidRequest("Source topics cannot be given by regular expressions yet.")


def _validate_joining(request: Heartbeat) -> None:
    if request.rebalance_timeout_ms == -1:
        raise InvalidRequest("A member that joins must say how long it may take to give up tasks.")
    if any(each is None or each for each in (request.active, request.standby, request.warmup)):
        raise InvalidRequest("A member that joins owns no tasks, and must say so by empty lists.")
    if request.topology is None:
        raise InvalidRequest("A member that joins must bring a topology.")
    validate_changelogs(request.topology)


def validate_changelogs(topology: StreamsGroupTopologyValue) -> None:
    """Validates changelog topics.

    :raises StreamsInvalidTopology: one has a partition count, which follows from the tasks
    """
    for subtopology in topology.subtopologies:
        for each in subtopology.state_changelog_topics:
            if each.partitions != 0:
                raise StreamsInvalidTopology(f"Changelog {each.name} must not say how many partitions it has.")


def validate_owned(request: Heartbeat, subtopologies: Mapping[str, ConfiguredSubtopology]) -> None:
    """Validates the tasks that the member reports.

    :raises InvalidRequest: one of them does not exist
    """
    for tasks in (request.active, request.standby, request.warmup):
        _validate_tasks(tasks or (), subtopologies)


def _validate_tasks(tasks: TaskIds, subtopologies: Mapping[str, ConfiguredSubtopology]) -> None:
    for subtopology, partitions in tasks:
        found = subtopologies.get(subtopology)
        if found is None:
            raise InvalidRequest(f"The topology has no subtopology {subtopology}.")
        for each in partitions:
            if not 0 <= each < found.tasks:
                raise InvalidRequest(f"Subtopology {subtopology} has {found.tasks} tasks, and no task {each}.")

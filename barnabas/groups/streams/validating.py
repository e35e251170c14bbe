"""What a heartbeat must look like, whatever group it is for.

Knows nothing of groups. The rules, and the order in which they are looked at, are those of Apache Kafka 4.3
(``GroupCoordinatorService.throwIfStreamsGroupHeartbeatRequestIs...``).
"""

from collections.abc import Mapping

from barnabas.errors import InvalidRequest, StreamsInvalidTopology
from barnabas.groups.streams.configuring import ConfiguredSubtopology
from barnabas.groups.streams.messages import JOINING, LEAVING_FOR_A_WHILE, Heartbeat, TaskIds
from barnabas.wire.messages.group_records import StreamsGroupTopologyValue


def validate(ask: Heartbeat) -> None:
    """:raises KafkaError: it is not to be looked at any further"""
    _validate_features(ask)
    for name, value in (
        ("member id", ask.member_id),
        ("group id", ask.group_id),
        ("instance id", ask.instance_id),
        ("rack id", ask.rack_id),
    ):
        if value is not None and not value.strip():
            raise InvalidRequest(f"The {name} must not be empty.")
    if ask.member_epoch == JOINING:
        _validate_joining(ask)
    elif ask.member_epoch < LEAVING_FOR_A_WHILE:
        raise InvalidRequest(f"{ask.member_epoch} is not a member epoch.")
    elif ask.member_epoch == LEAVING_FOR_A_WHILE:
        raise InvalidRequest("Only a member with an instance id may leave for a while.")
    roles = (ask.active, ask.standby, ask.warmup)
    if any(each is None for each in roles) and any(each is not None for each in roles):
        raise InvalidRequest("A member must say which tasks it owns in all roles, or in none.")
    if ask.member_epoch != JOINING and ask.topology is not None:
        raise InvalidRequest("Only a member that joins may bring a topology.")


def _validate_features(ask: Heartbeat) -> None:
    """What Kafka's protocol has a place for, and its brokers do not take."""
    if ask.instance_id is not None:
        raise InvalidRequest("Streams groups do not have static members yet.")
    if ask.tells_offsets:
        raise InvalidRequest("Offsets of tasks are not taken yet.")
    if ask.warmup:
        raise InvalidRequest("There are no warm-up tasks yet.")
    if ask.topology is not None and any(each.source_topic_regex for each in ask.topology.subtopologies):
        raise InvalidRequest("Source topics cannot be given by regular expressions yet.")


def _validate_joining(ask: Heartbeat) -> None:
    if ask.rebalance_timeout_ms == -1:
        raise InvalidRequest("A member that joins must say how long it may take to give up tasks.")
    if any(each is None or each for each in (ask.active, ask.standby, ask.warmup)):
        raise InvalidRequest("A member that joins owns no tasks, and must say so by empty lists.")
    if ask.topology is None:
        raise InvalidRequest("A member that joins must bring a topology.")
    validate_changelogs(ask.topology)


def validate_changelogs(topology: StreamsGroupTopologyValue) -> None:
    """:raises StreamsInvalidTopology: a changelog has a number of partitions, which follows from the tasks"""
    for subtopology in topology.subtopologies:
        for each in subtopology.state_changelog_topics:
            if each.partitions != 0:
                raise StreamsInvalidTopology(f"Changelog {each.name} must not say how many partitions it has.")


def validate_owned(ask: Heartbeat, subtopologies: Mapping[str, ConfiguredSubtopology]) -> None:
    """:raises InvalidRequest: the member owns a task that there is not"""
    for tasks in (ask.active, ask.standby, ask.warmup):
        _validate_tasks(tasks or (), subtopologies)


def _validate_tasks(tasks: TaskIds, subtopologies: Mapping[str, ConfiguredSubtopology]) -> None:
    for subtopology, partitions in tasks:
        found = subtopologies.get(subtopology)
        if found is None:
            raise InvalidRequest(f"The topology has no subtopology {subtopology}.")
        for each in partitions:
            if not 0 <= each < found.tasks:
                raise InvalidRequest(f"Subtopology {subtopology} has {found.tasks} tasks, and no task {each}.")

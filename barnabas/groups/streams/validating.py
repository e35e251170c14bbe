"""Validates the fields of a heartbeat independently of its group.

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
        ("MemberId", request.member_id),
        ("GroupId", request.group_id),
        ("InstanceId", request.instance_id),
        ("RackId", request.rack_id),
    ):
        if value is not None and not value.strip():
            raise InvalidRequest(f"{name} can't be empty.")
    if request.member_epoch == JOINING:
        _validate_joining(request)
    elif request.member_epoch < LEAVING_STATIC:
        raise InvalidRequest(f"MemberEpoch is {request.member_epoch}, but must be greater than or equal to -2.")
    elif request.member_epoch == LEAVING_STATIC:
        raise InvalidRequest("InstanceId can't be null.")
    roles = (request.active, request.standby, request.warmup)
    if any(each is None for each in roles) and any(each is not None for each in roles):
        raise InvalidRequest("If one task-type is non-null, all must be non-null.")
    if request.member_epoch != JOINING and request.topology is not None:
        raise InvalidRequest("Topology can only be provided when (re-)joining.")


def _validate_features(request: Heartbeat) -> None:
    """Refuses what the protocol has fields for, and Apache Kafka's brokers do not support."""
    if request.instance_id is not None:
        raise InvalidRequest("Static membership is not yet supported.")
    if request.unsupported_offsets is not None:
        raise InvalidRequest(f"{request.unsupported_offsets} are not supported yet.")
    if request.warmup:
        raise InvalidRequest("WarmupTasks are not supported yet.")
    if request.topology is not None and any(each.source_topic_regex for each in request.topology.subtopologies):
        raise InvalidRequest("Regular expressions for source topics are not supported yet.")


def _validate_joining(request: Heartbeat) -> None:
    if request.rebalance_timeout_ms == -1:
        raise InvalidRequest("RebalanceTimeoutMs must be provided in first request.")
    owned = {"ActiveTasks": request.active, "StandbyTasks": request.standby, "WarmupTasks": request.warmup}
    for name, tasks in owned.items():
        if tasks is None or tasks:
            raise InvalidRequest(f"{name} must be empty when (re-)joining.")
    if request.topology is None:
        raise InvalidRequest("Topology must be non-null when (re-)joining.")
    validate_changelogs(request.topology)


def validate_changelogs(topology: StreamsGroupTopologyValue) -> None:
    """Validates changelog topics.

    :raises StreamsInvalidTopology: one has a partition count, which follows from the tasks
    """
    for subtopology in topology.subtopologies:
        for each in subtopology.state_changelog_topics:
            if each.partitions != 0:
                raise StreamsInvalidTopology(
                    f"Changelog topic {each.name} must have an undefined partition count, "
                    f"but it is set to {each.partitions}."
                )


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
            raise InvalidRequest(f"Subtopology {subtopology} does not exist in the topology.")
        for each in partitions:
            if not 0 <= each < found.tasks:
                raise InvalidRequest(
                    f"Task {each} for subtopology {subtopology} is invalid. "
                    f"Number of tasks for this subtopology: {found.tasks}"
                )

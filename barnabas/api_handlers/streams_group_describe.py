"""StreamsGroupDescribe (API key 89): the topology of streams groups, their members and tasks (KIP-1071).

Knows nothing of how tasks are assigned.
"""

from collections.abc import Iterable, Mapping, Sequence

from barnabas.api_handlers.context import Context
from barnabas.api_handlers.describe_groups import GROUP_OPERATIONS
from barnabas.api_handlers.outcome import NOT_REQUESTED
from barnabas.api_handlers.rebalance_protocols import STREAMS, require_protocol
from barnabas.api_handlers.registry import api
from barnabas.errors import GroupIdNotFound, InvalidGroupId, KafkaError
from barnabas.groups.streams.configuring import ConfiguredTopology, InternalTopic
from barnabas.groups.streams.member import Member
from barnabas.groups.streams.messages import DescribedGroup as GroupDescription
from barnabas.groups.streams.tasks import Target, Tasks
from barnabas.groups.streams.topology import Topology
from barnabas.wire.messages.group_records import StreamsGroupTopologyValue
from barnabas.wire.messages.streams_group_describe import StreamsGroupDescribeRequest, StreamsGroupDescribeResponse

Response = StreamsGroupDescribeResponse
DescribedGroup = Response.DescribedGroup

NOT_STORED, AVAILABLE = 1, 3
"""The status of the topology description; 0 if it was not requested (KIP-1331)."""

ASSIGNOR = "sticky"


@api(StreamsGroupDescribeRequest)
def streams_group_describe(request: StreamsGroupDescribeRequest, context: Context) -> Response:
    """Describes each group."""
    try:
        require_protocol(STREAMS, context)
    except KafkaError as error:
        return Response(groups=[_refused(group_id, error) for group_id in request.group_ids])
    operations = GROUP_OPERATIONS if request.include_authorized_operations else NOT_REQUESTED
    return Response(
        groups=[
            _described(group_id, request, context, operations) if group_id else _refused(group_id, InvalidGroupId())
            for group_id in request.group_ids
        ]
    )


def _described(
    group_id: str, request: StreamsGroupDescribeRequest, context: Context, operations: int
) -> DescribedGroup:
    try:
        group = context.broker.groups.streams.describe(group_id)
    except KafkaError as error:
        return _refused(group_id, error)
    described = DescribedGroup(
        group_id=group_id,
        group_state=group.state,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        topology=_topology(group),
        members=[_member(member, target) for member, target in group.members],
        authorized_operations=operations,
        assignor_name=ASSIGNOR,
    )
    if request.include_topology_description:
        described.topology_description_status = NOT_STORED
        if isinstance(group.description, Response.TopologyDescription):
            described.topology_description_status = AVAILABLE
            described.topology_description = group.description
    return described


def _refused(group_id: str, error: KafkaError) -> DescribedGroup:
    message = str(error) if isinstance(error, GroupIdNotFound) else None
    return DescribedGroup(
        error_code=error.code,
        error_message=message,
        group_id=group_id,
        group_state="",
        group_epoch=0,
        assignment_epoch=0,
        members=[],
    )


# ---------------------------------------------------------------- the topology


def _topology(group: GroupDescription) -> DescribedGroup.Topology | None:
    if group.configured is not None:
        return DescribedGroup.Topology(epoch=group.configured.epoch, subtopologies=_configured(group.configured))
    if group.topology is not None:
        return DescribedGroup.Topology(epoch=group.topology.epoch, subtopologies=_unconfigured(group.topology))
    return None


def _configured(configured: ConfiguredTopology) -> list[DescribedGroup.Topology.Subtopology]:
    """Returns the configured subtopologies, with their partition counts."""
    return [
        DescribedGroup.Topology.Subtopology(
            subtopology_id=subtopology_id,
            source_topics=sorted(each.source_topics),
            repartition_sink_topics=sorted(each.repartition_sinks),
            state_changelog_topics=_internal(each.changelogs),
            repartition_source_topics=_internal(each.repartition_sources),
        )
        for subtopology_id, each in (configured.subtopologies or {}).items()
    ]


def _internal(topics: Mapping[str, InternalTopic]) -> list[Response.TopicInfo]:
    return [
        _topic_info(name, topics[name].partitions, topics[name].replication_factor, topics[name].configs)
        for name in sorted(topics)
    ]


def _unconfigured(topology: Topology) -> list[DescribedGroup.Topology.Subtopology]:
    """Returns the subtopologies as the members sent them."""
    return [
        DescribedGroup.Topology.Subtopology(
            subtopology_id=subtopology_id,
            source_topics=sorted(each.source_topics),
            repartition_sink_topics=sorted(each.repartition_sink_topics),
            state_changelog_topics=_infos(each.state_changelog_topics),
            repartition_source_topics=_infos(each.repartition_source_topics),
        )
        for subtopology_id, each in sorted(topology.subtopologies.items())
    ]


def _infos(infos: Iterable[StreamsGroupTopologyValue.TopicInfo]) -> list[Response.TopicInfo]:
    return [
        _topic_info(
            each.name,
            each.partitions,
            each.replication_factor,
            [(config.key, config.value) for config in each.topic_configs],
        )
        for each in sorted(infos, key=lambda info: info.name)
    ]


def _topic_info(
    name: str, partitions: int, replication_factor: int, configs: Sequence[tuple[str, str]]
) -> Response.TopicInfo:
    return Response.TopicInfo(
        name=name,
        partitions=partitions,
        replication_factor=replication_factor,
        topic_configs=[Response.KeyValue(key=key, value=value) for key, value in configs],
    )


# ---------------------------------------------------------------- members


def _member(member: Member, target: Target | None) -> DescribedGroup.Member:
    endpoint = member.user_endpoint
    held = member.assigned
    active = {subtopology: frozenset(partitions) for subtopology, partitions in held.active.items()}
    return DescribedGroup.Member(
        member_id=member.member_id,
        member_epoch=member.epoch,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=None if endpoint is None else Response.Endpoint(host=endpoint.host, port=endpoint.port),
        client_tags=[Response.KeyValue(key=key, value=value) for key, value in member.client_tags.items()],
        task_offsets=[],
        task_end_offsets=[],
        assignment=_assignment(Target(active, held.standby, held.warmup)),
        target_assignment=_assignment(target or Target()),
        is_classic=False,
    )


def _assignment(tasks: Target) -> Response.Assignment:
    return Response.Assignment(
        active_tasks=_task_ids(tasks.active),
        standby_tasks=_task_ids(tasks.standby),
        warmup_tasks=_task_ids(tasks.warmup),
    )


def _task_ids(tasks: Tasks) -> list[Response.TaskIds]:
    return [Response.TaskIds(subtopology_id=each, partitions=sorted(tasks[each])) for each in sorted(tasks)]

"""StreamsGroupHeartbeat (API key 88): a member joins, stays or leaves, and gets its tasks (KIP-1071).

Knows nothing of how tasks are assigned.
"""

from collections.abc import Callable, Iterable, Sequence

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.outcome import code_of, message_of
from barnabas.api_handlers.rebalance_protocols import STREAMS, require_protocol
from barnabas.api_handlers.registry import api
from barnabas.cluster.topic_names import INTERNAL, is_legal_topic_name
from barnabas.errors import KafkaError, StreamsInvalidTopology, UnknownServerError
from barnabas.groups.streams.member import Endpoint
from barnabas.groups.streams.messages import EndpointPartitions, Heartbeat, HeartbeatResult
from barnabas.groups.streams.tasks import Tasks
from barnabas.wire.messages.group_records import StreamsGroupTopologyValue
from barnabas.wire.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse

Request = StreamsGroupHeartbeatRequest
Response = StreamsGroupHeartbeatResponse
Creatable = Callable[[Iterable[str]], frozenset[str]]
Subtopology = StreamsGroupTopologyValue.Subtopology

TAKES_OFFSETS = 1
"""The first version (Kafka 4.4) in which a request may have offsets of tasks. Kafka 4.3 refuses them."""


@api(StreamsGroupHeartbeatRequest)
def streams_group_heartbeat(
    request: Request, context: Context, creatable: Creatable | None = None
) -> Response | Later[Response]:
    """Handles the heartbeat. Responds once its records are durable.

    :param creatable: returns the internal topics that the member may create; None if there is no authorizer
    """
    try:
        require_protocol(STREAMS, context)
        if request.topology is not None:
            _validate_names(request.topology)
    except KafkaError as error:
        return _response(HeartbeatResult.refused(error))
    later: Later[Response] = Later()
    ask = _ask(request, context)._replace(creatable=creatable)
    context.broker.groups.streams.heartbeat(ask, lambda result: later.resolve(_response(result)))
    return later


def _validate_names(topology: Request.Topology) -> None:
    """Validates the topic names of a topology.

    :raises StreamsInvalidTopology: it reads or writes internal topics of the brokers, or topics with illegal names
    """
    names = [name for each in topology.subtopologies for name in _names(each)]
    own = [each for each in names if each in INTERNAL]
    if own:
        raise StreamsInvalidTopology(
            f"Use of Kafka internal topics {','.join(own)} in a Kafka Streams topology is prohibited."
        )
    illegal = [each for each in names if not is_legal_topic_name(each)]
    if illegal:
        raise StreamsInvalidTopology(f"Topic names {','.join(illegal)} are not valid topic names.")


def _names(subtopology: Request.Topology.Subtopology) -> list[str]:
    made = [*subtopology.repartition_source_topics, *subtopology.state_changelog_topics]
    return [*subtopology.source_topics, *subtopology.repartition_sink_topics, *(each.name for each in made)]


# ---------------------------------------------------------------- the request


def _ask(request: Request, context: Context) -> Heartbeat:
    endpoint, tags = request.user_endpoint, request.client_tags
    unsupported = None
    if context.api_version < TAKES_OFFSETS:
        offsets = {"TaskOffsets": request.task_offsets, "TaskEndOffsets": request.task_end_offsets}
        unsupported = next((name for name, each in offsets.items() if each is not None), None)
    return Heartbeat(
        request.group_id,
        request.member_id,
        request.member_epoch,
        request.endpoint_information_epoch,
        request.instance_id,
        request.rack_id,
        request.rebalance_timeout_ms,
        None if request.topology is None else _topology(request.topology),
        _task_ids(request.active_tasks),
        _task_ids(request.standby_tasks),
        _task_ids(request.warmup_tasks),
        request.process_id,
        None if endpoint is None else Endpoint(endpoint.host, endpoint.port),
        None if tags is None else {each.key: each.value for each in tags},
        unsupported,
        request.shutdown_application,
        context.client_id or "",
        "/" + context.session.client_host,
    )


def _topology(topology: Request.Topology) -> StreamsGroupTopologyValue:
    """Returns the topology in the form of its record."""
    return StreamsGroupTopologyValue(
        epoch=topology.epoch,
        subtopologies=[
            Subtopology(
                subtopology_id=each.subtopology_id,
                source_topics=each.source_topics,
                source_topic_regex=each.source_topic_regex,
                state_changelog_topics=_topic_infos(each.state_changelog_topics),
                repartition_sink_topics=each.repartition_sink_topics,
                repartition_source_topics=_topic_infos(each.repartition_source_topics),
                copartition_groups=[
                    Subtopology.CopartitionGroup(
                        source_topics=group.source_topics,
                        source_topic_regex=group.source_topic_regex,
                        repartition_source_topics=group.repartition_source_topics,
                    )
                    for group in each.copartition_groups
                ],
            )
            for each in topology.subtopologies
        ],
    )


def _topic_infos(infos: Sequence[Request.TopicInfo]) -> list[StreamsGroupTopologyValue.TopicInfo]:
    return [
        StreamsGroupTopologyValue.TopicInfo(
            name=each.name,
            partitions=each.partitions,
            replication_factor=each.replication_factor,
            topic_configs=[
                StreamsGroupTopologyValue.TopicConfig(key=config.key, value=config.value)
                for config in each.topic_configs
            ],
        )
        for each in infos
    ]


def _task_ids(tasks: Sequence[Request.TaskIds] | None) -> list[tuple[str, Sequence[int]]] | None:
    return None if tasks is None else [(each.subtopology_id, each.partitions) for each in tasks]


# ---------------------------------------------------------------- the response


def _response(result: HeartbeatResult) -> Response:
    active, standby, warmup = result.tasks or (None, None, None)
    return Response(
        error_code=code_of(result.error),
        error_message=None if isinstance(result.error, UnknownServerError) else message_of(result.error),
        member_id=result.member_id,
        member_epoch=result.member_epoch,
        heartbeat_interval_ms=result.heartbeat_interval_ms,
        task_offset_interval_ms=0,
        status=[Response.Status(status_code=each.status, status_detail=each.detail) for each in result.status],
        active_tasks=_assigned_tasks(active),
        standby_tasks=_assigned_tasks(standby),
        warmup_tasks=_assigned_tasks(warmup),
        topology_description_required=result.wants_description,
        endpoint_information_epoch=result.endpoint_epoch,
        partitions_by_user_endpoint=None
        if result.endpoints is None
        else [_endpoint(each) for each in result.endpoints],
    )


def _assigned_tasks(tasks: Tasks | None) -> list[Response.TaskIds] | None:
    if tasks is None:
        return None
    return [Response.TaskIds(subtopology_id=each, partitions=sorted(tasks[each])) for each in sorted(tasks)]


def _endpoint(found: EndpointPartitions) -> Response.EndpointToPartitions:
    return Response.EndpointToPartitions(
        user_endpoint=Response.Endpoint(host=found.endpoint.host, port=found.endpoint.port),
        active_partitions=[Response.TopicPartition(topic=name, partitions=list(each)) for name, each in found.active],
        standby_partitions=[Response.TopicPartition(topic=name, partitions=list(each)) for name, each in found.standby],
    )

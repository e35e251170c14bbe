"""ConsumerGroupHeartbeat (API key 68): a member joins, stays or leaves, and gets its assignment (KIP-848).

Knows nothing of how partitions are assigned.
"""

from collections.abc import Sequence

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.outcome import code_of, message_of
from barnabas.api_handlers.rebalance_protocols import CONSUMER, require_protocol
from barnabas.api_handlers.registry import api
from barnabas.errors import KafkaError
from barnabas.groups.consumer.messages import Heartbeat, HeartbeatResult, Visible
from barnabas.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

Response = ConsumerGroupHeartbeatResponse

BRINGS_ID = 1
"""The first version in which a member generates its id (KIP-1082)."""


@api(ConsumerGroupHeartbeatRequest)
def consumer_group_heartbeat(
    request: ConsumerGroupHeartbeatRequest, context: Context, visible: Visible | None = None
) -> Response | Later[Response]:
    """Handles the heartbeat. Responds once its records are durable.

    :param visible: returns the topics that the member may see; None if there is no authorizer
    """
    try:
        require_protocol(CONSUMER, context)
    except KafkaError as error:
        return _response(HeartbeatResult.refused(error))
    later: Later[Response] = Later()
    beat = Heartbeat(
        request.group_id,
        request.member_id,
        request.member_epoch,
        request.instance_id,
        request.rack_id,
        request.rebalance_timeout_ms,
        request.subscribed_topic_names,
        request.subscribed_topic_regex,
        request.server_assignor,
        _by_topic(request.topic_partitions),
        context.client_id or "",
        f"/{context.session.client_host}",
        context.api_version >= BRINGS_ID,
        visible,
    )
    context.broker.groups.consumer.heartbeat(beat, lambda result: later.resolve(_response(result)))
    return later


def _by_topic(
    owned: Sequence[ConsumerGroupHeartbeatRequest.TopicPartitions] | None,
) -> dict[bytes, list[int]] | None:
    if owned is None:
        return None
    partitions: dict[bytes, list[int]] = {}
    for each in owned:
        partitions.setdefault(each.topic_id, []).extend(each.partitions)
    return partitions


def _response(result: HeartbeatResult) -> Response:
    assignment = result.assignment
    return Response(
        error_code=code_of(result.error),
        error_message=message_of(result.error),
        member_id=result.member_id,
        member_epoch=result.member_epoch,
        heartbeat_interval_ms=result.heartbeat_interval_ms,
        assignment=None
        if assignment is None
        else Response.Assignment(
            topic_partitions=[
                Response.TopicPartitions(topic_id=topic_id, partitions=partitions)
                for topic_id, partitions in assignment
            ]
        ),
    )

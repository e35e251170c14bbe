"""ShareGroupHeartbeat (API key 76): a member joins, stays or leaves, and gets its assignment (KIP-932).

Knows nothing of how partitions are assigned.
"""

from collections.abc import Sequence

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.outcome import message_of
from barnabas.api_handlers.rebalance_protocols import SHARE, require_protocol
from barnabas.api_handlers.registry import api
from barnabas.errors import KafkaError
from barnabas.groups.share.messages import Heartbeat, HeartbeatResult, Partitions
from barnabas.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse

Answer = ShareGroupHeartbeatResponse | Later[ShareGroupHeartbeatResponse]


@api(ShareGroupHeartbeatRequest)
def share_group_heartbeat(request: ShareGroupHeartbeatRequest, context: Context) -> Answer:
    """Handles the heartbeat. Responds once its records are durable."""
    names: Sequence[str] | None = request.subscribed_topic_names
    ask = Heartbeat(
        request.group_id,
        request.member_id,
        request.member_epoch,
        context.client_id or "",
        f"/{context.session.client_host}",
        request.rack_id,
        None if names is None else tuple(names),
    )
    later: Later[ShareGroupHeartbeatResponse] = Later()
    try:
        require_protocol(SHARE, context)
        context.broker.groups.share.heartbeat(ask, lambda result: later.resolve(_answer(result)))
    except KafkaError as error:
        return _refused(error)
    return later


def _answer(result: HeartbeatResult | KafkaError) -> ShareGroupHeartbeatResponse:
    if not isinstance(result, HeartbeatResult):
        return _refused(result)
    return ShareGroupHeartbeatResponse(
        member_id=result.member_id,
        member_epoch=result.member_epoch,
        heartbeat_interval_ms=result.heartbeat_interval_ms,
        assignment=None if result.assignment is None else _assignment(result.assignment),
    )


def _assignment(assigned: Partitions) -> ShareGroupHeartbeatResponse.Assignment:
    return ShareGroupHeartbeatResponse.Assignment(
        topic_partitions=[
            ShareGroupHeartbeatResponse.TopicPartitions(topic_id=topic_id, partitions=list(partitions))
            for topic_id, partitions in assigned.items()
        ]
    )


def _refused(error: KafkaError) -> ShareGroupHeartbeatResponse:
    return ShareGroupHeartbeatResponse(
        error_code=error.code, error_message=message_of(error), member_epoch=0, heartbeat_interval_ms=0
    )

"""Heartbeat (API key 12): keeps the session of a member of a classic group, and tells it whether it has to rejoin.

Knows nothing of how a group rebalances.
"""

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.outcome import code_of
from barnabas.api_handlers.registry import api
from barnabas.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


@api(HeartbeatRequest)
def heartbeat(request: HeartbeatRequest, context: Context) -> Later[HeartbeatResponse]:
    """Restarts the member's session. Responds once earlier writes of the coordinator are durable."""
    groups = context.broker.groups
    groups.heartbeat(request.group_id, request.member_id, request.group_instance_id, request.generation_id)
    later: Later[HeartbeatResponse] = Later()
    groups.when_written(request.group_id, lambda error: later.resolve(HeartbeatResponse(error_code=code_of(error))))
    return later

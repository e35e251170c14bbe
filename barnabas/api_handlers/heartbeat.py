"""Heartbeat (API key 12): keeps the session of a member of a classic group, and tells it whether it has to rejoin.

Knows nothing of how a group rebalances.
"""

from barnabas.api_handlers.context import Context
from barnabas.api_handlers.registry import api
from barnabas.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


@api(HeartbeatRequest)
def heartbeat(request: HeartbeatRequest, context: Context) -> HeartbeatResponse:
    """Restarts the member's session."""
    context.broker.groups.heartbeat(
        request.group_id, request.member_id, request.group_instance_id, request.generation_id
    )
    return HeartbeatResponse()

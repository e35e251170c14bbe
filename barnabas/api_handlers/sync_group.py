"""SyncGroup (API key 14): a member fetches its assignment; the leader sends the assignments of all members.

Knows nothing of how a group rebalances.
"""

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.outcome import code_of
from barnabas.api_handlers.registry import api
from barnabas.errors import InconsistentGroupProtocol
from barnabas.groups.messages import Sync, SyncResult
from barnabas.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

REQUIRES_PROTOCOL = 5
"""The first version whose request must have the protocol type and name (KIP-559)."""


@api(SyncGroupRequest)
def sync_group(request: SyncGroupRequest, context: Context) -> SyncGroupResponse | Later[SyncGroupResponse]:
    """Responds with the assignment once the leader has sent it."""
    has_protocol = request.protocol_type is not None and request.protocol_name is not None
    if context.api_version >= REQUIRES_PROTOCOL and not has_protocol:
        return _response(SyncResult.refused(InconsistentGroupProtocol()))
    later: Later[SyncGroupResponse] = Later()
    sync = Sync(
        request.group_id,
        request.generation_id,
        request.member_id,
        request.group_instance_id,
        request.protocol_type,
        request.protocol_name,
        [(each.member_id, bytes(each.assignment)) for each in request.assignments],
    )
    context.broker.groups.sync(sync, lambda result: later.resolve(_response(result)))
    return later


def _response(result: SyncResult) -> SyncGroupResponse:
    return SyncGroupResponse(
        error_code=code_of(result.error),
        protocol_type=result.protocol_type,
        protocol_name=result.protocol_name,
        assignment=result.assignment,
    )

"""JoinGroup (API key 11): a member joins a classic group, and waits for the next generation.

Knows nothing of how a group rebalances.
"""

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.error_responses import derived, error_shape
from barnabas.api_handlers.outcome import code_of
from barnabas.api_handlers.registry import api
from barnabas.errors import KafkaError
from barnabas.groups.messages import Join, JoinResult
from barnabas.wire.message import Response
from barnabas.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse

HAS_REBALANCE_TIMEOUT = 1
REQUIRES_MEMBER_ID = 4
ALLOWS_NO_PROTOCOL = 7
"""The first version in which the protocol name may be null. Older versions have an empty string instead."""
SKIPS_ASSIGNMENT = 9


@api(JoinGroupRequest)
def join_group(request: JoinGroupRequest, context: Context) -> Later[JoinGroupResponse]:
    """Joins the member. Responds when the rebalance is complete."""
    version = context.api_version
    later: Later[JoinGroupResponse] = Later()
    timeout_ms = request.rebalance_timeout_ms if version >= HAS_REBALANCE_TIMEOUT else request.session_timeout_ms
    join = Join(
        request.group_id,
        request.member_id,
        request.group_instance_id,
        context.client_id or "",
        "/" + context.session.client_host,
        request.session_timeout_ms,
        timeout_ms,
        request.protocol_type,
        tuple((each.name, bytes(each.metadata)) for each in request.protocols),
        request.reason,
        knows_member_id_required=version >= REQUIRES_MEMBER_ID,
        knows_skip_assignment=version >= SKIPS_ASSIGNMENT,
    )
    context.broker.groups.join(join, lambda result: later.resolve(_response(result, version)))
    return later


@error_shape(JoinGroupRequest)
def _failed(request: JoinGroupRequest, error: KafkaError, version: int) -> Response:
    return derived(request, error, version, protocol_name="" if version < ALLOWS_NO_PROTOCOL else None)


def _response(result: JoinResult, version: int) -> JoinGroupResponse:
    name = result.protocol_name
    return JoinGroupResponse(
        error_code=code_of(result.error),
        generation_id=result.generation_id,
        protocol_type=result.protocol_type,
        protocol_name="" if name is None and version < ALLOWS_NO_PROTOCOL else name,
        leader=result.leader,
        skip_assignment=result.skip_assignment,
        member_id=result.member_id,
        members=[
            JoinGroupResponse.JoinGroupResponseMember(
                member_id=each.member_id, group_instance_id=each.group_instance_id, metadata=each.metadata
            )
            for each in result.members
        ],
    )

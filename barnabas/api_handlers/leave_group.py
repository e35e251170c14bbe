"""LeaveGroup (API key 13): members leave a group, or an administrator removes them.

Knows nothing of how a group rebalances.
"""

from barnabas.api_handlers.context import Context
from barnabas.api_handlers.outcome import code_of
from barnabas.api_handlers.registry import api
from barnabas.groups.messages import LeavingMember
from barnabas.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse

SEVERAL = 3
"""The first version with several members, each with its own error (KIP-345)."""


@api(LeaveGroupRequest)
def leave_group(request: LeaveGroupRequest, context: Context) -> LeaveGroupResponse:
    """Removes the members, and responds with the result of each."""
    if context.api_version >= SEVERAL:
        leavers = [LeavingMember(each.member_id, each.group_instance_id, each.reason) for each in request.members]
    else:
        leavers = [LeavingMember(request.member_id)]
    answers = context.broker.groups.leave(request.group_id, leavers)
    if context.api_version < SEVERAL:
        return LeaveGroupResponse(error_code=code_of(answers[0].error))
    return LeaveGroupResponse(
        members=[
            LeaveGroupResponse.MemberResponse(
                member_id=each.member_id, group_instance_id=each.group_instance_id, error_code=code_of(each.error)
            )
            for each in answers
        ]
    )

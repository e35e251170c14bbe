"""LeaveGroup (API key 13): members leave a group, or an administrator removes them.

Knows nothing of how a group rebalances.
"""

from collections.abc import Sequence

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.outcome import code_of
from barnabas.api_handlers.registry import api
from barnabas.errors import KafkaError
from barnabas.groups.messages import LeaveResult, LeavingMember
from barnabas.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse

SEVERAL = 3
"""The first version with several members, each with its own error (KIP-345)."""


@api(LeaveGroupRequest)
def leave_group(request: LeaveGroupRequest, context: Context) -> Later[LeaveGroupResponse]:
    """Removes the members. Responds with the result of each once earlier writes of the coordinator are durable."""
    if context.api_version >= SEVERAL:
        leavers = [LeavingMember(each.member_id, each.group_instance_id, each.reason) for each in request.members]
    else:
        leavers = [LeavingMember(request.member_id)]
    results = context.broker.groups.leave(request.group_id, leavers)
    later: Later[LeaveGroupResponse] = Later()

    def written(error: KafkaError | None) -> None:
        if error is None:
            later.resolve(_response(results, context.api_version))
        else:
            later.resolve(LeaveGroupResponse(error_code=error.code))

    context.broker.groups.when_written(request.group_id, written)
    return later


def _response(answers: Sequence[LeaveResult], version: int) -> LeaveGroupResponse:
    if version < SEVERAL:
        return LeaveGroupResponse(error_code=code_of(answers[0].error))
    return LeaveGroupResponse(
        members=[
            LeaveGroupResponse.MemberResponse(
                member_id=each.member_id, group_instance_id=each.group_instance_id, error_code=code_of(each.error)
            )
            for each in answers
        ]
    )

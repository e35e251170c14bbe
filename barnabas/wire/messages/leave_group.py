"""LeaveGroup (API key 13): leave a classic group, or remove members from it.

v1 throttle_time_ms · v2 throttled after the response (KIP-219) · v3 several members at once (KIP-345) · v4 flexible ·
v5 reason (KIP-800)
"""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Struct, field
from barnabas.wire.types import int16, int32, string


class LeaveGroupRequest(Request, api_key=13, versions="0-5", flexible="4+"):
    class MemberIdentity(Struct):
        member_id: string  #: may be empty if ``group_instance_id`` is given
        group_instance_id: string | None = None
        reason: string | None = field("5+", default=None)

    group_id: string
    member_id: string = field("0-2", default="")
    members: list[MemberIdentity] = field("3+", default=())


class LeaveGroupResponse(Response, to=LeaveGroupRequest):
    class MemberResponse(Struct):
        member_id: string
        group_instance_id: string | None
        error_code: int16 = 0

    throttle_time_ms: int32 = field("1+", default=0)
    error_code: int16 = 0
    members: list[MemberResponse] = field("3+", default=())

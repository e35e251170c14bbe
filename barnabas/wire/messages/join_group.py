"""JoinGroup (API key 11): join or rejoin a classic group; answered when all members have joined.

v1 rebalance_timeout_ms (KIP-62) · v2 throttle_time_ms · v3 throttled after the response (KIP-219) · v4
MEMBER_ID_REQUIRED (KIP-394) · v5 group_instance_id (KIP-345) · v6 flexible · v7 protocol_type in the response (KIP-559)
· v8 reason (KIP-800) · v9 skip_assignment (KIP-814)
"""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Struct, field
from barnabas.wire.types import int16, int32, string


class JoinGroupRequest(Request, api_key=11, versions="0-9", flexible="6+"):
    class JoinGroupRequestProtocol(Struct):
        name: string
        metadata: bytes

    group_id: string
    session_timeout_ms: int32  #: the member is removed after this time without a heartbeat
    #: the time for it to rejoin in a rebalance; -1: the session timeout
    rebalance_timeout_ms: int32 = field("1+", default=-1)
    member_id: string  #: empty at first; the response contains one
    group_instance_id: string | None = field("5+", default=None)  #: of a static member, which keeps it when it restarts
    protocol_type: string  #: "consumer", "connect" …
    #: the member's assignors in order of preference, each with its metadata
    protocols: list[JoinGroupRequestProtocol]
    reason: string | None = field("8+", default=None)  #: of joining, for the log


class JoinGroupResponse(Response, to=JoinGroupRequest):
    class JoinGroupResponseMember(Struct):
        member_id: string
        group_instance_id: string | None = field("5+", default=None)
        metadata: bytes

    throttle_time_ms: int32 = field("2+", default=0)
    error_code: int16 = 0
    generation_id: int32 = -1
    protocol_type: string | None = field("7+", default=None)
    protocol_name: string | None = field(nullable="7+")  #: chosen by the group
    leader: string
    #: the leader, a restarted static member, must not assign
    skip_assignment: bool = field("9+", default=False)
    member_id: string
    members: list[JoinGroupResponseMember]  #: for the leader only

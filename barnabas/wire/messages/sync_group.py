"""SyncGroup (API key 14): the leader of a classic group sends the assignments; each member gets its own.

v1 throttle_time_ms · v2 throttled after the response (KIP-219) · v3 group_instance_id (KIP-345) · v4 flexible · v5
protocol_type and protocol_name, which the broker checks (KIP-559)
"""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Struct, field
from barnabas.wire.types import int16, int32, string


class SyncGroupRequest(Request, api_key=14, versions="0-5", flexible="4+"):
    class SyncGroupRequestAssignment(Struct):
        member_id: string
        assignment: bytes

    group_id: string
    generation_id: int32
    member_id: string
    group_instance_id: string | None = field("3+", default=None)
    protocol_type: string | None = field("5+", default=None)
    protocol_name: string | None = field("5+", default=None)
    assignments: list[SyncGroupRequestAssignment]  #: of the leader; the others send none


class SyncGroupResponse(Response, to=SyncGroupRequest):
    throttle_time_ms: int32 = field("1+", default=0)
    error_code: int16 = 0
    protocol_type: string | None = field("5+", default=None)
    protocol_name: string | None = field("5+", default=None)
    assignment: bytes

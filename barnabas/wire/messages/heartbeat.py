"""Heartbeat (API key 12): keep a member of a classic group alive.

v1 throttle_time_ms · v2 throttled after the response (KIP-219) · v3 group_instance_id (KIP-345) · v4 flexible
"""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import field
from barnabas.wire.types import int16, int32, string


class HeartbeatRequest(Request, api_key=12, versions="0-4", flexible="4+"):
    group_id: string
    generation_id: int32
    member_id: string
    group_instance_id: string | None = field("3+", default=None)


class HeartbeatResponse(Response, to=HeartbeatRequest):
    throttle_time_ms: int32 = field("1+", default=0)
    error_code: int16 = 0

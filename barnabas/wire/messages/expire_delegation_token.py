"""ExpireDelegationToken (API key 40): brings the expiry of a token forward (KIP-48).

v1 throttled after the response (KIP-219) · v2 flexible
"""

from barnabas.wire.message import Request, Response
from barnabas.wire.types import int16, int32, int64


class ExpireDelegationTokenRequest(Request, api_key=40, versions="0-2", flexible="2+"):
    hmac: bytes
    expiry_time_period_ms: int64


class ExpireDelegationTokenResponse(Response, to=ExpireDelegationTokenRequest):
    error_code: int16 = 0
    expiry_timestamp_ms: int64
    throttle_time_ms: int32 = 0

"""RenewDelegationToken (API key 39): moves the expiry of a token (KIP-48).

v1 throttled after the response (KIP-219) · v2 flexible
"""

from barnabas.wire.message import Request, Response
from barnabas.wire.types import int16, int32, int64


class RenewDelegationTokenRequest(Request, api_key=39, versions="0-2", flexible="2+"):
    hmac: bytes
    renew_period_ms: int64


class RenewDelegationTokenResponse(Response, to=RenewDelegationTokenRequest):
    error_code: int16 = 0
    expiry_timestamp_ms: int64
    throttle_time_ms: int32 = 0

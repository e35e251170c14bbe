"""CreateDelegationToken (API key 38): creates a token that stands for its owner (KIP-48).

v1 throttled after the response (KIP-219) · v2 flexible · v3 owner and requester (KIP-373)
"""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Struct, field
from barnabas.wire.types import int16, int32, int64, string


class CreateDelegationTokenRequest(Request, api_key=38, versions="0-3", flexible="2+"):
    class CreatableRenewers(Struct):
        principal_type: string
        principal_name: string

    owner_principal_type: string | None = field("3+", default=None)
    owner_principal_name: string | None = field("3+", default=None)
    renewers: list[CreatableRenewers]
    max_lifetime_ms: int64


class CreateDelegationTokenResponse(Response, to=CreateDelegationTokenRequest):
    error_code: int16 = 0
    principal_type: string
    principal_name: string
    token_requester_principal_type: string = field("3+", default="")
    token_requester_principal_name: string = field("3+", default="")
    issue_timestamp_ms: int64
    expiry_timestamp_ms: int64
    max_timestamp_ms: int64
    token_id: string
    hmac: bytes
    throttle_time_ms: int32 = 0

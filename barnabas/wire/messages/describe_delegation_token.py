"""DescribeDelegationToken (API key 41): lists tokens by their owners (KIP-48).

v1 throttled after the response (KIP-219) · v2 flexible · v3 requester (KIP-373)
"""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Struct, field
from barnabas.wire.types import int16, int32, int64, string


class DescribeDelegationTokenRequest(Request, api_key=41, versions="0-3", flexible="2+"):
    class DescribeDelegationTokenOwner(Struct):
        principal_type: string
        principal_name: string

    owners: list[DescribeDelegationTokenOwner] | None


class DescribeDelegationTokenResponse(Response, to=DescribeDelegationTokenRequest):
    class DescribedDelegationToken(Struct):
        class DescribedDelegationTokenRenewer(Struct):
            principal_type: string
            principal_name: string

        principal_type: string
        principal_name: string
        token_requester_principal_type: string = field("3+", default="")
        token_requester_principal_name: string = field("3+", default="")
        issue_timestamp: int64
        expiry_timestamp: int64
        max_timestamp: int64
        token_id: string
        hmac: bytes
        renewers: list[DescribedDelegationTokenRenewer]

    error_code: int16 = 0
    tokens: list[DescribedDelegationToken]
    throttle_time_ms: int32 = 0

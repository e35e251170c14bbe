"""SaslAuthenticate (API key 36): carries the tokens of the SASL mechanism (KIP-152).

v1 session lifetime (KIP-368) · v2 flexible
"""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import field
from barnabas.wire.types import int16, int64, string


class SaslAuthenticateRequest(Request, api_key=36, versions="0-2", flexible="2+"):
    auth_bytes: bytes


class SaslAuthenticateResponse(Response, to=SaslAuthenticateRequest):
    error_code: int16 = 0
    error_message: string | None = None
    auth_bytes: bytes
    session_lifetime_ms: int64 = field("1+", default=0)

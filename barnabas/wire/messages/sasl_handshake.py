"""SaslHandshake (API key 17): names the SASL mechanism of a connection, and lists the enabled ones (KIP-43).

v0 is followed by bare tokens · v1 by SaslAuthenticate (KIP-152). Never made flexible.
"""

from barnabas.wire.message import Request, Response
from barnabas.wire.types import int16, string


class SaslHandshakeRequest(Request, api_key=17, versions="0-1", flexible="none"):
    mechanism: string


class SaslHandshakeResponse(Response, to=SaslHandshakeRequest):
    error_code: int16 = 0
    mechanisms: list[string]

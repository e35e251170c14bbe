"""Envelope (API key 58): a broker forwards a client's request and principal to the active controller (KIP-590)."""

from barnabas.wire.message import Request, Response
from barnabas.wire.types import int16


class EnvelopeRequest(Request, api_key=58, versions="0", flexible="0+"):
    request_data: bytes  #: the client's request with its header, without the size
    request_principal: bytes | None  #: DefaultPrincipalData after its version
    client_host_address: bytes  #: the IPv4 or IPv6 address


class EnvelopeResponse(Response, to=EnvelopeRequest):
    response_data: bytes | None = None  #: the response with its header; null with an error
    error_code: int16 = 0

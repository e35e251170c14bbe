"""Envelope (API key 58): answers a request that a broker forwards, with the rights of its client (KIP-590).

Knows nothing of the request in it. Apache Kafka's ``EnvelopeUtils`` and ``RequestChannel.Request.buildResponseSend``.
"""

import struct

from barnabas.api_handlers.answering import Later, then
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.handling import handle, is_exempt
from barnabas.api_handlers.registry import APIS, CONTROLLER_APIS, FORWARDABLE, Api, api
from barnabas.api_handlers.session import Session
from barnabas.broker.envelopes import address_of, principal_of
from barnabas.errors import (
    InvalidRequest,
    MalformedMessage,
    NotController,
    NotLeaderOrFollower,
    UnsupportedVersion,
)
from barnabas.wire.error_codes import error_codes
from barnabas.wire.headers import RequestHeader, read_request_header
from barnabas.wire.message import Response
from barnabas.wire.messages.describe_quorum import DescribeQuorumResponse
from barnabas.wire.messages.envelope import EnvelopeRequest, EnvelopeResponse

SIZE = 4
"""The bytes of a frame's size, which an envelope's response does not have."""

read_api_key = struct.Struct(">h").unpack_from


@api(EnvelopeRequest)
def envelope(request: EnvelopeRequest, context: Context) -> EnvelopeResponse | Later[EnvelopeResponse]:
    """Returns the response to the request in the envelope.

    :raises PrincipalDeserializationFailure: the client's principal cannot be read
    :raises InvalidRequest: its address cannot be read, or the API cannot be forwarded
    :raises UnsupportedVersion: the request cannot be read
    """
    principal, by_token = principal_of(request.request_principal)
    host = address_of(request.client_host_address)
    found, header, body = parsed(request.request_data)
    if found.key not in FORWARDABLE:
        name = found.request.__name__.removesuffix("Request")
        raise InvalidRequest(f"API {name} is not enabled or is not eligible for forwarding")
    around = context.session
    session = Session(
        listener=around.listener,
        client_host=host,
        security_protocol=around.security_protocol,
        principal=principal,
        promise=around.promise,
        is_forwarded=True,
    )
    session.by_token = by_token
    inner = Context(
        context.broker,
        session,
        api_version=header.request_api_version,
        client_id=header.client_id,
        correlation_id=header.correlation_id,
        time_ms=context.time_ms,
    )
    try:
        forwarded = found.request.decode(request.request_data, version=inner.api_version, at=body)
    except MalformedMessage as error:
        raise UnsupportedVersion(f"Failed to parse forwarded request with header {header}") from error
    quotas = context.broker.quotas
    if quotas is not None:
        inner.meter = quotas.meter(principal.name, inner.client_id, len(request.request_data))
    answer = then(handle(found, forwarded, inner), lambda response: enclosed(response, inner))
    assert answer is not None, "every API that can be forwarded has a response"
    return answer  # type: ignore[return-value]


def parsed(frame: bytes) -> tuple[Api, RequestHeader, int]:
    """Returns the API of the request in an envelope, its header, and where its body begins.

    :raises UnsupportedVersion: there is no such API or version, or the header cannot be read
    """
    try:
        (key,) = read_api_key(frame)
        found = CONTROLLER_APIS.get(key) or APIS[key]
        _ = found.request  # which the header cannot be read without
        header, body = read_request_header(frame)
    except (struct.error, KeyError, MalformedMessage) as error:
        raise UnsupportedVersion("Failed to parse request header from envelope") from error
    if header.request_api_version not in found.versions:
        raise UnsupportedVersion("Failed to parse request header from envelope")
    return found, header, body


def enclosed(response: Response, inner: Context) -> EnvelopeResponse:
    """Returns the envelope of a response. If this node is not the active controller, the envelope itself has
    NOT_CONTROLLER.
    """
    elsewhere = NotLeaderOrFollower if isinstance(response, DescribeQuorumResponse) else NotController
    if elsewhere.code in error_codes(response):
        return EnvelopeResponse(error_code=NotController.code)
    if inner.meter is not None:
        inner.meter.is_exempt = is_exempt(response.request.api_key, inner.session.promise)
        inner.meter.count_mutations()
        inner.meter.count_time()
        if hasattr(response, "throttle_time_ms"):
            response.throttle_time_ms = inner.meter.throttle_ms
    pieces = response.encode_frame(inner.correlation_id, inner.api_version)
    return EnvelopeResponse(response_data=b"".join(pieces)[SIZE:])

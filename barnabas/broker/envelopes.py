"""Envelopes: a client's request as it is forwarded to the active controller, with the client's principal and address.

Knows nothing of what the request means. Apache Kafka's ``ForwardingManagerUtil`` and ``DefaultKafkaPrincipalBuilder``
(KIP-590).
"""

import ipaddress
import struct
from typing import Any, NamedTuple

from barnabas.errors import (
    InvalidRequest,
    KafkaError,
    MalformedMessage,
    PrincipalDeserializationFailure,
    UnknownServerError,
)
from barnabas.security.principals import Principal
from barnabas.wire.headers import RequestHeader, ResponseHeader, request_header_version
from barnabas.wire.message import Request
from barnabas.wire.messages.envelope import EnvelopeRequest, EnvelopeResponse
from barnabas.wire.messages.principal_data import DefaultPrincipalData

PRINCIPAL_VERSION = 0
_version = struct.Struct(">h")


class Sender(NamedTuple):
    """The client that has sent a forwarded request."""

    principal: Principal
    host: str  #: an address, "127.0.0.1"
    by_token: bool = False  #: whether it has authenticated with a delegation token (KIP-48)
    client_id: str | None = None
    correlation_id: int = 0


def enveloped(request: Request, version: int, sender: Sender) -> EnvelopeRequest:
    """Returns the envelope with a request in that version."""
    header = RequestHeader(
        request_api_key=request.api_key,
        request_api_version=version,
        correlation_id=sender.correlation_id,
        client_id=sender.client_id,
    )
    header_version = request_header_version(request.api_key, version)
    return EnvelopeRequest(
        request_data=header.encode(version=header_version) + request.encode(version=version),
        request_principal=principal_bytes(sender.principal, by_token=sender.by_token),
        client_host_address=address_bytes(sender.host),
    )


def opened(envelope: EnvelopeResponse, request: type[Request], version: int, correlation_id: int) -> Any:
    """Returns the response in an envelope.

    :raises KafkaError: there is none
    :raises MalformedMessage: it is not the response to that request
    """
    data, kind = envelope.response_data, request.response
    if envelope.error_code or data is None:
        raise KafkaError.by_code.get(envelope.error_code, UnknownServerError)()
    header, body = ResponseHeader.decode_from(data, 0, version=kind.header_version(version))
    if header.correlation_id != correlation_id:
        raise MalformedMessage(f"a response to the request {header.correlation_id}, not {correlation_id}")
    return kind.decode(data, version=version, at=body)


def principal_bytes(principal: Principal, *, by_token: bool) -> bytes:
    """Returns the principal as ``DefaultKafkaPrincipalBuilder.serialize`` does.

    >>> principal_bytes(Principal("User", "alice"), by_token=False).hex(" ", 2)
    '0000 0555 7365 7206 616c 6963 6500 00'
    """
    data = DefaultPrincipalData(type=principal.type, name=principal.name, token_authenticated=by_token)
    return _version.pack(PRINCIPAL_VERSION) + data.encode(version=PRINCIPAL_VERSION)


def principal_of(data: bytes | None) -> tuple[Principal, bool]:
    """Returns the principal, and whether it has authenticated with a delegation token.

    :raises PrincipalDeserializationFailure: the bytes are no principal
    """
    try:
        (version,) = _version.unpack_from(data or b"")
        found = DefaultPrincipalData.decode(data or b"", version=version, at=_version.size)
    except (struct.error, MalformedMessage) as error:
        raise PrincipalDeserializationFailure("Failed to deserialize client principal from envelope") from error
    return Principal(found.type, found.name), found.token_authenticated


def address_bytes(host: str) -> bytes:
    """Returns the bytes of an IPv4 or IPv6 address.

    >>> address_bytes("127.0.0.1").hex(), address_bytes("::ffff:127.0.0.1").hex(), len(address_bytes("fe80::1%eth0"))
    ('7f000001', '7f000001', 16)
    """
    address = ipaddress.ip_address(host.partition("%")[0])
    return (getattr(address, "ipv4_mapped", None) or address).packed


def address_of(data: bytes) -> str:
    """Returns the address. :raises InvalidRequest: the bytes are neither IPv4 nor IPv6"""
    try:
        return str(ipaddress.ip_address(data))
    except ValueError as error:
        raise InvalidRequest("Failed to parse client address from envelope") from error

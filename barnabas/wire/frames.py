"""Decodes whole frames, requests and responses with their headers, outside of a connection.

Knows nothing of sockets; a broker's connection decodes its frames in :mod:`barnabas.server.dispatch`.
"""

from collections.abc import Mapping
from typing import NamedTuple

from barnabas.errors import MalformedMessage
from barnabas.wire.headers import ResponseHeader, read_request_header
from barnabas.wire.message import API_VERSIONS, Request, Response
from barnabas.wire.messages import declared
from barnabas.wire.types import Buffer

UNSUPPORTED_VERSION = 35


def requests() -> dict[int, type[Request]]:
    """Returns all declared requests by their API keys."""
    return {each.api_key: each for each in declared().values() if issubclass(each, Request)}


def api_name(request: type[Request]) -> str:
    """Returns the name of an API in Apache Kafka's ``ApiKeys``.

    >>> from barnabas.wire.messages.heartbeat import HeartbeatRequest
    >>> api_name(HeartbeatRequest)
    'Heartbeat'
    """
    return request.__name__.removesuffix("Request")


class RequestFrame(NamedTuple):
    """A request as it was sent."""

    request: Request
    version: int
    correlation_id: int
    client_id: str | None


class ResponseFrame(NamedTuple):
    """A response as it was sent, and its version, which is not always that of the request."""

    response: Response
    version: int
    correlation_id: int


def frames_in(data: bytes) -> list[bytes]:
    """Returns the frames in ``data``, without their sizes. Data that is no sequence of sizes and frames is one frame.

    >>> [each.hex() for each in frames_in(bytes.fromhex("00000002 abcd 00000001 ef"))]
    ['abcd', 'ef']
    >>> [each.hex() for each in frames_in(bytes.fromhex("0000000200"))]
    ['0000000200']
    """
    found, at = [], 0
    while at < len(data):
        size = int.from_bytes(data[at : at + 4], signed=True)
        if not 0 < size <= len(data) - at - 4:
            return [data]
        found.append(data[at + 4 : at + 4 + size])
        at += 4 + size
    return found


def decode_request(frame: Buffer, requests: Mapping[int, type[Request]]) -> RequestFrame:
    """Decodes a request and its header.

    :param frame: the frame without its size
    :param requests: the known requests by API key
    :raises MalformedMessage: the API key or the version is unknown, or the request cannot be decoded
    """
    declared = requests.get(int.from_bytes(frame[:2], signed=True))
    if declared is None:
        raise MalformedMessage(f"no API has the key {int.from_bytes(frame[:2], signed=True)}")
    header, body = read_request_header(frame)
    version = header.request_api_version
    request = declared.decode(frame, version=version, at=body)
    return RequestFrame(request, version, header.correlation_id, header.client_id)


def decode_response(frame: Buffer, request: type[Request], version: int) -> ResponseFrame:
    """Decodes a response to a request of that version, and its header.

    The response to an unsupported version of ApiVersions is in version 0 (KIP-511).

    :param frame: the frame without its size
    :raises MalformedMessage: the response cannot be decoded
    """
    declared = request.response
    if request.api_key == API_VERSIONS and int.from_bytes(frame[4:6]) == UNSUPPORTED_VERSION:
        version = 0
    header, at = ResponseHeader.decode_from(frame, 0, version=declared.header_version(version))
    return ResponseFrame(declared.decode(frame, version=version, at=at), version, header.correlation_id)

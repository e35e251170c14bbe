"""The headers of requests and responses.

Knows nothing of the bodies, except which versions of an API have flexible headers.
"""

import struct

from barnabas.errors import MalformedMessage
from barnabas.wire.message import Message, Request
from barnabas.wire.schema import field
from barnabas.wire.types import Buffer, int16, int32, plain_string, skip_tags


class RequestHeader(Message, versions="0-2", flexible="2+"):
    """v0 ControlledShutdown v0 only · v1 client_id · v2 tagged fields (KIP-482)"""

    request_api_key: int16
    request_api_version: int16
    correlation_id: int32  #: copied to the response header
    client_id: plain_string | None = field("1+", default="")


class ResponseHeader(Message, versions="0-1", flexible="1+"):
    """v1 tagged fields (KIP-482)"""

    correlation_id: int32


_unpack = struct.Struct(">hhih").unpack_from
_new = object.__new__


def request_header_version(api_key: int, version: int) -> int:
    """Returns the version of a request's header. :raises MalformedMessage: the API key is unknown"""
    request = Request.by_key.get(api_key)
    if request is None:
        raise MalformedMessage(f"no API has the key {api_key}")
    return 2 if version >= request.flexible.first else 1


def read_request_header(frame: Buffer, at: int = 0) -> tuple[RequestHeader, int]:
    """Decodes the header of the request in ``frame``, and returns it with the start of the body.

    :raises MalformedMessage: the header cannot be decoded, or the message of its API key has not been imported
    """
    try:
        api_key, version, correlation_id, size = _unpack(frame, at)
        request = Request.by_key.get(api_key)
        if request is None:
            raise MalformedMessage(f"no API has the key {api_key}")
        at += 10
        header = _new(RequestHeader)
        header.request_api_key, header.request_api_version = api_key, version
        header.correlation_id = correlation_id
        if size < 0:
            header.client_id = None
        else:
            end = at + size
            header.client_id = str(frame[at:end], "utf-8", "replace")
            at = end
        if version >= request.flexible.first:
            at = skip_tags(frame, at) if frame[at] else at + 1
    except (struct.error, IndexError) as error:
        raise MalformedMessage("the header of a request is truncated") from error
    if at > len(frame):
        raise MalformedMessage("the header of a request is truncated")
    return header, at

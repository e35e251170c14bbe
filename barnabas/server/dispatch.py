"""From a frame to its handler, and from the answer to bytes.

Knows nothing of sockets, and of the protocol only what a header says: a key and a version. Nothing else stands
between a connection and the functions of ``api_handlers``.
"""

import logging
from typing import Any

from barnabas.api_handlers.answering import CloseConnection, Later
from barnabas.api_handlers.api_versions import unsupported_version
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.registry import Api
from barnabas.errors import KafkaError, UnknownServerError
from barnabas.transactions.messages import Overtaken
from barnabas.wire.headers import read_request_header
from barnabas.wire.message import Request, Response
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.schema import Field
from barnabas.wire.types import MISSING, Buffer

logger = logging.getLogger(__name__)

Buffers = list[Buffer]

API_KEY_SIZE = 2
"""Bytes at the beginning of each request that say what it asks for."""


def respond(frame: memoryview, context: Context) -> "Buffers | Later[Response] | None":
    """The answer to the request in ``frame``, as the pieces to send; a promise of it; or None if there is none.

    :raises MalformedMessage: the frame is not what it says it is
    :raises CloseConnection: the API or the version is none that we answer, as Apache's broker does
    """
    api_key = int.from_bytes(frame[:API_KEY_SIZE], signed=True)
    api = context.apis.get(api_key)
    if api is None:
        raise CloseConnection(f"API key {api_key} is not answered here")
    asked = api.request  # before the header, which cannot be read as long as nobody has declared the request
    header, body = read_request_header(frame)
    version, correlation_id = header.request_api_version, header.correlation_id
    context.api_version = version
    context.correlation_id = correlation_id
    context.client_id = header.client_id
    if not api.versions.first <= version <= api.versions.last:
        if api_key == ApiVersionsRequest.api_key:
            return unsupported_version(context).encode_frame(correlation_id, 0)
        raise CloseConnection(f"{asked.__name__} in version {version} is not answered here")
    request = asked.decode(frame, version=version, at=body)
    answer = handle(api, request, context)
    if isinstance(answer, Later):
        if answer.response is None:
            return answer
        answer = answer.response
    return None if answer is None else encode(answer, correlation_id, version)


def handle(api: Api, request: Request, context: Context) -> "Response | Later[Response] | None":
    """Call the handler; an error that it let go becomes the whole response's."""
    try:
        answer: Response | Later[Response] | None = api.handle(request, context)
    except KafkaError as error:
        return failed(request, error)
    except CloseConnection:
        raise
    except Overtaken as error:
        raise CloseConnection(str(error)) from error
    except Exception:
        logger.exception("A bug of ours, met by %s version %s: %r", api.request.__name__, context.api_version, request)
        return failed(request, UnknownServerError())
    return answer


def failed(request: Request, error: KafkaError) -> Response:
    """A response that says nothing but the error; the connection closes when it has no place for one."""
    response = type(request).response
    fields = {field.name: field for field in response.wire_fields()}
    if "error_code" not in fields:
        raise CloseConnection(f"{type(request).__name__} failed: {error}")
    values = {name: empty(field) for name, field in fields.items() if field.default is MISSING}
    values["error_code"] = error.code
    if "error_message" in fields:
        values["error_message"] = str(error)
    return response(**values)


def empty(field: Field) -> Any:
    """What stands in a field about which there is nothing to say."""
    if field.is_array:
        return []
    return field.kind() if isinstance(field.kind, type) else field.kind.default


def encode(response: Response, correlation_id: int, version: int) -> "Buffers":
    """Size, header and body, as pieces: what is large goes out as it is."""
    return response.encode_frame(correlation_id, version)

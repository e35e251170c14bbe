"""Calls the handler of a request, and turns an error that it raises into the API's error response.

Knows nothing of bytes or connections.
"""

import logging
from collections.abc import Callable
from typing import Final

from barnabas.api_handlers.answering import Answer
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.error_responses import error_response
from barnabas.api_handlers.registry import Api, Promise
from barnabas.errors import CloseConnection, KafkaError, UnknownServerError
from barnabas.wire.message import Request, Response

logger = logging.getLogger(__name__)

Handle = Callable[[Api, Request, Context], Answer]
"""Answers a request: :func:`handle`, or a wrapper of it that counts requests."""

EXEMPT: Final = frozenset({27, 52, 53, 54, 56, 58, 59, 82})
"""WriteTxnMarkers, AlterPartition, Envelope (the request in it counts), and the requests of the quorum's voters."""

EXEMPT_ON_CONTROLLERS: Final = frozenset({1, 55, 80, 81})
"""The APIs that the quorum answers on a controller (``ControllerApis.handleRaftRequest``)."""


def handle(api: Api, request: Request, context: Context) -> Answer:
    """Calls the handler. An error that it raises becomes the API's error response.

    :raises CloseConnection: the request has no response, or its response has no error code
    """
    try:
        if context.broker.authorizer is not None:
            return guarded(api, request, context)
        answer: Answer = api.handle(request, context)
    except Exception as error:
        return failed(api, request, context, error)
    return answer


def failed(api: Api, request: Request, context: Context, error: Exception) -> Response:
    """Returns the API's response to a request whose handler has raised ``error``.

    :raises CloseConnection: the handler has raised it, or the response has no error code
    """
    if isinstance(error, CloseConnection):
        raise error
    if not isinstance(error, KafkaError):
        name, version = api.request.__name__, context.api_version
        logger.error("Cannot answer %s version %s: %r", name, version, request, exc_info=error)
        error = UnknownServerError()
    return error_response(request, error, context.api_version)


def is_exempt(api_key: int, promise: Promise) -> bool:
    """Returns whether the request is exempt from request quotas, since nodes send it to each other."""
    return api_key in EXEMPT or (promise.is_controllers and api_key in EXEMPT_ON_CONTROLLERS)


def guarded(api: Api, request: Request, context: Context) -> Answer:
    """Answers the request within the rights of its sender. Imported when it is needed."""
    from barnabas.api_handlers.rights.guarding import guarded

    return guarded(api, request, context)

"""Has a request answered by its handler, and its errors in the shape that the API has for them.

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
from barnabas.wire.message import Request

logger = logging.getLogger(__name__)

Handle = Callable[[Api, Request, Context], Answer]
"""Has a request answered: :func:`handle`, or what counts requests on the way to it."""

EXEMPT: Final = frozenset({27, 52, 53, 54, 56, 58, 59, 82})
"""WriteTxnMarkers, AlterPartition, Envelope (the request in it counts), and what the voters of the quorum send."""

EXEMPT_ON_CONTROLLERS: Final = frozenset({1, 55, 80, 81})
"""What a controller has the quorum answer (``ControllerApis.handleRaftRequest``)."""


def handle(api: Api, request: Request, context: Context) -> Answer:
    """Calls the handler. An error that it raises becomes the answer, in the shape that the API has for errors.

    :raises CloseConnection: the protocol has no answer to the request, or none that has a place for the error
    """
    try:
        if context.broker.authorizer is not None:
            return guarded(api, request, context)
        answer: Answer = api.handle(request, context)
    except KafkaError as error:
        return error_response(request, error, context.api_version)
    except CloseConnection:
        raise
    except Exception:
        logger.exception("Cannot answer %s version %s: %r", api.request.__name__, context.api_version, request)
        return error_response(request, UnknownServerError(), context.api_version)
    return answer


def is_exempt(api_key: int, promise: Promise) -> bool:
    """Returns whether the time of such a request counts for no client: nodes send it one another."""
    return api_key in EXEMPT or (promise.is_controllers and api_key in EXEMPT_ON_CONTROLLERS)


def guarded(api: Api, request: Request, context: Context) -> Answer:
    """Has the request answered as far as its sender's rights go. Imported when it is needed."""
    from barnabas.api_handlers.rights.guarding import guarded

    return guarded(api, request, context)

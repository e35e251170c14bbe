"""Sends requests to handlers without a connection: with the context of dispatch, and its error responses."""

from collections.abc import Callable
from typing import Any

from barnabas.api_handlers.context import Context
from barnabas.api_handlers.error_responses import error_response
from barnabas.api_handlers.session import Session
from barnabas.errors import KafkaError
from barnabas.wire.message import Request


def context_of(
    broker: Any,
    api_version: int = 0,
    *,
    client_id: str | None = None,
    listener: str = "PLAINTEXT",
    connection: int = 0,
) -> Context:
    """Returns the context of a request that arrives now."""
    session = Session(listener=listener, client_host="127.0.0.1", number=connection)
    clock = getattr(broker, "clock", None)
    time_ms = clock.time_ms() if clock is not None else 0
    return Context(broker, session, api_version=api_version, client_id=client_id, time_ms=time_ms)


def handled(handle: Callable[[Any, Context], Any], request: Request, context: Context) -> Any:
    """Returns the handler's response, or the error response if it raises an error."""
    try:
        return handle(request, context)
    except KafkaError as error:
        return error_response(request, error, context.api_version)

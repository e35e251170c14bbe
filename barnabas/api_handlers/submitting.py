"""Answers a request with the result of a controller command, once its records are committed.

Knows nothing of any command.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.error_responses import resolve_with_error
from barnabas.errors import KafkaError, UnknownServerError
from barnabas.wire.message import Request, Response

if TYPE_CHECKING:
    from barnabas.cluster.controller.commands.configs import AlteredConfigs

logger = logging.getLogger(__name__)

R = TypeVar("R", bound=Response)


def submit(
    command: Any,
    request: Request,
    context: Context,
    respond: Callable[[Any], R],
) -> R | Later[R]:
    """Submits the command, and returns what ``respond`` returns for its result, at once or later.

    If the command is refused or lost, the response is the error response of the API.
    """
    version = context.api_version
    later: Later[R] = Later()
    _submit(command, context, later, respond, lambda error: resolve_with_error(later, request, error, version))
    return later if later.response is None else later.response


def submit_rest(
    request: Any,
    done: Mapping[int, KafkaError | None],
    alteration: Callable[[Any], Any],
    command: Callable[..., Any],
    response: Callable[..., R],
    result: Callable[[Any, KafkaError | None], Any],
    context: Context,
) -> R | Later[R]:
    """Submits the resources of a request that alters configs, except those that this node has decided.

    :param done: results (an error or None) of the resources that this node has decided, by their index in the request
    :param alteration: returns the arguments of the command for a resource
    :param response: the class of the response
    :param result: makes the part of the response about a resource
    """
    rest = [alteration(resource) for index, resource in enumerate(request.resources) if index not in done]

    def respond(results: "Sequence[AlteredConfigs]") -> R:
        decided = iter(results)
        return response(
            responses=[
                result(resource, done[index] if index in done else next(decided).error)
                for index, resource in enumerate(request.resources)
            ]
        )

    return submit(command(rest, request.validate_only), request, context, respond)


def submit_refusing(
    command: Any, context: Context, respond: Callable[[Any], R], refuse: Callable[[KafkaError], R]
) -> R | Later[R]:
    """Submits the command, and returns what ``respond`` or ``refuse`` returns, at once or later."""
    later: Later[R] = Later()
    _submit(command, context, later, respond, lambda error: later.resolve(refuse(error)))
    return later if later.response is None else later.response


def _submit(
    command: Any, context: Context, later: Later[R], respond: Callable[[Any], R], refuse: Callable[[KafkaError], None]
) -> None:
    def done(result: Any, error: KafkaError | None) -> None:
        if error is None:
            try:
                later.resolve(respond(result))
                return
            except Exception:
                logger.exception("Cannot answer for %r", command)
                error = UnknownServerError()
        refuse(error)

    context.broker.controller.submit(command, done)

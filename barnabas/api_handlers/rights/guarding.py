"""Checks a request against the rights of its sender, and calls the handler with what is allowed.

Knows nothing of any API: the table lists them.
"""

from functools import partial
from typing import Any

from barnabas.api_handlers.access import Access
from barnabas.api_handlers.answering import Answer
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.error_responses import error_response
from barnabas.api_handlers.registry import Api, ForwardedApi
from barnabas.api_handlers.rights.guard import Guarded
from barnabas.api_handlers.rights.table import ON_CONTROLLERS, RIGHTS
from barnabas.errors import KafkaError
from barnabas.wire.message import Request


def guarded(api: Api, request: Request, context: Context) -> Answer:
    """Answers a request as its sender's rights allow. Only for a node with an authorizer.

    A request that is forwarded unchanged is checked by the active controller.
    """
    if isinstance(api, ForwardedApi) and context.is_elsewhere:
        return serve(api, context, request)
    access = Access(context, api.request.__name__.removesuffix("Request"))
    guard = RIGHTS[api.key].guard
    if context.session.promise.is_controllers:
        guard = ON_CONTROLLERS.get(api.key, guard)
    return guard(Guarded(request, context, access, partial(serve, api, context)))


def serve(api: Api, context: Context, request: Any) -> Answer:
    """Calls the handler with the request, or with the allowed part of it."""
    try:
        answer: Answer = api.handle(request, context)
    except KafkaError as error:
        return error_response(request, error, context.api_version)
    return answer

"""Forwards config changes to the active controller, except those that the broker decides itself. The broker checks its
own configs first.

Knows nothing of what a config means. Imported on nodes that are not the active controller. Apache Kafka's
``ConfigAdminManager``: ``preprocess``, ``copyWithoutPreprocessed`` and ``reassembleIncrementalResponse``.
"""

from collections.abc import Callable, Mapping
from typing import Any

from barnabas.api_handlers.answering import Answer, then
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.forwarding import forward
from barnabas.cluster.controller.config_decisions import KINDS
from barnabas.cluster.controller.decision import Surroundings
from barnabas.cluster.controller.decisions import decide
from barnabas.cluster.controller.heartbeats import Heartbeats
from barnabas.config.dynamic import BROKER_RESOURCE
from barnabas.errors import KafkaError, UnknownServerError


def forward_rest(
    request: Any,
    done: Mapping[int, KafkaError | None],
    alteration: Callable[[Any], Any],
    command: Callable[..., Any],
    result: Callable[[Any, KafkaError | None], Any],
    context: Context,
) -> Any:
    """Returns the response to a request, after the controller has decided the rest of it.

    :param done: results (an error or None) of the resources that the broker has decided, by their index in the request
    :param alteration: returns the arguments of the command for a resource
    :param result: makes the part of the response about a resource
    """
    errors = dict(done)
    for index, resource in enumerate(request.resources):
        if index not in errors and (resource.resource_type == BROKER_RESOURCE or resource.resource_type not in KINDS):
            error = refusal(command([alteration(resource)], True), context)
            if error is not None:
                errors[index] = error
    rest = [resource for index, resource in enumerate(request.resources) if index not in errors]

    def merged(response: Any) -> Any:
        decided = {(each.resource_type, each.resource_name): each for each in response.responses}
        return type(request).response(
            throttle_time_ms=response.throttle_time_ms,
            responses=[
                result(resource, errors[index])
                if index in errors
                else decided.get((resource.resource_type, resource.resource_name))
                or result(resource, UnknownServerError())
                for index, resource in enumerate(request.resources)
            ],
        )

    if not rest:
        return merged(type(request).response(responses=[]))
    answer: Answer = forward(type(request)(resources=rest, validate_only=request.validate_only), context)
    return then(answer, merged)


def refusal(command: Any, context: Context) -> KafkaError | None:
    """Returns the error if this broker refuses new configs of itself or of all brokers, or if the type of the resource
    is unknown.
    """
    node = context.broker
    heartbeats = Heartbeats(node.clock, lambda: 0)  # which configs do not depend on
    around = Surroundings(node.config, node.config_rules, node.random, heartbeats)
    (altered,) = decide(command, node.image, around).result
    error: KafkaError | None = altered.error
    return error

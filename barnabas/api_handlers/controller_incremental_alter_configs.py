"""IncrementalAlterConfigs (API key 44) at a controller: also for other nodes, whose brokers forward it.

Knows nothing of what may be set or where it is kept: the controller decides, except about the levels of its own
loggers. Apache Kafka's ``ControllerApis.handleIncrementalAlterConfigs``.
"""

from collections import Counter
from typing import Any, cast

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.incremental_alter_configs import alter_loggers, alteration, result
from barnabas.api_handlers.registry import api
from barnabas.api_handlers.submitting import submit_rest
from barnabas.cluster.controller.commands.configs import ConfigResource, IncrementalAlterConfigs
from barnabas.config.dynamic import LOGGER_RESOURCE, RESOURCES
from barnabas.errors import InvalidRequest, KafkaError, UnsupportedVersion
from barnabas.wire.messages.alter_configs import AlterConfigsRequest
from barnabas.wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


@api(IncrementalAlterConfigsRequest)
def controller_incremental_alter_configs(
    request: IncrementalAlterConfigsRequest, context: Context
) -> IncrementalAlterConfigsResponse | Later[IncrementalAlterConfigsResponse]:
    """Changes the configs of each resource, or only checks the changes."""
    done = refused(request)
    for index, resource in enumerate(request.resources):
        if index not in done and resource.resource_type == LOGGER_RESOURCE:
            try:
                alter_loggers(resource, context.broker.node_id, validate_only=request.validate_only)
                done[index] = None
            except KafkaError as error:
                done[index] = error
    return submit_rest(
        request, done, alteration, IncrementalAlterConfigs, IncrementalAlterConfigsResponse, result, context
    )


def refused(request: AlterConfigsRequest | IncrementalAlterConfigsRequest) -> dict[int, KafkaError | None]:
    """Returns the errors of unknown and repeated resources, by their places in the request."""
    resources = [
        ConfigResource(each.resource_type, each.resource_name) for each in cast("list[Any]", request.resources)
    ]
    counts = Counter(resources)
    errors: dict[int, KafkaError | None] = {}
    for index, resource in enumerate(resources):
        if resource.type not in RESOURCES:
            errors[index] = UnsupportedVersion(f"Unknown resource type {resource.type}.")
        elif counts[resource] > 1:
            errors[index] = InvalidRequest("Duplicate resource.")
    return errors

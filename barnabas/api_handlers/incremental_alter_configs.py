"""IncrementalAlterConfigs (API key 44): changes single configs of a resource, and leaves the others as they are.

Knows nothing of what may be set or where it is kept: the controller decides, except about the levels of loggers, which
belong to this process. Errors are those of Apache Kafka's ``ConfigAdminManager``.
"""

from collections import Counter
from collections.abc import Mapping

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.registry import api
from barnabas.api_handlers.submitting import submit_rest
from barnabas.cluster.controller.commands.configs import (
    DELETE,
    SET,
    SUBTRACT,
    ConfigChange,
    ConfigResource,
    IncrementalAlterConfigs,
)
from barnabas.config import loggers
from barnabas.config.dynamic import BROKER_RESOURCE, LOGGER_RESOURCE, check_node_id
from barnabas.errors import InvalidRequest, KafkaError, UnknownServerError
from barnabas.wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

Resource = IncrementalAlterConfigsRequest.AlterConfigsResource
Result = IncrementalAlterConfigsResponse.AlterConfigsResourceResponse


@api(IncrementalAlterConfigsRequest)
def incremental_alter_configs(
    request: IncrementalAlterConfigsRequest, context: Context
) -> IncrementalAlterConfigsResponse | Later[IncrementalAlterConfigsResponse]:
    """Changes the configs of each resource, or only checks the changes."""
    counts = Counter((resource.resource_type, resource.resource_name) for resource in request.resources)
    done: dict[int, KafkaError | None] = {}
    for index, resource in enumerate(request.resources):
        try:
            check(resource, counts, context.broker.node_id)
            if resource.resource_type == LOGGER_RESOURCE:
                alter_loggers(resource, context.broker.node_id, validate_only=request.validate_only)
                done[index] = None
        except KafkaError as error:
            done[index] = error
    if context.is_elsewhere:
        from barnabas.api_handlers.forwarding_configs import forward_rest

        answer: IncrementalAlterConfigsResponse | Later[IncrementalAlterConfigsResponse] = forward_rest(
            request, done, alteration, IncrementalAlterConfigs, result, context
        )
        return answer
    return submit_rest(
        request, done, alteration, IncrementalAlterConfigs, IncrementalAlterConfigsResponse, result, context
    )


def alteration(resource: Resource) -> tuple[ConfigResource, list[ConfigChange]]:
    """Returns the changes of a resource as the controller takes them."""
    return (
        ConfigResource(resource.resource_type, resource.resource_name),
        [ConfigChange(config.name, config.config_operation, config.value) for config in resource.configs],
    )


def check(resource: Resource, counts: Mapping[tuple[int, str], int], node_id: int) -> None:
    """Checks what a broker can check before it asks the controller.

    :raises KafkaError: the resource is invalid
    """
    names = [config.name for config in resource.configs]
    if counts[resource.resource_type, resource.resource_name] > 1:
        raise InvalidRequest("Each resource must appear at most once.")
    if len(set(names)) < len(names):
        raise InvalidRequest("Error due to duplicate config keys")
    missing = [config.name for config in resource.configs if config.value is None and config.config_operation != DELETE]
    if missing:
        raise InvalidRequest(f"Null value not supported for : {', '.join(missing)}")
    if resource.resource_type != BROKER_RESOURCE:
        return
    if resource.resource_name:
        check_node_id(resource.resource_name, node_id)
    unknown = [operation for operation in _operations(resource) if not SET <= operation <= SUBTRACT]
    if unknown:
        raise InvalidRequest(f"Unknown operations type {unknown[0]}")


def alter_loggers(resource: Resource, node_id: int, *, validate_only: bool) -> None:
    """Makes all of the changes, or none of them."""
    check_node_id(
        resource.resource_name, node_id, unexpected="Unexpected node id. Expected {node_id}, but received {name}"
    )
    for config in resource.configs:
        if config.config_operation == SET:
            loggers.check_set(config.name, config.value)
        elif config.config_operation == DELETE:
            loggers.check_unset(config.name)
        elif config.config_operation <= SUBTRACT:
            word = "SUBTRACT" if config.config_operation == SUBTRACT else "APPEND"
            raise InvalidRequest(f"{word} operation is not allowed for the BROKER_LOGGER resource")
        else:
            raise UnknownServerError
    if validate_only:
        return
    for config in resource.configs:
        if config.config_operation == SET and config.value is not None:
            loggers.set_level(config.name, config.value)
        else:
            loggers.unset_level(config.name)


def _operations(resource: Resource) -> list[int]:
    return [config.config_operation for config in resource.configs]


def result(resource: Resource, error: KafkaError | None) -> Result:
    """Returns the part of the response about one resource."""
    # Apache Kafka has no error message for an unknown operation.
    is_silent = error is None or isinstance(error, UnknownServerError)
    return Result(
        error_code=error.code if error is not None else 0,
        error_message=None if is_silent else str(error),
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )

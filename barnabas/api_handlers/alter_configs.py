"""AlterConfigs (API key 33): sets these configs of a resource, and unsets all others.

Knows nothing of what may be set or where it is kept: the controller decides. Errors are those of Apache Kafka's
``ConfigAdminManager``.
"""

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.registry import api
from barnabas.api_handlers.submitting import submit_rest
from barnabas.cluster.controller.commands.configs import AlterConfigs, ConfigResource
from barnabas.config.dynamic import BROKER_RESOURCE, check_node_id
from barnabas.errors import InvalidRequest, KafkaError
from barnabas.wire.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse

Resource = AlterConfigsRequest.AlterConfigsResource
Result = AlterConfigsResponse.AlterConfigsResourceResponse


@api(AlterConfigsRequest)
def alter_configs(request: AlterConfigsRequest, context: Context) -> AlterConfigsResponse | Later[AlterConfigsResponse]:
    """Replaces the configs of each resource, or only checks the new ones."""
    refused: dict[int, KafkaError | None] = {}
    for index, resource in enumerate(request.resources):
        try:
            check(resource, context.broker.node_id)
        except KafkaError as error:
            refused[index] = error
    if context.is_elsewhere:
        from barnabas.api_handlers.forwarding_configs import forward_rest

        answer: AlterConfigsResponse | Later[AlterConfigsResponse] = forward_rest(
            request, refused, alteration, AlterConfigs, result, context
        )
        return answer
    return submit_rest(request, refused, alteration, AlterConfigs, AlterConfigsResponse, result, context)


def alteration(resource: Resource) -> tuple[ConfigResource, list[tuple[str, str | None]]]:
    """Returns the configs of a resource as the controller takes them."""
    return (
        ConfigResource(resource.resource_type, resource.resource_name),
        [(config.name, config.value) for config in resource.configs],
    )


def check(resource: Resource, node_id: int) -> None:
    """Checks what a broker can check before it asks the controller.

    :raises KafkaError: the resource is invalid
    """
    names = [config.name for config in resource.configs]
    if len(set(names)) < len(names):
        raise InvalidRequest("Error due to duplicate config keys")
    missing = [config.name for config in resource.configs if config.value is None]
    if missing:
        raise InvalidRequest(f"Null value not supported for : {', '.join(missing)}")
    if resource.resource_type == BROKER_RESOURCE and resource.resource_name:
        check_node_id(resource.resource_name, node_id)


def result(resource: Resource, error: KafkaError | None) -> Result:
    """Returns the part of the response about one resource."""
    return Result(
        error_code=error.code if error is not None else 0,
        error_message=str(error) if error is not None else None,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )

"""ListConfigResources (API key 74): the names of the resources that can have configs, by type.

Knows nothing of the configs themselves. Version 0 was ListClientMetricsResources, and lists subscriptions to metrics
only (KIP-1142).
"""

from collections.abc import Callable, Iterable

from barnabas.api_handlers.context import Context
from barnabas.api_handlers.registry import api
from barnabas.broker import Broker
from barnabas.config.dynamic import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    LOGGER_RESOURCE,
    TOPIC_RESOURCE,
)
from barnabas.errors import UnsupportedVersion
from barnabas.wire.messages.list_config_resources import ListConfigResourcesRequest, ListConfigResourcesResponse

HAS_TYPES = 1
"""The first version whose request has the types of resources."""


@api(ListConfigResourcesRequest)
def list_config_resources(request: ListConfigResourcesRequest, context: Context) -> ListConfigResourcesResponse:
    """Lists the resources of the requested types, or of all types."""
    kinds = set(request.resource_types) or set(_NAMES)
    if context.api_version < HAS_TYPES:
        kinds = {CLIENT_METRICS_RESOURCE}
    if not kinds <= set(_NAMES):
        return ListConfigResourcesResponse(error_code=UnsupportedVersion.code, config_resources=[])
    return ListConfigResourcesResponse(
        config_resources=[
            ListConfigResourcesResponse.ConfigResource(resource_name=name, resource_type=kind)
            for kind, names in _NAMES.items()
            if kind in kinds
            for name in names(context.broker)
        ]
    )


def _configured(kind: int) -> Callable[[Broker], Iterable[str]]:
    """Returns a function that lists the resources of a type that exist only by their configs."""
    return lambda broker: [name for of_kind, name in broker.image.configs if of_kind == kind]


def _brokers(broker: Broker) -> Iterable[str]:
    return [str(node_id) for node_id, node in broker.image.brokers.items() if not node.fenced]


_NAMES: dict[int, Callable[[Broker], Iterable[str]]] = {
    GROUP_RESOURCE: _configured(GROUP_RESOURCE),
    CLIENT_METRICS_RESOURCE: _configured(CLIENT_METRICS_RESOURCE),
    LOGGER_RESOURCE: _brokers,
    BROKER_RESOURCE: _brokers,
    TOPIC_RESOURCE: lambda broker: list(broker.image.topics_by_name),
}

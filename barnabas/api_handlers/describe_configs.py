"""DescribeConfigs (API key 32): the configs of topics, brokers, loggers, groups and subscriptions to metrics.

Knows nothing of what a config means or where it is kept. Errors are those of Apache Kafka's ``ConfigHelper``.
"""

from collections.abc import Callable, Sequence

from barnabas.api_handlers.context import Context
from barnabas.api_handlers.registry import api
from barnabas.broker import Broker
from barnabas.cluster.topic_names import check_topic_name
from barnabas.config import describe, loggers
from barnabas.config.describe import ConfigSource, DescribedConfig
from barnabas.config.dynamic import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    LOGGER_RESOURCE,
    TOPIC_RESOURCE,
    check_node_id,
)
from barnabas.errors import InvalidRequest, KafkaError, UnknownTopicOrPartition
from barnabas.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse

Resource = DescribeConfigsRequest.DescribeConfigsResource
Result = DescribeConfigsResponse.DescribeConfigsResult
Entry = Result.DescribeConfigsResourceResult


@api(DescribeConfigsRequest)
def describe_configs(request: DescribeConfigsRequest, context: Context) -> DescribeConfigsResponse:
    """Describes the configs of each resource: the requested ones, or all."""
    if any(each.resource_type not in _DESCRIBE for each in request.resources):
        # Apache Kafka refuses the whole request if one resource has an unknown type.
        error = InvalidRequest()
        return DescribeConfigsResponse(results=[_refused(each, error) for each in request.resources])
    return DescribeConfigsResponse(results=[_result(each, request, context.broker) for each in request.resources])


def _result(resource: Resource, request: DescribeConfigsRequest, broker: Broker) -> Result:
    try:
        described = _DESCRIBE[resource.resource_type](broker, resource.resource_name)
    except KafkaError as error:
        return _refused(resource, error)
    return Result(
        error_message="",
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=[_entry(config, request) for config in _wanted(described, resource.configuration_keys)],
    )


def _wanted(described: Sequence[DescribedConfig], names: Sequence[str] | None) -> list[DescribedConfig]:
    """Returns the configs with these names; all if no names are given."""
    return [config for config in described if not names or config.name in names]


def _refused(resource: Resource, error: KafkaError) -> Result:
    return Result(
        error_code=error.code,
        # Apache Kafka has no error message here.
        error_message="" if isinstance(error, UnknownTopicOrPartition) else str(error),
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=[],
    )


def _entry(config: DescribedConfig, request: DescribeConfigsRequest) -> Entry:
    synonyms = config.synonyms if request.include_synonyms else ()
    is_logger = config.source is ConfigSource.DYNAMIC_BROKER_LOGGER
    return Entry(
        name=config.name,
        value=config.value,
        read_only=config.read_only,
        is_default=config.is_default,
        config_source=config.source,
        is_sensitive=config.sensitive,
        synonyms=[Entry.DescribeConfigsSynonym(name=s.name, value=s.value, source=s.source) for s in synonyms],
        config_type=config.type,
        documentation=config.documentation if request.include_documentation or is_logger else None,
    )


def _topic(broker: Broker, name: str) -> list[DescribedConfig]:
    check_topic_name(name)
    if name not in broker.image.topics_by_name:
        raise UnknownTopicOrPartition
    return describe.describe_topic(broker.config, broker.image.configs_of(TOPIC_RESOURCE, name))


def _broker(broker: Broker, name: str) -> list[DescribedConfig]:
    if not name:
        return describe.describe_cluster_default(broker.config)
    check_node_id(
        name,
        broker.node_id,
        no_number="Broker id must be an integer, but it is: {name}",
        unexpected="Unexpected broker id, expected {node_id} or empty string, but received {name}",
    )
    return describe.describe_broker(broker.config)


def _logger(broker: Broker, name: str) -> list[DescribedConfig]:
    if not name:
        raise InvalidRequest("Broker id must not be empty")
    check_node_id(
        name,
        broker.node_id,
        no_number="Broker id must be an integer, but it is: {name}",
        unexpected="Unexpected broker id, expected {node_id} but received {name}",
    )
    return [
        DescribedConfig(logger, level, ConfigSource.DYNAMIC_BROKER_LOGGER, documentation="")
        for logger, level in loggers.levels().items()
    ]


def _group(broker: Broker, name: str) -> list[DescribedConfig]:
    if not name:
        raise InvalidRequest("Group name must not be empty")
    return describe.describe_group(broker.config, broker.image.configs_of(GROUP_RESOURCE, name))


def _client_metrics(broker: Broker, name: str) -> list[DescribedConfig]:
    if not name:
        raise InvalidRequest("Client metrics subscription name must not be empty")
    return describe.describe_client_metrics(broker.image.configs_of(CLIENT_METRICS_RESOURCE, name))


_DESCRIBE: dict[int, Callable[[Broker, str], list[DescribedConfig]]] = {
    TOPIC_RESOURCE: _topic,
    BROKER_RESOURCE: _broker,
    LOGGER_RESOURCE: _logger,
    CLIENT_METRICS_RESOURCE: _client_metrics,
    GROUP_RESOURCE: _group,
}

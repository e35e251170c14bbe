"""The guards of CreateTopics, CreatePartitions, DeleteTopics and the configs.

Knows nothing of the rules for topics. Apache Kafka's ``ControllerApis`` and ``ConfigHelper``.
"""

from collections import Counter
from typing import Any

from barnabas.api_handlers import alter_configs, incremental_alter_configs
from barnabas.api_handlers.access import Access
from barnabas.api_handlers.answering import Answer, then
from barnabas.api_handlers.describe_configs import _DESCRIBE as DESCRIBABLE
from barnabas.api_handlers.rights.guard import ERROR_OF, EachOf, Guarded, Order, split
from barnabas.cluster.topic_names import CLUSTER_METADATA
from barnabas.config.dynamic import GROUP_RESOURCE, LOGGER_RESOURCE, RESOURCES, TOPIC_RESOURCE
from barnabas.errors import KafkaError, TopicAuthorizationFailed
from barnabas.security.acls import CLUSTER_NAME, Operation, ResourceType
from barnabas.wire.message import Response
from barnabas.wire.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from barnabas.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from barnabas.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from barnabas.wire.messages.describe_configs import DescribeConfigsResponse
from barnabas.wire.messages.incremental_alter_configs import IncrementalAlterConfigsResponse
from barnabas.wire.types import ZERO_UUID

TOPIC = ResourceType.TOPIC


# ---------------------------------------------------------------- topics


def create_topics(guarded: Guarded) -> Answer:
    """Needs CREATE on the cluster or on each topic; without DESCRIBE_CONFIGS the new topic's configs are not shown."""
    request, access = guarded.request, guarded.access
    counts = Counter(topic.name for topic in request.topics)
    names = [name for name in counts if name != CLUSTER_METADATA]
    allowed = frozenset(names)
    if not access.on_cluster(Operation.CREATE, logs_refusal=False):
        allowed = access.allowed(Operation.CREATE, TOPIC, names)
    verdicts = [
        topic.name in allowed or counts[topic.name] > 1 or topic.name == CLUSTER_METADATA for topic in request.topics
    ]
    each = EachOf(Operation.CREATE, TOPIC, "topics", "name", "topics", refuse=_refused_creation)
    return then(split(guarded, each, verdicts), lambda response: _without_configs(response, access))


def _refused_creation(guarded: Guarded, request: CreateTopicsRequest) -> CreateTopicsResponse:
    code = TopicAuthorizationFailed.code
    return CreateTopicsResponse(
        topics=[
            CreateTopicsResponse.CreatableTopicResult(
                name=topic.name, error_code=code, error_message="Authorization failed."
            )
            for topic in request.topics
        ]
    )


def _without_configs(response: CreateTopicsResponse, access: Access) -> CreateTopicsResponse:
    created = [topic for topic in response.topics if topic.error_code == 0]
    names = (topic.name for topic in created)
    visible = access.allowed(Operation.DESCRIBE_CONFIGS, TOPIC, names, logs_refusal=False)
    for topic in created:
        if topic.name not in visible:
            topic.topic_config_error_code = TopicAuthorizationFailed.code
            topic.num_partitions = topic.replication_factor = -1
            topic.configs = []
    return response


def create_partitions(guarded: Guarded) -> Answer:
    """Needs ALTER on each topic. A topic that is named twice is INVALID_REQUEST, whatever the rights."""
    request = guarded.request
    counts = Counter(topic.name for topic in request.topics)
    allowed = guarded.access.allowed(Operation.ALTER, TOPIC, counts)
    each = EachOf(Operation.ALTER, TOPIC, "topics", "name", "results", order=Order.FIRST, refuse=_refused_partitions)
    return split(guarded, each, [topic.name in allowed or counts[topic.name] > 1 for topic in request.topics])


def _refused_partitions(guarded: Guarded, request: CreatePartitionsRequest) -> CreatePartitionsResponse:
    code = TopicAuthorizationFailed.code
    return CreatePartitionsResponse(
        results=[
            CreatePartitionsResponse.CreatePartitionsTopicResult(name=topic.name, error_code=code)
            for topic in request.topics
        ]
    )


def delete_topics(guarded: Guarded) -> Answer:
    """Needs DELETE on each topic. By id, a refusal names the topic to those who may describe it."""
    request, context = guarded.request, guarded.context
    if not context.broker.config["delete.topic.enable"]:
        return guarded.serve(request)
    if request.topic_names:
        each = EachOf(Operation.DELETE, TOPIC, "topic_names", "", "responses", refuse=_refused_deletion)
        names = list(request.topic_names)
    else:
        each = EachOf(Operation.DELETE, TOPIC, "topics", "name", "responses", refuse=_refused_deletion)
        names = [_name_of(topic, guarded) for topic in request.topics]
    counts = Counter(names)
    allowed = guarded.access.allowed(Operation.DELETE, TOPIC, (name for name in names if name is not None))
    return split(guarded, each, [name is None or name in allowed or counts[name] > 1 for name in names])


def _name_of(topic: DeleteTopicsRequest.DeleteTopicState, guarded: Guarded) -> str | None:
    """Returns the name of the topic; None if the controller is to refuse the entry."""
    if topic.name is not None:
        return topic.name if topic.topic_id == ZERO_UUID else None
    return guarded.context.broker.topic_name(topic.topic_id)


def _refused_deletion(guarded: Guarded, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    error = TopicAuthorizationFailed()
    named: list[tuple[str | None, bytes]] = [(name, ZERO_UUID) for name in request.topic_names]
    for topic in request.topics:
        name = topic.name
        if name is None:
            known = guarded.context.broker.topic_name(topic.topic_id) or ""
            visible = guarded.access.allows(Operation.DESCRIBE, TOPIC, known, logs_refusal=False)
            name = known if visible else None
        named.append((name, topic.topic_id))
    return DeleteTopicsResponse(
        responses=[
            DeleteTopicsResponse.DeletableTopicResult(
                name=name, topic_id=topic_id, error_code=error.code, error_message=str(error)
            )
            for name, topic_id in named
        ]
    )


# ---------------------------------------------------------------- configs

KINDS = {TOPIC_RESOURCE: ResourceType.TOPIC, GROUP_RESOURCE: ResourceType.GROUP}
"""Types of resources whose configs need a right on the resource itself. All others need one on the cluster."""


def _may(operation: Operation, resource: Any, access: Access) -> bool:
    kind = KINDS.get(resource.resource_type, ResourceType.CLUSTER)
    return access.allows(operation, kind, CLUSTER_NAME if kind is ResourceType.CLUSTER else resource.resource_name)


def _error(resource: Any) -> KafkaError:
    return ERROR_OF[KINDS.get(resource.resource_type, ResourceType.CLUSTER)]()


def describe_configs(guarded: Guarded) -> Answer:
    """Needs DESCRIBE_CONFIGS on each topic or group, or on the cluster. An unknown type of resource comes first."""
    resources = guarded.request.resources
    if any(each.resource_type not in DESCRIBABLE for each in resources):
        return guarded.serve(guarded.request)
    each = EachOf(Operation.DESCRIBE_CONFIGS, TOPIC, "resources", "resource_name", "results", refuse=_refused_configs)
    return split(guarded, each, [_may(Operation.DESCRIBE_CONFIGS, resource, guarded.access) for resource in resources])


def _refused_configs(guarded: Guarded, request: Any) -> Response:
    return DescribeConfigsResponse(
        results=[
            DescribeConfigsResponse.DescribeConfigsResult(
                error_code=_error(each).code,
                error_message=str(_error(each)),
                resource_type=each.resource_type,
                resource_name=each.resource_name,
                configs=[],
            )
            for each in request.resources
        ]
    )


def alter(guarded: Guarded) -> Answer:
    """Needs ALTER_CONFIGS on each topic or group, or on the cluster. Invalid requests are refused before rights are
    checked.
    """
    request, node_id = guarded.request, guarded.context.broker.node_id
    counts = Counter((each.resource_type, each.resource_name) for each in request.resources)

    def is_wrong(resource: Any) -> bool:
        try:
            if request.api_key == AlterConfigsRequest.api_key:
                alter_configs.check(resource, node_id)
            else:
                incremental_alter_configs.check(resource, counts, node_id)
        except KafkaError:
            return True
        return resource.resource_type not in DESCRIBABLE

    each = EachOf(Operation.ALTER_CONFIGS, TOPIC, "resources", "resource_name", "responses", refuse=_refused_changes)
    verdicts = [is_wrong(one) or _may(Operation.ALTER_CONFIGS, one, guarded.access) for one in request.resources]
    return then(split(guarded, each, verdicts), lambda response: _in_order(request, response))


def alter_at_controller(guarded: Guarded) -> Answer:
    """Needs ALTER_CONFIGS on each topic or group, or on the cluster; CLUSTER_ACTION for the controller's loggers."""
    request, access = guarded.request, guarded.access

    def may(resource: Any) -> bool:
        if resource.resource_type == LOGGER_RESOURCE:
            return access.on_cluster(Operation.CLUSTER_ACTION)
        return resource.resource_type not in RESOURCES or _may(Operation.ALTER_CONFIGS, resource, access)

    each = EachOf(Operation.ALTER_CONFIGS, TOPIC, "resources", "resource_name", "responses", refuse=_refused_changes)
    return then(split(guarded, each, map(may, request.resources)), lambda response: _in_order(request, response))


def _in_order(request: Any, response: Any) -> Any:
    """Puts the results in the order of the request."""
    results: dict[tuple[int, str], list[Any]] = {}
    for result in response.responses:
        results.setdefault((result.resource_type, result.resource_name), []).append(result)
    response.responses = [results[each.resource_type, each.resource_name].pop(0) for each in request.resources]
    return response


def _refused_changes(guarded: Guarded, request: Any) -> Response:
    response = (
        AlterConfigsResponse if request.api_key == AlterConfigsRequest.api_key else IncrementalAlterConfigsResponse
    )
    result: Any = (
        AlterConfigsResponse.AlterConfigsResourceResponse
        if response is AlterConfigsResponse
        else IncrementalAlterConfigsResponse.AlterConfigsResourceResponse
    )
    # A broker refuses changes of its loggers' levels without an error message (``RuntimeLoggerManager``).
    silent = () if guarded.context.session.promise.is_controllers else (LOGGER_RESOURCE,)
    return response(
        responses=[
            result(
                error_code=_error(each).code,
                error_message=None if each.resource_type in silent else str(_error(each)),
                resource_type=each.resource_type,
                resource_name=each.resource_name,
            )
            for each in request.resources
        ]
    )

"""The guards of Metadata, DescribeTopicPartitions and DescribeCluster.

Knows nothing of brokers and leaders. Apache Kafka's ``KafkaApis.handleTopicMetadataRequest`` and
``DescribeTopicPartitionsRequestHandler``.
"""

from barnabas.api_handlers.access import Access
from barnabas.api_handlers.answering import Answer, then
from barnabas.api_handlers.metadata import BY_ID, check
from barnabas.api_handlers.outcome import NOT_REQUESTED
from barnabas.api_handlers.rights.guard import Guarded, with_entries
from barnabas.broker import Broker
from barnabas.errors import TopicAuthorizationFailed
from barnabas.security.acls import Operation, ResourceType
from barnabas.wire.messages.describe_cluster import DescribeClusterResponse
from barnabas.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)
from barnabas.wire.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.wire.types import ZERO_UUID

Topic = MetadataResponse.MetadataResponseTopic
RequestTopic = MetadataRequest.MetadataRequestTopic
Page = DescribeTopicPartitionsResponse

DESCRIBE, TOPIC = Operation.DESCRIBE, ResourceType.TOPIC


def metadata(guarded: Guarded) -> Answer:
    """Needs DESCRIBE on each topic, and CREATE on one that would be created; of all topics, shows the visible ones."""
    request, context, access = guarded.request, guarded.context, guarded.access
    check(request, context.api_version)
    if request.topics is None or (context.api_version == 0 and not request.topics):
        return then(guarded.serve(request), lambda response: _completed(_visible(response, access), request, access))
    hidden = _hidden(request, guarded)
    allowed = [topic for topic in request.topics if id(topic) not in hidden]
    answer = guarded.serve(with_entries(request, "topics", allowed) if hidden else request)
    if hidden and not allowed:  # in version 0 an empty list is one of all topics
        answer = then(answer, _without_topics)

    def add(response: MetadataResponse) -> MetadataResponse:
        _completed(response, request, access)
        response.topics = [*response.topics, *dict(hidden.values()).values()]
        return response

    return then(answer, add)


def _without_topics(response: MetadataResponse) -> MetadataResponse:
    response.topics = []
    return response


def _visible(response: MetadataResponse, access: Access) -> MetadataResponse:
    names = (topic.name for topic in response.topics if topic.name is not None)
    visible = access.allowed(DESCRIBE, TOPIC, names, logs_refusal=False)
    response.topics = [topic for topic in response.topics if topic.name in visible]
    return response


def _hidden(request: MetadataRequest, guarded: Guarded) -> dict[int, tuple[tuple[str, bytes], Topic]]:
    """Returns the results of topics that are hidden or may not be created, by the entries of the request."""
    broker, access = guarded.context.broker, guarded.access
    topics = request.topics or ()
    by_id = guarded.context.api_version >= BY_ID and any(topic.topic_id != ZERO_UUID for topic in topics)
    names = {id(topic): broker.topic_name(topic.topic_id) if by_id else topic.name for topic in topics}
    visible = access.allowed(DESCRIBE, TOPIC, (name for name in names.values() if name is not None))
    creatable = _creatable(request, broker, access, visible)
    hidden = {}
    for topic in topics:
        name = names[id(topic)]
        if name is None or name in creatable:
            continue
        entry = Topic(
            error_code=TopicAuthorizationFailed.code,
            name=None if by_id else name,
            topic_id=topic.topic_id if by_id else ZERO_UUID,
            partitions=[],
        )
        hidden[id(topic)] = ((name, entry.topic_id), entry)
    return hidden


def _creatable(request: MetadataRequest, broker: Broker, access: Access, visible: frozenset[str]) -> frozenset[str]:
    """Returns the visible topics that exist, or that the sender may create if the request would do that."""
    if not (request.allow_auto_topic_creation and broker.config["auto.create.topics.enable"]):
        return visible
    missing = [name for name in visible if name not in broker.image.topics_by_name]
    if not missing or access.on_cluster(Operation.CREATE, logs_refusal=False):
        return visible
    return visible - (frozenset(missing) - access.allowed(Operation.CREATE, TOPIC, missing))


def _completed(response: MetadataResponse, request: MetadataRequest, access: Access) -> MetadataResponse:
    """Fills in the allowed operations that were requested."""
    if request.include_topic_authorized_operations:
        for topic in response.topics:
            if topic.name is not None:
                topic.topic_authorized_operations = access.operations(TOPIC, topic.name)
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = _on_cluster(access)
    return response


def _on_cluster(access: Access) -> int:
    """Returns the allowed operations on the cluster: none without DESCRIBE."""
    return access.cluster_operations() if access.on_cluster(DESCRIBE) else 0


def describe_cluster(guarded: Guarded) -> Answer:
    """Needs nothing; the operations on the cluster are 0 without DESCRIBE."""

    def show(response: DescribeClusterResponse) -> DescribeClusterResponse:
        if response.cluster_authorized_operations != NOT_REQUESTED:
            response.cluster_authorized_operations = _on_cluster(guarded.access)
        return response

    return then(guarded.serve(guarded.request), show)


def describe_topic_partitions(guarded: Guarded) -> Answer:
    """Needs DESCRIBE on each topic; of all topics, it shows the visible ones."""
    request, access = guarded.request, guarded.access
    is_all = not request.topics
    names = guarded.context.broker.image.topics_by_name if is_all else {topic.name for topic in request.topics}
    visible = access.allowed(DESCRIBE, TOPIC, names, logs_refusal=not is_all)
    hidden = [] if is_all else sorted(set(names) - visible)
    cursor = request.cursor
    if cursor is not None:
        hidden = [name for name in hidden if name >= cursor.topic_name]
        visible = frozenset(name for name in visible if name >= cursor.topic_name)
    narrowed = with_entries(
        request, "topics", [DescribeTopicPartitionsRequest.TopicRequest(name=each) for each in sorted(visible)]
    )
    if cursor is not None and cursor.topic_name not in visible and (is_all or cursor.topic_name in names):
        narrowed.cursor = None  # at a topic that is hidden, or was deleted
    answer = guarded.serve(narrowed) if visible else Page(topics=[])

    def add(response: Page) -> Page:
        for topic in response.topics:
            topic.topic_authorized_operations = access.operations(TOPIC, topic.name or "")
        response.topics = [*response.topics, *map(_refused_page, hidden)]
        return response

    return then(answer, add)


def _refused_page(name: str) -> Page.DescribeTopicPartitionsResponseTopic:
    return Page.DescribeTopicPartitionsResponseTopic(
        error_code=TopicAuthorizationFailed.code, name=name, topic_id=ZERO_UUID, is_internal=False, partitions=[]
    )

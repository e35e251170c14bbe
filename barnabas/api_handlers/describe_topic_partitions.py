"""DescribeTopicPartitions (API key 75): topics by name, their partitions page by page (KIP-966).

Knows nothing of the pages before and after. Order and limits are those of Apache Kafka's
``DescribeTopicPartitionsRequestHandler``.
"""

from collections.abc import Iterable

from barnabas.api_handlers.context import Context
from barnabas.api_handlers.metadata import Description
from barnabas.api_handlers.outcome import TOPIC_OPERATIONS
from barnabas.api_handlers.registry import api
from barnabas.cluster.image.image import PartitionImage, TopicImage
from barnabas.cluster.topic_names import INTERNAL, is_legal_topic_name
from barnabas.errors import (
    InvalidRequest,
    InvalidTopicException,
    UnknownServerError,
    UnknownTopicOrPartition,
)
from barnabas.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)
from barnabas.wire.types import ZERO_UUID

Topic = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic
Partition = Topic.DescribeTopicPartitionsResponsePartition
Cursor = DescribeTopicPartitionsResponse.Cursor

METADATA_VERSION = 1
"""The version of Metadata to describe partitions in: from 1 on, replicas that are offline are named."""


@api(DescribeTopicPartitionsRequest)
def describe_topic_partitions(
    request: DescribeTopicPartitionsRequest, context: Context
) -> DescribeTopicPartitionsResponse:
    """Describes topics in the order of their names, from the cursor on, up to the limit of partitions."""
    broker = context.broker
    names, start = remaining(request, broker.image.topics_by_name)
    describe = Description(broker, context.session.listener, METADATA_VERSION)
    room = min(broker.config["max.request.partition.size.limit"], max(request.response_partition_limit, 1))
    response = DescribeTopicPartitionsResponse(topics=[])
    for name in names:
        if room == 0:
            response.next_cursor = Cursor(topic_name=name, partition_index=0)
            break
        topic = broker.image.topics_by_name.get(name)
        first, start = start, 0
        if topic is None:
            response.topics.append(missing_topic(name))
            continue
        described, left = page(topic, first, room, describe)
        response.topics.append(described)
        room -= len(described.partitions)
        if left is not None:
            response.next_cursor = Cursor(topic_name=name, partition_index=left)
            break
    return response


def remaining(request: DescribeTopicPartitionsRequest, existing: Iterable[str]) -> tuple[list[str], int]:
    """Returns the names of the remaining topics, and the first partition of the first one.

    :raises InvalidRequest: the cursor is invalid
    """
    names = {topic.name for topic in request.topics}
    cursor = request.cursor
    if not names:
        names = set(existing)
    elif cursor is not None and cursor.topic_name not in names:
        raise InvalidRequest("The cursor is at a topic that is not requested")
    first = ""
    if cursor is not None:
        if cursor.partition_index < 0:
            raise InvalidRequest("The cursor is at a negative partition")
        first = cursor.topic_name
    ordered = sorted(name for name in names if name >= first)
    if "" in ordered:
        raise UnknownServerError
    start = cursor.partition_index if cursor is not None and ordered[:1] == [first] else 0
    return ordered, start


def missing_topic(name: str) -> Topic:
    error = UnknownTopicOrPartition if is_legal_topic_name(name) else InvalidTopicException
    return Topic(
        error_code=error.code,
        name=name,
        topic_id=ZERO_UUID,
        is_internal=name in INTERNAL,
        partitions=[],
        topic_authorized_operations=TOPIC_OPERATIONS,
    )


def page(topic: TopicImage, first: int, room: int, describe: Description) -> tuple[Topic, int | None]:
    """Returns the topic with at most ``room`` partitions, and the first partition that does not fit, if any."""
    indexes = sorted(index for index in topic.partitions if index >= first)
    described = Topic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.name in INTERNAL,
        partitions=[partition(index, topic.partitions[index], describe) for index in indexes[:room]],
        topic_authorized_operations=TOPIC_OPERATIONS,
    )
    return described, indexes[room] if len(indexes) > room else None


def partition(index: int, image: PartitionImage, describe: Description) -> Partition:
    """A partition without a leader has no error, unlike in Metadata."""
    described = describe.partition(index, image)
    return Partition(
        partition_index=index,
        leader_id=described.leader_id,
        leader_epoch=described.leader_epoch,
        replica_nodes=described.replica_nodes,
        isr_nodes=described.isr_nodes,
        eligible_leader_replicas=list(image.elr),
        last_known_elr=list(image.last_known_elr),
        offline_replicas=described.offline_replicas,
    )

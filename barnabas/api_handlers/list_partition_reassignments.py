"""ListPartitionReassignments (API key 46): the partitions that are being moved to other brokers (KIP-455).

Knows nothing of their progress. The response leaves out partitions that are not being moved, or do not exist.
"""

from collections.abc import Iterable

from barnabas.api_handlers.context import Context
from barnabas.api_handlers.error_responses import error_shape
from barnabas.api_handlers.registry import api
from barnabas.cluster.image.image import TopicImage
from barnabas.errors import KafkaError
from barnabas.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)

Topic = ListPartitionReassignmentsResponse.OngoingTopicReassignment


@api(ListPartitionReassignmentsRequest)
def list_partition_reassignments(
    request: ListPartitionReassignmentsRequest, context: Context
) -> ListPartitionReassignmentsResponse:
    """Lists the ongoing reassignments of the requested partitions, or all."""
    topics = context.broker.image.topics_by_name
    requested: Iterable[tuple[TopicImage, Iterable[int]]]
    if request.topics is None:
        requested = ((topic, topic.partitions) for topic in topics.values())
    else:
        requested = ((topics[each.name], each.partition_indexes) for each in request.topics if each.name in topics)
    ongoing = (reassigned(topic, indexes) for topic, indexes in requested)
    return ListPartitionReassignmentsResponse(topics=[topic for topic in ongoing if topic.partitions])


def reassigned(topic: TopicImage, indexes: Iterable[int]) -> Topic:
    return Topic(
        name=topic.name,
        partitions=[
            Topic.OngoingPartitionReassignment(
                partition_index=index,
                replicas=list(partition.replicas),
                adding_replicas=list(partition.adding),
                removing_replicas=list(partition.removing),
            )
            for index in indexes
            if (partition := topic.partitions.get(index)) is not None and partition.is_reassigning
        ],
    )


@error_shape(ListPartitionReassignmentsRequest)
def failed(
    request: ListPartitionReassignmentsRequest, error: KafkaError, version: int
) -> ListPartitionReassignmentsResponse:
    """Apache Kafka lists the requested partitions, without replicas."""
    return ListPartitionReassignmentsResponse(
        error_code=error.code,
        error_message=str(error),
        topics=[
            Topic(
                name=topic.name,
                partitions=[
                    Topic.OngoingPartitionReassignment(
                        partition_index=index, replicas=[], adding_replicas=[], removing_replicas=[]
                    )
                    for index in topic.partition_indexes
                ],
            )
            for topic in request.topics or ()
        ],
    )

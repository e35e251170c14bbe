"""ListPartitionReassignments (API key 46): the partitions that are on their way to other brokers (KIP-455).

Knows nothing of how far they are. What is not under way, or not there at all, is left out without a word.
"""

from collections.abc import Iterable

from barnabas.api_handlers.context import Context
from barnabas.api_handlers.registry import api
from barnabas.cluster.image import TopicImage
from barnabas.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)

Topic = ListPartitionReassignmentsResponse.OngoingTopicReassignment


@api(ListPartitionReassignmentsRequest)
def list_partition_reassignments(
    request: ListPartitionReassignmentsRequest, context: Context
) -> ListPartitionReassignmentsResponse:
    """All that are under way, or those of the partitions that are asked for."""
    topics = context.broker.image.topics_by_name
    asked: Iterable[tuple[TopicImage, Iterable[int]]]
    if request.topics is None:
        asked = ((topic, topic.partitions) for topic in topics.values())
    else:
        asked = ((topics[each.name], each.partition_indexes) for each in request.topics if each.name in topics)
    under_way = (reassigned(topic, indexes) for topic, indexes in asked)
    return ListPartitionReassignmentsResponse(topics=[topic for topic in under_way if topic.partitions])


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

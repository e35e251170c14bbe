"""AlterShareGroupOffsets (API key 91): sets the start offsets of an empty share group (KIP-932).

Knows nothing of how the share coordinator stores them.
"""

from collections.abc import Mapping

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.rebalance_protocols import SHARE, require_protocol
from barnabas.api_handlers.registry import api
from barnabas.errors import KafkaError, UnknownTopicOrPartition
from barnabas.groups.share.messages import PartitionErrors
from barnabas.wire.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
)
from barnabas.wire.types import ZERO_UUID

RequestTopic = AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic
Topic = AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponseTopic
Partition = Topic.AlterShareGroupOffsetsResponsePartition
Answer = AlterShareGroupOffsetsResponse | Later[AlterShareGroupOffsetsResponse]


@api(AlterShareGroupOffsetsRequest)
def alter_share_group_offsets(request: AlterShareGroupOffsetsRequest, context: Context) -> Answer:
    """Initializes the share partitions with these start offsets. Responds once that is durable."""
    topics = context.broker.image.topics_by_name
    ids = {each.topic_name: topics[each.topic_name].id for each in request.topics if each.topic_name in topics}
    starts: dict[bytes, dict[int, int]] = {}
    for topic in request.topics:
        if topic.topic_name in ids:
            existing = topics[topic.topic_name].partitions
            start_offsets = starts.setdefault(ids[topic.topic_name], {})
            start_offsets.update(
                (p.partition_index, p.start_offset) for p in topic.partitions if p.partition_index in existing
            )
    later: Later[AlterShareGroupOffsetsResponse] = Later()

    def altered(found: PartitionErrors | KafkaError) -> None:
        later.resolve(_answer(request, ids, found) if isinstance(found, dict) else _refused(found))

    try:
        require_protocol(SHARE, context)
        wanted = {topic_id: start_offsets for topic_id, start_offsets in starts.items() if start_offsets}
        context.broker.groups.share.alter_offsets(request.group_id, wanted, altered)
    except KafkaError as error:
        return _refused(error)
    return later


def _answer(
    request: AlterShareGroupOffsetsRequest, ids: Mapping[str, bytes], found: PartitionErrors
) -> AlterShareGroupOffsetsResponse:
    """Returns the response. Topics that do not exist come first."""
    in_order = sorted(request.topics, key=lambda topic: topic.topic_name in ids)
    return AlterShareGroupOffsetsResponse(
        responses=[_topic(topic, ids.get(topic.topic_name, ZERO_UUID), found) for topic in in_order]
    )


def _topic(topic: RequestTopic, topic_id: bytes, found: PartitionErrors) -> Topic:
    return Topic(
        topic_name=topic.topic_name,
        topic_id=topic_id,
        partitions=[
            _partition(each.partition_index, found.get((topic_id, each.partition_index), UnknownTopicOrPartition()))
            for each in topic.partitions
        ],
    )


def _partition(index: int, error: KafkaError | None) -> Partition:
    if error is None:
        return Partition(partition_index=index)
    return Partition(partition_index=index, error_code=error.code, error_message=str(error))


def _refused(error: KafkaError) -> AlterShareGroupOffsetsResponse:
    return AlterShareGroupOffsetsResponse(error_code=error.code, error_message=str(error), responses=[])

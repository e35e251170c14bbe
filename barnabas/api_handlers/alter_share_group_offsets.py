"""AlterShareGroupOffsets (API key 91): let a share group that nobody is in begin elsewhere (KIP-932).

Knows nothing of how the share coordinator keeps it.
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

AskedTopic = AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic
Topic = AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponseTopic
Partition = Topic.AlterShareGroupOffsetsResponsePartition
Answer = AlterShareGroupOffsetsResponse | Later[AlterShareGroupOffsetsResponse]


@api(AlterShareGroupOffsetsRequest)
def alter_share_group_offsets(request: AlterShareGroupOffsetsRequest, context: Context) -> Answer:
    """Begin the share partitions anew, each at its offset; answered when that is kept."""
    topics = context.broker.image.topics_by_name
    ids = {each.topic_name: topics[each.topic_name].id for each in request.topics if each.topic_name in topics}
    starts: dict[bytes, dict[int, int]] = {}
    for asked in request.topics:
        if asked.topic_name in ids:
            there = topics[asked.topic_name].partitions
            begun = starts.setdefault(ids[asked.topic_name], {})
            begun.update((p.partition_index, p.start_offset) for p in asked.partitions if p.partition_index in there)
    later: Later[AlterShareGroupOffsetsResponse] = Later()

    def altered(found: PartitionErrors | type[KafkaError]) -> None:
        later.resolve(_answer(request, ids, found) if isinstance(found, dict) else _refused(found()))

    try:
        require_protocol(SHARE, context)
        wanted = {topic_id: begun for topic_id, begun in starts.items() if begun}
        context.broker.groups.share.alter_offsets(request.group_id, wanted, altered)
    except KafkaError as error:
        return _refused(error)
    return later


def _answer(
    request: AlterShareGroupOffsetsRequest, ids: Mapping[str, bytes], found: PartitionErrors
) -> AlterShareGroupOffsetsResponse:
    """Topics that there are not come first."""
    in_order = sorted(request.topics, key=lambda asked: asked.topic_name in ids)
    return AlterShareGroupOffsetsResponse(
        responses=[_topic(asked, ids.get(asked.topic_name, ZERO_UUID), found) for asked in in_order]
    )


def _topic(asked: AskedTopic, topic_id: bytes, found: PartitionErrors) -> Topic:
    return Topic(
        topic_name=asked.topic_name,
        topic_id=topic_id,
        partitions=[
            _partition(each.partition_index, found.get((topic_id, each.partition_index), UnknownTopicOrPartition))
            for each in asked.partitions
        ],
    )


def _partition(index: int, error: type[KafkaError] | None) -> Partition:
    if error is None:
        return Partition(partition_index=index)
    return Partition(partition_index=index, error_code=error.code, error_message=str(error()))


def _refused(error: KafkaError) -> AlterShareGroupOffsetsResponse:
    return AlterShareGroupOffsetsResponse(error_code=error.code, error_message=str(error), responses=[])

"""OffsetForLeaderEpoch (API key 23): where a leader's epoch ends, so that followers and consumers notice a truncation.

Knows nothing of how epochs are kept. Rules of Apache Kafka's ``ReplicaManager.lastOffsetForLeaderEpoch`` (KIP-101,
KIP-279, KIP-320).
"""

from barnabas.api_handlers.context import Context
from barnabas.api_handlers.registry import api
from barnabas.errors import KafkaError
from barnabas.wire.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse

Asked = OffsetForLeaderEpochRequest.OffsetForLeaderTopic.OffsetForLeaderPartition
Topic = OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult
Answer = Topic.EpochEndOffset


@api(OffsetForLeaderEpochRequest)
def offset_for_leader_epoch(request: OffsetForLeaderEpochRequest, context: Context) -> OffsetForLeaderEpochResponse:
    """Answer for each partition, as often as it is asked about."""
    return OffsetForLeaderEpochResponse(
        topics=[
            Topic(topic=topic.topic, partitions=[answer(topic.topic, asked, context) for asked in topic.partitions])
            for topic in request.topics
        ]
    )


def answer(topic: str, asked: Asked, context: Context) -> Answer:
    try:
        partition = context.broker.partition(topic, asked.partition)
        partition.check_leader(asked.current_leader_epoch)
        leader_epoch, end_offset = partition.log.end_offset_for_epoch(asked.leader_epoch)
    except KafkaError as error:
        return Answer(partition=asked.partition, error_code=error.code)
    return Answer(partition=asked.partition, leader_epoch=leader_epoch, end_offset=end_offset)

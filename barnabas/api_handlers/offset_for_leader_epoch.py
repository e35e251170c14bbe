"""OffsetForLeaderEpoch (API key 23): the end offset of a leader epoch, by which clients detect a truncation.

Knows nothing of how leader epochs are stored. Rules of Apache Kafka's ``ReplicaManager.lastOffsetForLeaderEpoch``
(KIP-101, KIP-279, KIP-320).
"""

from barnabas.api_handlers.context import Context
from barnabas.api_handlers.registry import api
from barnabas.errors import KafkaError
from barnabas.wire.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse

RequestedPartition = OffsetForLeaderEpochRequest.OffsetForLeaderTopic.OffsetForLeaderPartition
Topic = OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult
Answer = Topic.EpochEndOffset


@api(OffsetForLeaderEpochRequest)
def offset_for_leader_epoch(request: OffsetForLeaderEpochRequest, context: Context) -> OffsetForLeaderEpochResponse:
    """Looks up the end offset for each partition. A partition that is requested twice has two results."""
    return OffsetForLeaderEpochResponse(
        topics=[
            Topic(
                topic=topic.topic,
                partitions=[answer(topic.topic, requested, context) for requested in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def answer(topic: str, requested: RequestedPartition, context: Context) -> Answer:
    try:
        partition = context.broker.partition(topic, requested.partition)
        partition.check_leader(requested.current_leader_epoch)
        leader_epoch, end_offset = partition.log.end_offset_for_epoch(requested.leader_epoch)
    except KafkaError as error:
        return Answer(partition=requested.partition, error_code=error.code)
    return Answer(partition=requested.partition, leader_epoch=leader_epoch, end_offset=end_offset)

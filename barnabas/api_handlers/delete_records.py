"""DeleteRecords (API key 21): deletes the records before an offset (KIP-107).

Knows nothing of segments, which the log deletes later. Rules of Apache Kafka's ``ReplicaManager.deleteRecords``, which
waits for all replicas; with one replica there is nothing to wait for.
"""

from barnabas.api_handlers.by_topic import by_topic
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.error_responses import derived, error_shape
from barnabas.api_handlers.registry import api
from barnabas.cluster.replication.partition import Partition
from barnabas.cluster.topic_names import INTERNAL
from barnabas.errors import InvalidTopicException, KafkaError, OffsetOutOfRange, PolicyViolation
from barnabas.wire.message import Response
from barnabas.wire.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse

Topic = DeleteRecordsResponse.DeleteRecordsTopicResult
Answer = Topic.DeleteRecordsPartitionResult

HIGH_WATERMARK = -1
"""The offset that stands for the high watermark."""

NO_LOW_WATERMARK = -1


@api(DeleteRecordsRequest)
def delete_records(request: DeleteRecordsRequest, context: Context) -> DeleteRecordsResponse:
    """Moves the log start offset of each partition. Of two offsets for the same partition the last one counts."""
    offsets = {
        (topic.name, requested.partition_index): requested.offset
        for topic in request.topics
        for requested in topic.partitions
    }
    answers = {key: answer(*key, offset, context) for key, offset in offsets.items()}
    return DeleteRecordsResponse(
        topics=[Topic(name=name, partitions=partitions) for name, partitions in by_topic(answers)]
    )


def answer(topic: str, index: int, offset: int, context: Context) -> Answer:
    try:
        partition = context.broker.partition(topic, index)
        if topic in INTERNAL:
            raise InvalidTopicException(f"the records of {topic} are the broker's own")
        partition.check_leader()
        delete_before(partition, offset)
    except KafkaError as error:
        return Answer(partition_index=index, low_watermark=NO_LOW_WATERMARK, error_code=error.code)
    return Answer(partition_index=index, low_watermark=partition.log.log_start_offset)


@error_shape(DeleteRecordsRequest)
def failed(request: DeleteRecordsRequest, error: KafkaError, version: int) -> Response:
    return derived(request, error, version, low_watermark=NO_LOW_WATERMARK)


def delete_before(partition: Partition, offset: int) -> None:
    """Moves the log start offset of the partition to ``offset``, unless it is higher already.

    :raises PolicyViolation: ``cleanup.policy`` of the topic has no ``delete``
    :raises OffsetOutOfRange: the offset is above the high watermark
    """
    log = partition.log
    if not log.config.deletes:
        raise PolicyViolation(f"{partition.topic} is compacted: its cleanup.policy has no delete")
    if offset == HIGH_WATERMARK:
        offset = log.high_watermark
    if offset < 0:
        raise OffsetOutOfRange(f"{offset} is no offset")
    log.delete_records_before(offset)

"""DeleteRecords (API key 21): forget the records before an offset (KIP-107).

Knows nothing of segments, which go when the log next looks for some. Rules of Apache Kafka's
``ReplicaManager.deleteRecords``; every replica has to follow, which on one node is done at once.
"""

from barnabas.api_handlers.by_topic import by_topic
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.error_responses import derived, error_shape
from barnabas.api_handlers.registry import api
from barnabas.cluster.partition import Partition
from barnabas.cluster.topic_names import INTERNAL
from barnabas.errors import InvalidTopicException, KafkaError, OffsetOutOfRange, PolicyViolation
from barnabas.wire.message import Response
from barnabas.wire.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse

Topic = DeleteRecordsResponse.DeleteRecordsTopicResult
Answer = Topic.DeleteRecordsPartitionResult

HIGH_WATERMARK = -1
"""The offset that stands for all that is committed."""

NO_LOW_WATERMARK = -1


@api(DeleteRecordsRequest)
def delete_records(request: DeleteRecordsRequest, context: Context) -> DeleteRecordsResponse:
    """Move the start of each partition; of one that is named twice, the last naming counts."""
    offsets = {
        (topic.name, asked.partition_index): asked.offset for topic in request.topics for asked in topic.partitions
    }
    answers = {key: answer(*key, offset, context) for key, offset in offsets.items()}
    return DeleteRecordsResponse(topics=[Topic(name=name, partitions=told) for name, told in by_topic(answers)])


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
    """Let the partition start at ``offset``, unless it starts later.

    :raises PolicyViolation: compaction alone decides which records of the topic go
    :raises OffsetOutOfRange: beyond what is committed
    """
    log = partition.log
    if not log.config.deletes:
        raise PolicyViolation(f"{partition.topic} is compacted: its cleanup.policy has no delete")
    if offset == HIGH_WATERMARK:
        offset = log.high_watermark
    if offset < 0:
        raise OffsetOutOfRange(f"{offset} is no offset")
    log.delete_records_before(offset)

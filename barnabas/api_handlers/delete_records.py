"""DeleteRecords (API key 21): deletes the records before an offset (KIP-107).

Knows nothing of segments, which the log deletes later. Rules of Apache Kafka's ``ReplicaManager.deleteRecords`` and
``DelayedDeleteRecords``: the response is sent when no replica has the records any more.
"""

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.by_topic import by_topic
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.error_responses import derived, error_shape
from barnabas.api_handlers.registry import api
from barnabas.cluster.replication.delayed_fetch import DelayedFetch
from barnabas.cluster.replication.partition import LOW_WATERMARK, Partition
from barnabas.cluster.topic_names import INTERNAL
from barnabas.errors import InvalidTopicException, KafkaError, OffsetOutOfRange, PolicyViolation, RequestTimedOut
from barnabas.wire.message import Response
from barnabas.wire.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse

Topic = DeleteRecordsResponse.DeleteRecordsTopicResult
Answer = Topic.DeleteRecordsPartitionResult

HIGH_WATERMARK = -1
"""The offset in a request that means the high watermark."""

NO_LOW_WATERMARK = -1


Answers = dict[tuple[str, int], Answer]
Pending = dict[tuple[str, int], int]
"""The offsets up to which some replica has not deleted its records yet."""


@api(DeleteRecordsRequest)
def delete_records(
    request: DeleteRecordsRequest, context: Context
) -> DeleteRecordsResponse | Later[DeleteRecordsResponse]:
    """Moves the log start offset of each partition. Of two offsets for the same partition the last one counts."""
    offsets = {
        (topic.name, requested.partition_index): requested.offset
        for topic in request.topics
        for requested in topic.partitions
    }
    pending: Pending = {}
    answers = {key: answer(*key, offset, context, pending) for key, offset in offsets.items()}
    if not pending:
        return response_of(answers)
    return Waiting(answers, pending, request.timeout_ms, context).later


def response_of(answers: Answers) -> DeleteRecordsResponse:
    return DeleteRecordsResponse(
        topics=[Topic(name=name, partitions=partitions) for name, partitions in by_topic(answers)]
    )


def answer(topic: str, index: int, offset: int, context: Context, pending: Pending) -> Answer:
    """Deletes on the leader. Partitions with followers, which have to delete the records as well, are added to
    ``pending``.
    """
    try:
        partition = context.broker.partition(topic, index)
        if topic in INTERNAL:
            raise InvalidTopicException(f"the records of {topic} are the broker's own")
        partition.check_leader()
        offset = delete_before(partition, offset)
    except KafkaError as error:
        return Answer(partition_index=index, low_watermark=NO_LOW_WATERMARK, error_code=error.code)
    if partition.low_watermark < offset:
        pending[topic, index] = offset
    return Answer(partition_index=index, low_watermark=partition.low_watermark)


class Waiting(DelayedFetch):
    """A response that waits until the followers have deleted the records, too (``DelayedDeleteRecords``)."""

    __slots__ = ("_answers", "_context", "_pending", "later")

    def __init__(self, answers: Answers, pending: Pending, timeout_ms: int, context: Context) -> None:
        broker = context.broker
        partitions = [broker.partitions[key] for key in pending]
        super().__init__(broker.scheduler, partitions, LOW_WATERMARK, max(timeout_ms, 0))
        self._answers, self._pending, self._context = answers, pending, context
        self.later: Later[DeleteRecordsResponse] = Later()
        self.later.on_cancel = self.stop

    def try_complete(self) -> None:
        self._look = None
        for key, offset in list(self._pending.items()):
            answer = self._answers[key]
            try:
                partition = self._context.broker.partition(*key)
                partition.check_leader()
            except KafkaError as error:
                answer.error_code, answer.low_watermark = error.code, NO_LOW_WATERMARK
                del self._pending[key]
            else:
                if partition.low_watermark >= offset:
                    answer.low_watermark = partition.low_watermark
                    del self._pending[key]
        if not self._pending:
            self._respond()

    def expire(self) -> None:
        for key in self._pending:
            self._answers[key].error_code = RequestTimedOut.code
        self._respond()

    def _respond(self) -> None:
        self.stop()
        self.later.resolve(response_of(self._answers))


@error_shape(DeleteRecordsRequest)
def failed(request: DeleteRecordsRequest, error: KafkaError, version: int) -> Response:
    return derived(request, error, version, low_watermark=NO_LOW_WATERMARK)


def delete_before(partition: Partition, offset: int) -> int:
    """Moves the log start offset of the partition to ``offset``, unless it is higher already. Returns the offset.

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
    return offset

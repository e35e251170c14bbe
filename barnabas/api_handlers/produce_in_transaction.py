"""The transactional part of Produce: verifies batches with the transaction coordinator before they are appended.

Knows nothing of how a batch is appended. Rules of Apache Kafka's ``ReplicaManager.handleProduceAppend`` (KIP-890).
"""

from collections.abc import Callable, Sequence
from struct import Struct
from typing import Final, NamedTuple

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.context import Context
from barnabas.broker.transactional import Errors, Operation, ensure_in_transaction
from barnabas.cluster.topic_names import INTERNAL
from barnabas.errors import CloseConnection, InvalidProducerIdMapping, KafkaError, UnknownTopicOrPartition
from barnabas.records.batch import HEADER_SIZE, MAGIC, MAGIC_AT, TRANSACTIONAL_BIT
from barnabas.records.validation import is_one_batch
from barnabas.transactions.messages import ProducerIdentity, TopicPartition
from barnabas.wire.messages.produce import ProduceRequest, ProduceResponse

Topics = Sequence[ProduceRequest.TopicProduceData]
Before = Callable[[TopicPartition], KafkaError | None]
"""Returns the error of a partition that is refused before its log is read, or None."""

Produce = Callable[[ProduceRequest, Context, Before], ProduceResponse | Later[ProduceResponse] | None]

ABORTABLE_SINCE: Final = 11
ADDED_SINCE: Final = 12
"""The first versions that know TRANSACTION_ABORTABLE, and that add partitions to the transaction by producing."""

ADMIN_CLIENT: Final = "__admin_client"
"""The client id that may write to internal topics (``AdminUtils``)."""

ATTRIBUTES_AT: Final = 22
"""The byte of a batch's header with the transactional flag."""

PRODUCER_AT: Final = 43
_PRODUCER: Final = Struct(">qhi")  # id, epoch, sequence of the first record


class Unverified(NamedTuple):
    """The batches of one producer, some of which begin a transaction on their partition."""

    producer_id: int
    producer_epoch: int
    sequences: dict[TopicPartition, int]
    absent: list[TopicPartition]
    """Partitions of the request that do not exist, and are not verified."""


def any_transactional(topics: Topics) -> bool:
    """Returns whether a first batch of some partition is transactional (``RequestUtils.hasTransactionalRecords``)."""
    for topic in topics:
        for requested in topic.partition_data:
            records = requested.records
            if (
                records
                and len(records) >= HEADER_SIZE
                and records[ATTRIBUTES_AT] & TRANSACTIONAL_BIT
                and records[MAGIC_AT] == MAGIC
            ):
                return True
    return False


def everything(error: KafkaError) -> Before:
    """Returns the error for every partition."""
    return lambda place: error


def nothing(place: TopicPartition) -> None:
    """Refuses no partition: the coordinator has verified all."""


def unverified(topics: Topics, context: Context) -> Unverified | None:
    """Returns what the coordinator has to verify; None when every batch continues an ongoing transaction of its log.

    :raises InvalidProducerIdMapping: more than one producer has written
    """
    broker = context.broker
    sequences: dict[TopicPartition, int] = {}
    absent: list[TopicPartition] = []
    writer: tuple[int, int] | None = None
    is_known = True
    for topic in topics:
        name = topic.name or broker.topic_name(topic.topic_id) or ""
        if name in INTERNAL and context.client_id != ADMIN_CLIENT:
            continue
        for requested in topic.partition_data:
            records = requested.records
            if not records or len(records) < HEADER_SIZE or records[MAGIC_AT] != MAGIC:
                continue
            if not records[ATTRIBUTES_AT] & TRANSACTIONAL_BIT:
                continue
            producer_id, producer_epoch, sequence = _PRODUCER.unpack_from(records, PRODUCER_AT)
            place = TopicPartition(name, requested.index)
            partition = broker.partitions.get(place)
            if partition is None:
                absent.append(place)
                continue
            if producer_id < 0:
                continue
            is_ongoing = partition.log.producers.is_ongoing(producer_id, producer_epoch)
            if not is_ongoing and not is_one_batch(records):
                continue
            is_known = is_known and is_ongoing
            if writer is not None and writer != (producer_id, producer_epoch):
                raise InvalidProducerIdMapping("A request has the transactional batches of more than one producer")
            writer = producer_id, producer_epoch
            sequences[place] = sequence
    return None if writer is None or is_known else Unverified(*writer, sequences, absent)


def verified(
    found: Unverified, request: ProduceRequest, context: Context, produce: Produce
) -> ProduceResponse | Later[ProduceResponse] | None:
    """Produces once the coordinator has responded, which is usually at once."""
    broker, version = context.broker, context.api_version
    operation = Operation.DEFAULT_ERROR
    patience_ms = 0
    if version >= ADDED_SINCE:
        operation = Operation.ADD_PARTITION
        patience_ms = broker.config["add.partitions.to.txn.retry.backoff.max.ms"]
    elif version >= ABORTABLE_SINCE:
        operation = Operation.GENERIC_ERROR_SUPPORTED
    verdicts: list[Errors] = []
    later: Later[ProduceResponse] | None = None

    def done(errors: Errors) -> None:
        if later is None:
            verdicts.append(errors)
        else:
            refusals = {**errors, **{place: UnknownTopicOrPartition() for place in found.absent}}
            _produce_later(later, lambda: produce(request, context, refusals.get))

    give_up = ensure_in_transaction(
        broker,
        ProducerIdentity(request.transactional_id or "", found.producer_id, found.producer_epoch),
        found.sequences,
        operation,
        done,
        patience_ms=patience_ms,
    )
    if verdicts:
        return produce(request, context, verdicts[0].get if verdicts[0] else nothing)
    if request.acks == 0:
        give_up()
        raise CloseConnection("a produce request with acks=0 would have to wait for the transaction coordinator")
    _keep_records(request)
    later = Later()
    later.on_cancel = give_up
    return later


def _keep_records(request: ProduceRequest) -> None:
    """Copies the batches: the receive buffer is reused after the request is served."""
    for topic in request.topic_data:
        for requested in topic.partition_data:
            if requested.records is not None:
                requested.records = memoryview(bytearray(requested.records))


def _produce_later(
    later: Later[ProduceResponse], produce: Callable[[], ProduceResponse | Later[ProduceResponse] | None]
) -> None:
    response = produce()
    if isinstance(response, Later):
        response.then(later.resolve)
    elif response is not None:
        later.resolve(response)

"""Queues of encoded batches, one for each partition, in the order of their sequence numbers.

Knows nothing of connections and requests.
"""

from collections import deque
from dataclasses import dataclass, field

from barnabas.columnar.encoding import ProducerStamp, Writable, after, stamp
from barnabas.pipelines.client import TopicPartition
from barnabas.records.batch import RecordBatch
from barnabas.records.builder import build_batch
from barnabas.records.record import records_of


@dataclass(eq=False, slots=True)
class Batch:
    """A batch to send. `first` is the number of the partition's records before it, which orders the batches."""

    topic_partition: TopicPartition
    data: Writable
    count: int
    first: int
    deadline: float
    stamped: ProducerStamp | None = None
    tries: int = 0


@dataclass(slots=True)
class Lane:
    """The queue of one partition: batches that wait, the number of batches in flight, and batches that failed."""

    waiting: deque[Batch] = field(default_factory=deque)
    sent: int = 0
    failed: list[Batch] = field(default_factory=list)
    is_repeating: bool = False  # the batch in flight was sent before
    is_acknowledged: bool = False  # the broker has acknowledged a batch of this producer
    records: int = 0
    not_before: float = 0.0

    @property
    def is_blocked(self) -> bool:
        """Whether a batch failed and is not acknowledged yet, so that later batches may wait for long."""
        return bool(self.failed) or self.is_repeating or (bool(self.waiting) and self.waiting[0].tries > 0)

    @property
    def may_send(self) -> bool:
        """Whether the next batch may be sent now, instead of after the batches in flight.

        The first batch of a producer is sent alone, as a broker that does not know the producer accepts any sequence
        number. A repeated batch is sent alone too. A broker remembers a producer's last five batches. If others were
        sent behind a batch whose response was lost twice, the broker would have forgotten it.
        """
        if not self.waiting or self.failed:
            return False
        return not self.sent or (self.is_acknowledged and not self.is_repeating and self.waiting[0].tries == 0)


def halves(batch: Batch, level: int | None) -> list[Batch]:
    """Splits a batch in two, with the sequence numbers that its records had.

    :param level: the compression level.
    """
    parsed = RecordBatch.parse(batch.data)
    records = list(records_of(parsed))
    first, stamped = batch.first, batch.stamped
    made = []
    for half in (records[: len(records) // 2], records[len(records) // 2 :]):
        data = build_batch(
            ((record.key, record.value, record.timestamp, record.headers) for record in half),
            compression=parsed.compression,
            compression_level=level,
        )
        if stamped is not None:
            stamp(data, stamped)
        made.append(Batch(batch.topic_partition, data, len(half), first, batch.deadline, stamped))
        first += len(half)
        if stamped is not None:
            stamped = stamped._replace(sequence=after(stamped.sequence, len(half)))
    return made

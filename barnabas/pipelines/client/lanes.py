"""Encoded batches in the order in which their partitions must get them.

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
    """A batch on its way; `first` counts the partition's records before it, and so puts batches into order."""

    topic_partition: TopicPartition
    data: Writable
    count: int
    first: int
    deadline: float
    stamped: ProducerStamp | None = None
    tries: int = 0


@dataclass(slots=True)
class Lane:
    """One partition's batches: those that wait, in order; how many are on their way; those that have to go again."""

    waiting: deque[Batch] = field(default_factory=deque)
    sent: int = 0
    failed: list[Batch] = field(default_factory=list)
    again: bool = False  # what is under way was sent before
    known: bool = False  # the broker has acknowledged a batch
    records: int = 0
    not_before: float = 0.0

    @property
    def is_held_up(self) -> bool:
        """Whether something failed and is not there yet: what comes behind it may wait for long."""
        return bool(self.failed) or self.again or (bool(self.waiting) and self.waiting[0].tries > 0)

    @property
    def may_send(self) -> bool:
        """Whether the next batch may go now, or has to wait for those under way.

        The first goes alone: a broker that does not know a producer yet takes any batch for its first. One that goes
        again does, too: a broker knows the last five of a producer again, and would have forgotten the one whose
        answer was lost if others were sent behind it, and it was lost twice.
        """
        if not self.waiting or self.failed:
            return False
        return not self.sent or (self.known and not self.again and self.waiting[0].tries == 0)


def halves(batch: Batch, level: int | None) -> list[Batch]:
    """A batch as two, with the sequences that its records had; `level` is its codec's."""
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

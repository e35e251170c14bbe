"""Encoded batches in the order in which their partitions must get them.

Knows nothing of connections and requests.
"""

from collections import deque
from dataclasses import dataclass, field

from barnabas.columnar.encoding import ProducerStamp, after, stamp
from barnabas.pipelines.client import TopicPartition
from barnabas.records.batch import RecordBatch
from barnabas.records.builder import build_batch
from barnabas.records.record import records_of


@dataclass(eq=False, slots=True)
class Batch:
    """A batch on its way; `first` counts the partition's records before it, and so puts batches into order."""

    topic_partition: TopicPartition
    data: bytearray
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
    records: int = 0
    not_before: float = 0.0


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

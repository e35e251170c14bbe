"""The work of a task of a backfill: writes records in transactions, each of which commits the partition's progress.

The progress is the marker: the offset of the export's next record, committed to a group named after the backfill. A
repeated task, or a run after a kill, first begins its transaction, which aborts one that an earlier producer has left
open. Then it reads the marker, and skips the records before it. Knows nothing of files.
"""

import contextlib
import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from barnabas.errors import KafkaError
from barnabas.pipelines.client import TopicPartition
from barnabas.pipelines.client.cluster import Cluster
from barnabas.pipelines.client.settings import ClientSettings
from barnabas.pipelines.client.transactional import Transaction
from barnabas.pipelines.client.write_settings import WriteSettings
from barnabas.pipelines.tasks import gather, write_table

COLUMNS = ("key", "value", "headers", "partition", "timestamp", "topic", "offset")
RESULT = "topic STRING, partition INT, written BIGINT, skipped BIGINT"

TRANSACTION_BYTES = 32 << 20
"""A transaction ends at this size: read_committed consumers wait for its end, and it must not time out."""


class Twice(ValueError):
    """The export contains an offset twice."""


@dataclass
class Writing:
    """Writes the records of one partition."""

    transaction: Transaction
    group: str
    topic: str
    partition: int
    target: str
    marker: int = 0  #: the first offset that was not written at the start
    next: int = 0
    written: int = 0
    skipped: int = 0
    uncommitted: int = 0
    is_begun: bool = False

    @property
    def place(self) -> TopicPartition:
        return TopicPartition(self.target, self.partition)

    def resume(self, cluster: Cluster) -> None:
        """Fences earlier producers of the partition, and reads the marker to continue from it."""
        self.transaction.begin()
        self.is_begun = True
        found = cluster.committed(self.group, [self.place]).get(self.place)
        self.marker = 0 if found is None else found.offset

    def write(self, rows: pa.RecordBatch) -> None:
        """Writes those of these rows that are not written yet.

        :param rows: in the order of their offsets.
        :raises Twice: an offset occurs twice.
        """
        offsets = rows.column("offset").to_numpy()
        again = np.flatnonzero(np.diff(offsets, prepend=self.next - 1) <= 0)
        if len(again):
            raise Twice(f"offset {offsets[again[0]]} of {self.topic}-{self.partition} is in the export twice")
        self.next = int(offsets[-1]) + 1
        known = int(np.searchsorted(offsets, self.marker))
        self.skipped += known
        if known == len(offsets):
            return
        if not self.is_begun:
            self.transaction.begin()
            self.is_begun = True
        write_table(rows.slice(known), self.target, self.transaction.produce)
        self.uncommitted += len(offsets) - known
        if self.transaction.writer.bytes >= TRANSACTION_BYTES:
            self.commit()

    def commit(self) -> None:
        """Commits the written records together with the marker."""
        if self.uncommitted:
            self.transaction.commit_offsets(self.group, {self.place: self.next})
            self.transaction.commit()
            self.written += self.uncommitted
            self.uncommitted, self.is_begun = 0, False


@dataclass(frozen=True)
class Write:
    """Writes the rows of a task. Spark sends it to its workers."""

    id: str
    client: ClientSettings
    settings: WriteSettings
    targets: tuple[tuple[str, str], ...]  #: pairs of a topic of the export and its target topic

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Writes the task's rows; yields a row of RESULT for each partition."""
        cluster, settings = Cluster.of(self.client), self.settings
        targets, done = dict(self.targets), []
        writing: Writing | None = None
        try:
            for topic, partition, rows in runs(gather(batches, COLUMNS, settings.batch_bytes * 4, float("inf"))):
                if writing is None or (writing.topic, writing.partition) != (topic, partition):
                    if writing is not None:
                        writing.commit()
                    transaction = Transaction(cluster, f"{self.id}-{topic}-{partition}", settings)
                    writing = Writing(transaction, self.id, topic, partition, targets[topic])
                    writing.resume(cluster)
                    done.append(writing)
                writing.write(rows)
            if writing is not None:
                writing.commit()
        except BaseException:
            if writing is not None:
                with contextlib.suppress(KafkaError):  # the first error says more; the next producer aborts, too
                    writing.transaction.abort()
            raise
        yield pa.RecordBatch.from_pylist(
            [
                {"topic": each.topic, "partition": each.partition, "written": each.written, "skipped": each.skipped}
                for each in done
            ],
            pa.schema(
                [("topic", pa.string()), ("partition", pa.int32()), ("written", pa.int64()), ("skipped", pa.int64())]
            ),
        )


def runs(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[str, int, pa.RecordBatch]]:
    """Yields the rows in pieces of one partition each, with its topic and number."""
    for batch in batches:
        partitions = batch.column("partition").to_numpy()
        topics = batch.column("topic").dictionary_encode().indices.to_numpy()
        ends = np.flatnonzero((np.diff(partitions) != 0) | (np.diff(topics) != 0)) + 1
        bounds = [0, *ends.tolist(), batch.num_rows]
        for start, end in itertools.pairwise(bounds):
            if start < end:
                yield batch.column("topic")[start].as_py(), int(partitions[start]), batch.slice(start, end - start)

"""Copies a range of a partition from source to target, exactly once. This is the work of a task of the mirror.

A piece is one transaction. It contains the copied records, an offset sync (their offsets in source and target), and
the marker (the progress of the partition). A transaction begins before the marker is read: it fences earlier producers
of the partition, so the marker cannot change afterwards, and each record is committed once. Knows nothing of Spark.
"""

import time
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.columnar.encoding import Columns
from barnabas.errors import KafkaError, UnknownTopicOrPartition
from barnabas.pipelines.client.cluster import LATEST, Cluster, TopicPartition
from barnabas.pipelines.client.reading import read
from barnabas.pipelines.client.transactional import FENCED, Transaction
from barnabas.pipelines.jobs.mirroring.planning import Range
from barnabas.pipelines.jobs.mirroring.spec import Spec
from barnabas.pipelines.jobs.mirroring.syncs import Piece, Place, Runs, encode
from barnabas.pipelines.jobs.mirroring.target_state import Marker, markers, own_records

PIECE_BYTES = 64 << 20
PIECE_SECONDS = 10.0
"""A transaction ends at this size or age, as read_committed consumers wait for its end."""

TRIES = 3
"""The number of retries of a piece: brokers restart, and transactions time out."""


class Copied(NamedTuple):
    """The result of copying a range, which is a row for Spark."""

    topic: str
    partition: int
    target: str
    start: int
    end: int
    records: int
    bytes: int
    transactions: int


def copy(spec: Spec, each: Range, *, piece_bytes: int = PIECE_BYTES, piece_seconds: float = PIECE_SECONDS) -> Copied:
    """Copies the records of a range that the target lacks. A note on errors names the partition."""
    copier = _Copier(spec, each, piece_bytes, piece_seconds)
    failures = 0
    try:
        while True:
            try:
                if copier.piece():
                    return copier.copied
                failures = 0
            except Exception as problem:
                failures += 1
                copier.give_up()
                if failures > TRIES or not _may_pass(problem):
                    raise
    except Exception as problem:
        problem.add_note(f"while mirroring {each.topic}-{each.partition} to {each.target}")
        raise


class _Copier:
    """Copies one range, piece by piece."""

    def __init__(self, spec: Spec, each: Range, piece_bytes: int, piece_seconds: float) -> None:
        self._spec, self._range = spec, each
        self._piece_bytes, self._piece_seconds = piece_bytes, piece_seconds
        self._source, self._target = Cluster.of(spec.source_settings), Cluster.of(spec.target_settings)
        self._place = Place(each.target, each.partition)
        name = spec.policy.transactional_id(each.target, each.partition)
        self._transaction = Transaction(self._target, name, spec.write_settings)
        self.copied = Copied(each.topic, each.partition, each.target, each.start, each.end, 0, 0, 0)

    def piece(self) -> bool:
        """Copies the next piece; returns whether the range is complete."""
        self._transaction.begin()
        marker = markers(self._target, self._spec.policy, [self._place]).get(self._place)
        position, number = self._range.start, self._range.pieces
        if marker is not None and marker.of(self._range.topic_id):
            position, number = max(position, marker.source), max(number, marker.pieces)
        if position >= self._range.end:
            self._transaction.abort()
            return True
        before = self._end_of_target()
        reached, runs = self._records(position)
        if not runs.records:
            self._transaction.abort()
            return True
        self._transaction.writer.flush()
        after = self._end_of_target()
        piece = Piece(number, self._range.topic_id, runs.first, runs.next, before, after, runs.records, runs.found())
        sent = self._transaction.writer.bytes
        self._transaction.produce(self._spec.policy.syncs_topic, own_records([encode(self._place, piece)]))
        self._transaction.commit_offsets(
            self._spec.policy.markers_group,
            {TopicPartition(*self._place): after},
            Marker(reached, piece.topic_id, number + 1).encode(),
        )
        self._transaction.commit()
        self.copied = self.copied._replace(
            records=self.copied.records + runs.records,
            bytes=self.copied.bytes + sent,
            transactions=self.copied.transactions + 1,
        )
        return reached >= self._range.end

    def give_up(self) -> None:
        """Aborts the transaction. If that fails, the partition's next producer or the transaction timeout aborts it."""
        try:
            self._transaction.abort()
        except KafkaError:
            self._target.forget()

    def _records(self, position: int) -> tuple[int, Runs]:
        """Produces the next records; returns the source offset that was reached, and the runs of their offsets."""
        each, runs, size, began = self._range, Runs(), 0, time.monotonic()
        for batch in read(
            self._source,
            each.topic,
            each.partition,
            position,
            each.end,
            topic_id=each.topic_id,
            headers=True,
            isolation=self._spec.isolation,
            fail_on_data_loss=self._spec.fail_on_data_loss,
        ):
            if not batch.num_rows:
                continue
            self._transaction.produce(each.target, _columns(batch), _partitions(each.partition, batch.num_rows))
            runs.add(batch.column("offset").to_numpy())
            size += batch.nbytes
            if size >= self._piece_bytes or time.monotonic() - began >= self._piece_seconds:
                return runs.next, runs
        return each.end, runs

    def _end_of_target(self) -> int:
        """Returns the end offset of the target partition. If others write to it, a piece spans their records too."""
        place = TopicPartition(*self._place)
        return self._target.list_offsets({place: LATEST})[place].offset


def _columns(batch: pa.RecordBatch) -> Columns:
    """Returns a batch that was read in the form in which it is written."""
    microseconds = batch.column("timestamp").cast(pa.int64())
    timestamps = pc.divide(microseconds, 1000).to_numpy(zero_copy_only=False)
    return Columns(batch.column("key"), batch.column("value"), batch.column("headers"), timestamps)


def _partitions(partition: int, count: int) -> pa.Array:
    return pa.array(np.full(count, partition, dtype=np.int32))


def _may_pass(problem: Exception) -> bool:
    """Returns whether a retry may succeed: the topic is new, the transaction timed out, or a broker is unavailable."""
    return isinstance(problem, (*FENCED, UnknownTopicOrPartition)) or getattr(problem, "retriable", False)

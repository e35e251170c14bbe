"""Copies a stretch of a partition from source to target, exactly once: what a task of the mirror does.

Knows nothing of Spark. A piece is one transaction: its records, a record of which offsets they have at either end, and
the marker that says how far the partition is. To begin one fences whoever copied the partition before, and only then
is the marker read; so whatever died or lives on elsewhere, a record is copied by one transaction that counts.
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
from barnabas.pipelines.jobs.mirroring.kept import Marker, markers, own_records
from barnabas.pipelines.jobs.mirroring.planning import Range
from barnabas.pipelines.jobs.mirroring.spec import Spec
from barnabas.pipelines.jobs.mirroring.syncs import Piece, Place, Runs, encode

PIECE_BYTES = 64 << 20
PIECE_SECONDS = 10.0
"""A transaction ends when it has so many bytes or is so old, for it holds up whoever reads committed records."""

TRIES = 3
"""So often a piece is tried again in a row: brokers come and go, and transactions time out."""


class Copied(NamedTuple):
    """What became of a range; a row to Spark."""

    topic: str
    partition: int
    target: str
    start: int
    end: int
    records: int
    bytes: int
    transactions: int


def copy(spec: Spec, each: Range, *, piece_bytes: int = PIECE_BYTES, piece_seconds: float = PIECE_SECONDS) -> Copied:
    """Copy what the target lacks of a range. Errors name the partition."""
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
    """One partition's, piece by piece."""

    def __init__(self, spec: Spec, each: Range, piece_bytes: int, piece_seconds: float) -> None:
        self._spec, self._range = spec, each
        self._piece_bytes, self._piece_seconds = piece_bytes, piece_seconds
        self._source, self._target = Cluster.of(spec.source_settings), Cluster.of(spec.target_settings)
        self._place = Place(each.target, each.partition)
        name = spec.policy.transactional_id(each.target, each.partition)
        self._transaction = Transaction(self._target, name, spec.write_settings)
        self.copied = Copied(each.topic, each.partition, each.target, each.start, each.end, 0, 0, 0)

    def piece(self) -> bool:
        """Copy some more; whether that was all."""
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
        """Take back what is begun, if there is anybody to tell; else the next to begin does, or the broker in time."""
        try:
            self._transaction.abort()
        except KafkaError:
            self._target.forget()

    def _records(self, position: int) -> tuple[int, Runs]:
        """Produce what comes next; how far that went in the source, and where its records are there."""
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
        """Behind all that is in the partition. Others may write to it: then a piece spans what is theirs too."""
        place = TopicPartition(*self._place)
        return self._target.list_offsets({place: LATEST})[place].offset


def _columns(batch: pa.RecordBatch) -> Columns:
    """A batch as it was read, as it is written."""
    microseconds = batch.column("timestamp").cast(pa.int64())
    timestamps = pc.divide(microseconds, 1000).to_numpy(zero_copy_only=False)
    return Columns(batch.column("key"), batch.column("value"), batch.column("headers"), timestamps)


def _partitions(partition: int, count: int) -> pa.Array:
    return pa.array(np.full(count, partition, dtype=np.int32))


def _may_pass(problem: Exception) -> bool:
    """Whether the same may well work the next time: a topic is new, a transaction took too long, a broker is away."""
    return isinstance(problem, (*FENCED, UnknownTopicOrPartition)) or getattr(problem, "retriable", False)

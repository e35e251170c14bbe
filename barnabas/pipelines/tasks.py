"""A task of the sink in a Spark worker: writes its rows at least once, or exactly once.

Exactly once: a task's rows and its marker are one transaction. The marker is an offset that a group named after the
query commits: the number of the next micro-batch, with metadata about what was written. The partition of the offset
stands for the task. A task first begins its transaction, which aborts the transaction of an earlier attempt. Then it
reads its marker, and skips the rows if the marker is that of this batch. Knows nothing of the types of columns.
"""

import json
import logging
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext

from barnabas.clock import Clock, SystemClock
from barnabas.columnar.encoding import Columns
from barnabas.pipelines.client import TopicPartition
from barnabas.pipelines.client.cluster import Cluster
from barnabas.pipelines.client.transactional import Transaction
from barnabas.pipelines.client.writing import Writer
from barnabas.pipelines.options import STREAM_WRITE, WriteOptions
from barnabas.pipelines.sink import BATCH_ID, QUERY_ID, Written

log = logging.getLogger(__name__)

MARKERS_TOPIC = "__consumer_offsets"
"""The topic whose partitions markers are committed for: every cluster has it, with a constant number of partitions."""

GATHERED_BATCHES = 4
"""Rows are gathered for this many full batches, one for each partition of a small topic."""

NO_TIMESTAMP = -1  # ms; of a record without a timestamp (KIP-32)

SYSTEM = SystemClock()


class BadRow(ValueError):
    """A row cannot be written; the message names the column and what is allowed."""


class Repeated(RuntimeError):
    """A repeated batch has other rows than when it was partly written."""


class Target(Protocol):
    """Writes columns: a Writer, or a Transaction."""

    def __call__(self, topic: str, columns: Columns, partitions: pa.Array | None = None) -> None: ...


def write_rows(rows: Iterable[pa.RecordBatch], options: WriteOptions, columns: tuple[str, ...]) -> Written:
    """Writes a task's rows, and waits until all are acknowledged."""
    writer = Writer(Cluster.of(options.client), options.settings)
    for gathered in gather(rows, columns, options.settings.batch_bytes * GATHERED_BATCHES, options.settings.linger):
        write_table(gathered, options.topic, writer.write)
    writer.flush()
    writer.close()
    return Written(writer.records, writer.bytes)


def write_exactly_once(
    rows: Iterable[pa.RecordBatch], options: WriteOptions, columns: tuple[str, ...], own_id: str
) -> Written:
    """Writes a task's rows in one transaction, unless an earlier attempt has.

    :param own_id: identifies a batch query.
    """
    cluster = Cluster.of(options.client)
    task = _task(options, own_id)
    transaction = Transaction(cluster, task.transactional_id, options.settings)
    transaction.begin()
    try:
        marker = Marker.of(cluster, task)
        if marker is not None:
            return _skipped(rows, marker, task)
        settings = options.settings
        for gathered in gather(rows, columns, settings.batch_bytes * GATHERED_BATCHES, settings.linger):
            write_table(gathered, options.topic, transaction.produce)
        writer = transaction.writer
        written = Marker(task.batch, task.query, writer.records, writer.bytes)
        transaction.commit_offsets(task.group(cluster), {task.place(cluster): task.batch + 1}, written.to_json())
        transaction.commit()
    except Exception:
        _take_back(transaction)
        raise
    return Written(writer.records, writer.bytes)


def _take_back(transaction: Transaction) -> None:
    """Aborts, so that readers do not wait. If that fails, the task's next attempt aborts, or the broker after the
    timeout.
    """
    try:
        transaction.abort()
    except Exception as problem:  # the caller raises the original error
        log.warning("cannot abort transaction %s now: %s", transaction.transactional_id, problem)


@dataclass(frozen=True)
class Task:
    """A task of a micro-batch of a query; its rows are written once."""

    sink: str
    query: str
    batch: int
    number: int

    @property
    def transactional_id(self) -> str:
        """The transactional id of all attempts of the task, also in other micro-batches."""
        return f"{self.sink}-{self.number}"

    def group(self, cluster: Cluster) -> str:
        """Returns the group that commits the markers of this task and others."""
        block = self.number // len(cluster.partitions(MARKERS_TOPIC))
        return f"{self.sink}-{block}" if block else self.sink

    def place(self, cluster: Cluster) -> TopicPartition:
        """Returns the partition of the task's marker."""
        return TopicPartition(MARKERS_TOPIC, self.number % len(cluster.partitions(MARKERS_TOPIC)))


@dataclass(frozen=True)
class Marker:
    """The content of a marker: the batch and query, and the number of records and bytes."""

    batch: int
    query: str
    records: int
    bytes: int

    def to_json(self) -> str:
        """Returns the metadata of the committed offset."""
        return json.dumps({"query": self.query, "records": self.records, "bytes": self.bytes})

    @classmethod
    def of(cls, cluster: Cluster, task: Task) -> "Marker | None":
        """Returns what this task has already written of this batch, or None."""
        cluster.run(cluster.retrying, lambda: cluster.coordinator(task.sink))  # this creates __consumer_offsets
        place = task.place(cluster)
        committed = cluster.committed(task.group(cluster), [place]).get(place)
        if committed is None or committed.offset <= task.batch:
            return None
        fields = json.loads(committed.metadata)
        return cls(committed.offset - 1, **fields) if fields["query"] == task.query else None


def _task(options: WriteOptions, own_id: str) -> Task:
    context = TaskContext.get()
    if context is None:
        raise RuntimeError("rows are written by Spark's tasks")
    query, batch = context.getLocalProperty(QUERY_ID), context.getLocalProperty(BATCH_ID)
    if options.scope == STREAM_WRITE and query is not None and batch is not None:
        return Task(options.sink_id or f"barnabas-{query}", query, int(batch), context.partitionId())
    if options.batch_id is not None and options.sink_id is not None:
        return Task(options.sink_id, "", options.batch_id, context.partitionId())
    return Task(own_id, own_id, 0, context.partitionId())


def _skipped(rows: Iterable[pa.RecordBatch], marker: Marker, task: Task) -> Written:
    """Skips the rows. Checks that there are as many as were written."""
    given = sum(batch.num_rows for batch in rows)
    if marker.batch == task.batch and given != marker.records:
        raise Repeated(
            f"task {task.number} of batch {task.batch} wrote {marker.records} records before it was repeated, and now "
            f"has {given}: the batch is divided into tasks differently, or its source returns other rows. Some "
            "rows may be written twice. Continue with the query's former settings (partitions of shuffles and of "
            "the source), or with a new checkpoint"
        )
    return Written(marker.records, marker.bytes, skipped=True)


# Rows to columns


def gather(
    rows: Iterable[pa.RecordBatch], columns: tuple[str, ...], enough_bytes: int, linger: float
) -> Iterator[pa.RecordBatch]:
    """Yields the columns to write, of several small batches together.

    Rows wait until there are `enough_bytes`, or until rows arrive after `linger` seconds.
    """
    held: list[pa.RecordBatch] = []
    size, since = 0, 0.0
    for batch in rows:
        if not batch.num_rows:
            continue
        since = since if held else time.monotonic()
        held.append(batch.select(list(columns)))
        size += held[-1].nbytes
        if size >= enough_bytes or time.monotonic() - since >= linger:
            yield _together(held)
            held, size = [], 0
    if held:
        yield _together(held)


def _together(held: list[pa.RecordBatch]) -> pa.RecordBatch:
    return held[0] if len(held) == 1 else pa.concat_batches(held)


def write_table(rows: pa.RecordBatch, topic: str | None, write: Target) -> None:
    """Writes rows to `topic`, or to the topic in each row.

    :raises BadRow: a row has no topic.
    """
    if topic is not None:
        write(topic, _columns(rows), _column(rows, "partition"))
        return
    topics = rows.column("topic")
    if topics.null_count:
        raise BadRow("the column topic of a row is null: give each row a topic, or set the option topic")
    for named in pc.unique(topics).to_pylist():
        its = rows.filter(pc.equal(topics, named))
        write(named, _columns(its), _column(its, "partition"))


def _columns(rows: pa.RecordBatch) -> Columns:
    return Columns(
        _column(rows, "key"),
        _column(rows, "value"),
        _column(rows, "headers"),
        timestamps_of(_column(rows, "timestamp"), rows.num_rows),
    )


def _column(rows: pa.RecordBatch, name: str) -> Any:
    return rows.column(name) if name in rows.schema.names else None


def timestamps_of(column: pa.Array | None, count: int, clock: Clock = SYSTEM) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Returns the times of a column of microseconds in ms since 1970; the current time for null, or without a
    column.
    """
    now = clock.time_ms()
    if column is None:
        return np.full(count, now, np.int64)
    micros = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64()).fill_null(now * 1000)
    times: np.ndarray[Any, np.dtype[np.int64]] = micros.to_numpy() // 1000
    if len(times) and times.min() < NO_TIMESTAMP:
        raise BadRow(f"a row has a timestamp before 1970 ({times.min()} ms), which records cannot have")
    return times

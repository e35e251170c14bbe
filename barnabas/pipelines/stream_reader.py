"""Reads topics as a stream: determines the offsets of each micro-batch for Spark's engine.

Knows nothing of how records are read. One process runs it for the whole query; only `read` runs in executors.
"""

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from barnabas.errors import KafkaError
from barnabas.pipelines import asking
from barnabas.pipelines.batch_reader import lost, read, tasks
from barnabas.pipelines.client import TopicPartition
from barnabas.pipelines.offsets import UNDECIDED, StreamOffset, plan, rate_limited
from barnabas.pipelines.options import ReadOptions

if TYPE_CHECKING:
    import pyarrow as pa

log = logging.getLogger(__name__)

SHOWING_PATIENCE = 5.0
"""Seconds that a micro-batch may wait for the group's coordinator."""


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Implements Spark's stream reader. Spark's offsets are made by `StreamOffset.to_json`."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._latest: StreamOffset | None = None
        self._only_what_is_there = False
        self._until: StreamOffset | None = None
        self._last_batch_at = float("-inf")
        self._shown: Mapping[TopicPartition, int] | None = None

    def initialOffset(self) -> dict[str, Any]:
        """Returns where a query without a checkpoint begins."""
        options = self._options
        topics = asking.subscribed(options)
        partitions = asking.partitions_of(options, topics)
        at = asking.positioned(options, options.starting, partitions)
        return StreamOffset(at, asking.ids_of(topics), UNDECIDED).to_json()

    def getDefaultReadLimit(self) -> ReadLimit:
        """Returns maxOffsetsPerTrigger, or else minOffsetsPerTrigger; `latestOffset` observes the latter in any
        case.
        """
        if self._options.max_offsets_per_trigger is not None:
            return ReadMaxRows(self._options.max_offsets_per_trigger)
        if self._options.min_offsets_per_trigger is not None:
            return ReadMinRows(self._options.min_offsets_per_trigger)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        """Makes the next `latestOffset` the end of the query."""
        self._only_what_is_there = True

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Returns where the next micro-batch ends, or `start` if there is nothing to read."""
        options, begin = self._options, StreamOffset.from_json(start)
        self._show(begin)
        self._latest = latest = self._settled(begin)
        if isinstance(limit, ReadMinRows | ReadMaxRows) and self._too_few(begin, latest):
            return start
        at: Mapping[TopicPartition, int] = latest.at
        if isinstance(limit, ReadMaxRows):
            at = rate_limited(
                limit.max_rows, {**asking.beginnings_of(options, begin, latest), **begin.still(latest)}, at
            )
        if begin.begun_at == UNDECIDED:
            return StreamOffset(at, latest.ids, begun_at=begin.at).to_json()
        if at == begin.at and latest.ids == begin.ids:
            return start
        return StreamOffset(at, latest.ids).to_json()

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """Returns the end that `latestOffset` found last, for the query's progress."""
        return None if self._latest is None else self._latest.to_json()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Returns the tasks of a micro-batch, which are the same when it is repeated."""
        options, begin, to = self._options, StreamOffset.from_json(start), StreamOffset.from_json(end)
        if to.begun_at is not None and not begin.begun_at:
            begin = StreamOffset(to.begun_at, to.ids)  # a repeated first batch begins at the planned offsets
        ranges, losses = plan(begin, to, asking.beginnings_of(options, begin, to))
        lost(options, losses)
        return tasks(options, ranges)

    def read(self, partition: InputPartition) -> Iterator["pa.RecordBatch"]:
        """Returns the records of one range, as columns. Runs in an executor."""
        return read(self._options, partition.value)

    def _show(self, done: StreamOffset) -> None:
        """Commits the position of the query to commitGroup. A failure is only logged.

        Spark calls `commit` only when the next batch begins, which may never happen.
        """
        group = self._options.commit_group
        if group is None or done.at == self._shown:
            return
        try:
            asking.cluster_of(self._options).commit(group, done.at, patience=SHOWING_PATIENCE)
        except KafkaError as problem:
            log.warning("cannot commit the query's offsets to commitGroup %s: %s", group, problem)
        else:
            self._shown = done.at

    def _settled(self, begin: StreamOffset) -> StreamOffset:
        """Returns the end of all partitions. Requests it again if one seems to end before `begin` (KAFKA-7703)."""
        if self._until is not None:
            return self._until
        for attempt in range(self._options.offset_retries):
            if attempt:
                cluster = asking.cluster_of(self._options)
                cluster.run(cluster.pause, self._options.offset_retry_interval)
            latest = asking.latest(self._options)
            if all(latest.at[partition] >= at for partition, at in begin.still(latest).items()):
                break
        if self._only_what_is_there:
            self._until = latest
        return latest

    def _too_few(self, begin: StreamOffset, latest: StreamOffset) -> bool:
        """Returns whether there are fewer than minOffsetsPerTrigger unread offsets, and maxTriggerDelay is not over."""
        fewest = self._options.min_offsets_per_trigger
        if fewest is None or self._only_what_is_there:
            return False
        going_on = begin.still(latest)
        waiting = sum(to - going_on.get(partition, 0) for partition, to in latest.at.items())
        now = time.monotonic()
        if waiting < fewest and now - self._last_batch_at < self._options.max_trigger_delay:
            return True
        self._last_batch_at = now
        return False

"""Reads topics once, from one offset to another: plans the tasks of a batch, and reads in each.

Knows nothing of checkpoints and triggers.
"""

import logging
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition

from barnabas.pipelines import asking
from barnabas.pipelines.offsets import DataLoss, Range, split
from barnabas.pipelines.options import ReadOptions
from barnabas.pipelines.workers import spare_the_collector

if TYPE_CHECKING:
    import pyarrow as pa

log = logging.getLogger(__name__)


class BatchReader(DataSourceReader):
    """Reads between two positions, whose offsets are determined when the query is planned."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        """Returns at least one task for each partition with records; more with minPartitions or
        maxRecordsPerPartition.
        """
        options = self._options
        topics = asking.subscribed(options)
        partitions = asking.partitions_of(options, topics)
        start = asking.positioned(options, options.starting, partitions)
        end = asking.positioned(options, options.ending, partitions)
        ids = asking.ids_of(topics)
        ranges = []
        for partition in partitions:
            begin, to = start[partition], end[partition]
            if begin > to:
                lost(options, [f"{partition}: {options.starting.option} begins at offset {begin}, after its end {to}"])
            ranges.append(Range(*partition, begin, max(begin, to), ids.get(partition.topic)))
        return tasks(options, ranges)

    def read(self, partition: InputPartition) -> Iterator["pa.RecordBatch"]:
        """Returns the records of one range, as columns."""
        return read(self._options, partition.value)


def tasks(options: ReadOptions, ranges: Sequence[Range]) -> list[InputPartition]:
    """Returns ranges as Spark's tasks, split as the options say. Empty ranges have no task."""
    parts = split(ranges, min_partitions=options.min_partitions, max_records=options.max_records_per_partition)
    return [InputPartition(part) for part in parts]


def lost(options: ReadOptions, losses: Sequence[str]) -> None:
    """Raises DataLoss for records that no longer exist, or logs it with failOnDataLoss=false."""
    if losses and options.fail_on_data_loss:
        raise DataLoss(
            "; ".join(losses) + ". Set failOnDataLoss=false to continue with the other records, "
            "or start with a new checkpoint"
        )
    for loss in losses:
        log.warning("%s; continuing, as failOnDataLoss is false", loss)


def read(options: ReadOptions, range_: Range | None) -> Iterator["pa.RecordBatch"]:
    """Returns the records of a range, or nothing without a range: Spark creates a task for an empty batch."""
    if range_ is None:
        return iter(())
    from barnabas.pipelines.client.reading import read as fetch

    spare_the_collector()
    return fetch(
        asking.cluster_of(options),
        range_.topic,
        range_.partition,
        range_.start,
        range_.end,
        topic_id=range_.topic_id,
        headers=options.include_headers,
        isolation=options.isolation,
        fail_on_data_loss=options.fail_on_data_loss,
        check_crcs=options.check_crcs,
        fetch_bytes=options.fetch_bytes,
        max_wait_ms=options.fetch_max_wait_ms,
        rack=options.rack,
        patience=options.poll_timeout,
    )

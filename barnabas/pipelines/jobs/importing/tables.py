"""Imports new rows of a database in batches between two marks of an increasing column. Each batch is written once.

Knows nothing of how rows become records.

The number and the marks of a batch are kept in the checkpoint before it is written. A batch is one task and one
transaction, which commits the batch's number too. After a crash the batch is repeated with the same number and marks,
or skipped if it is committed.
"""

import threading
import time
import uuid
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from barnabas.pipelines.jobs.importing.marks import Growing, Mark
from barnabas.pipelines.jobs.importing.records import as_records, chosen
from barnabas.pipelines.jobs.importing.stored_value import StoredValue
from barnabas.pipelines.jobs.progress import Progress, Report
from barnabas.pipelines.jobs.running import BatchJob

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from barnabas.pipelines.jobs.importing.options import ImportOptions


class TableImport(BatchJob):
    """Writes the rows of a table or a query to a topic, in the order of the increasing columns."""

    name = "import"

    def __init__(self, options: "ImportOptions") -> None:
        self._options = options

    def configs(self) -> Mapping[str, str]:
        return self._options.spark_configs()

    def work(
        self, spark: "SparkSession", *, once: bool, checkpoint: str, report: Report, stop: threading.Event
    ) -> None:
        """Imports the new rows; without ``once`` again every ``poll_seconds``."""
        batches = Batches(spark, checkpoint)
        table = self._rows(spark)
        growing = Growing(table, self._options.increasing)
        if self._options.delay_seconds:
            growing.before(self._options.delay_seconds)
        if batches.open is not None and self._is_written(batches):
            batches.end()
        elif batches.open is not None:
            self._copy(table, growing, batches, 0, report)
        while not stop.is_set():
            new = table.where(growing.between(batches.low, None))
            if self._options.delay_seconds:
                new = new.where(growing.before(self._options.delay_seconds))
            bounds = growing.bounds(new, self._options.batch_rows)
            for bound in bounds:
                if stop.is_set():
                    return
                batches.begin(bound.mark)
                self._copy(table, growing, batches, bounds[-1].row - bound.row, report)
            if once:
                return
            stop.wait(self._options.poll_seconds)

    def _rows(self, spark: "SparkSession") -> "DataFrame":
        options = self._options
        what = ("dbtable", options.table) if options.table is not None else ("query", options.query)
        reader = spark.read.format("jdbc").options(**{"fetchsize": "10000", **options.jdbc_properties})
        return reader.option("url", options.jdbc_url).option(what[0], what[1]).load()

    def _sink_options(self, batches: "Batches") -> dict[str, str]:
        """Returns the sink's options, with the ids by which it recognizes the open batch."""
        found = self._options.sink_options()
        if self._options.delivery == "exactly-once":
            found |= {"sinkId": batches.id, "batchId": str(batches.number)}
        return found

    def _is_written(self, batches: "Batches") -> bool:
        """Returns whether the open batch, which an earlier run began, is committed.

        Begins its transaction first, which aborts one that a task of that run has left open, so the result cannot
        change. The sink detects the repetition, too, but only of the same rows; the database may have more rows now.
        """
        if self._options.delivery != "exactly-once":
            return False
        from barnabas.pipelines.client.cluster import Cluster
        from barnabas.pipelines.client.transactional import Transaction
        from barnabas.pipelines.options import BATCH_WRITE, write_options
        from barnabas.pipelines.tasks import Marker, Task

        options = write_options(self._sink_options(batches), BATCH_WRITE)
        cluster, task = Cluster.of(options.client), Task(batches.id, "", batches.number, 0)
        transaction = Transaction(cluster, task.transactional_id, options.settings)
        transaction.begin()
        try:
            return Marker.of(cluster, task) is not None
        finally:
            transaction.abort()

    def _copy(self, table: "DataFrame", growing: Growing, batches: "Batches", lag: int, report: Report) -> None:
        """Writes the open batch, and closes it."""
        from pyspark.sql import Observation
        from pyspark.sql import functions as F

        assert batches.open is not None
        begun, seen = time.monotonic(), Observation()
        rows = table.where(growing.between(batches.low, batches.open))
        rows = rows.coalesce(1).sortWithinPartitions(*growing.columns())
        records = as_records(chosen(rows, self._options), self._options).observe(seen, F.count(F.lit(1)).alias("rows"))
        writer = records.write.format("barnabas").mode("append").options(**self._sink_options(batches))
        writer.save()
        number = batches.number
        batches.end()
        report(Progress(f"import to {self._options.topic}", number, seen.get["rows"], time.monotonic() - begun, lag))


class Batches:
    """The open batch or the next one, as the checkpoint keeps it."""

    def __init__(self, spark: "SparkSession", checkpoint: str, new_id: Callable[[], uuid.UUID] = uuid.uuid4) -> None:
        self._kept = StoredValue(spark, checkpoint, "batch")
        found: dict[str, Any] = self._kept.read() or {
            "id": f"barnabas-{new_id()}",
            "number": 0,
            "low": None,
            "open": None,
        }
        self.id: str = found["id"]
        self.number: int = found["number"]
        self.low = _mark(found["low"])  #: the end of the last batch that was written
        self.open = _mark(found["open"])  #: the end of the open batch; None if there is none

    def begin(self, high: Mark) -> None:
        """Opens the batch from the end of the last one to `high`."""
        self.open = high
        self._keep()

    def end(self) -> None:
        """Closes the open batch, which is written."""
        self.number, self.low, self.open = self.number + 1, self.open, None
        self._keep()

    def _keep(self) -> None:
        self._kept.write({"id": self.id, "number": self.number, "low": self.low, "open": self.open})


def _mark(kept: list[str] | None) -> Mark | None:
    return None if kept is None else tuple(kept)

"""Import of a database's rows as they come: batches between two marks of a growing column, each written once.

Knows nothing of what records are made of rows.

A batch is decided before it is done: its number and its two marks are kept with the checkpoint. It is one task and one
transaction, which leaves the batch's number in the cluster, so a batch that is done again after a crash, with the same
number and the same marks, is skipped if it had been committed.
"""

import threading
import time
import uuid
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from barnabas.pipelines.jobs.importing.kept import Kept
from barnabas.pipelines.jobs.importing.marks import Growing, Mark
from barnabas.pipelines.jobs.importing.records import as_records, chosen
from barnabas.pipelines.jobs.progress import Progress, Report
from barnabas.pipelines.jobs.running import BatchJob

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from barnabas.pipelines.jobs.importing.options import ImportOptions


class TableImport(BatchJob):
    """Rows of a table or a query to a topic, in the order of the columns that grow."""

    name = "import"

    def __init__(self, options: "ImportOptions") -> None:
        self._options = options

    def configs(self) -> Mapping[str, str]:
        return self._options.spark_configs()

    def work(
        self, spark: "SparkSession", *, once: bool, checkpoint: str, report: Report, stop: threading.Event
    ) -> None:
        """Import what is new; without ``once`` look again every ``poll_seconds``."""
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
        """With what the sink knows the open batch by."""
        found = self._options.sink_options()
        if self._options.delivery == "exactly-once":
            found |= {"sinkId": batches.id, "batchId": str(batches.number)}
        return found

    def _is_written(self, batches: "Batches") -> bool:
        """Whether the open batch, which was begun before a crash, had been committed.

        To begin its transaction ends what a task of then may have left, so that the answer stays true. The sink would
        find out too, but wants the very rows of then; a database may show more of them by now.
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
        """Write the batch that is open, and close it."""
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
    """The batch that is open, or is to come next, as it is kept with the checkpoint."""

    def __init__(self, spark: "SparkSession", checkpoint: str, new_id: Callable[[], uuid.UUID] = uuid.uuid4) -> None:
        self._kept = Kept(spark, checkpoint, "batch")
        found: dict[str, Any] = self._kept.read() or {
            "id": f"barnabas-{new_id()}",
            "number": 0,
            "low": None,
            "open": None,
        }
        self.id: str = found["id"]
        self.number: int = found["number"]
        self.low = _mark(found["low"])  #: where the last batch that was written ended
        self.open = _mark(found["open"])  #: where the one ends that was begun; None without

    def begin(self, high: Mark) -> None:
        """Open the batch from where the last one ended up to here."""
        self.open = high
        self._keep()

    def end(self) -> None:
        """Close it: it is written."""
        self.number, self.low, self.open = self.number + 1, self.open, None
        self._keep()

    def _keep(self) -> None:
        self._kept.write({"id": self.id, "number": self.number, "low": self.low, "open": self.open})


def _mark(kept: list[str] | None) -> Mark | None:
    return None if kept is None else tuple(kept)

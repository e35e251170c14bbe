"""The export job: topics to Parquet, Delta, CSV, JSON or a table of a database; each record once.

Knows nothing of the command line; imported without Spark.
"""

import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from barnabas.pipelines.jobs.exporting.options import ExportOptions
from barnabas.pipelines.jobs.running import Job

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["Export", "ExportOptions"]

QUERY_ID = "sql.streaming.queryId"
"""The property of Spark's thread that says which query a batch is of; the checkpoint keeps the id."""

LOOKS = 10
"""So often what is held back is looked at within the time for which it may be."""


class Target(Protocol):
    """Where an export goes."""

    def add(self, df: "DataFrame", batch: int) -> bool:
        """Have this batch there; False if it was there already."""

    def publish(self) -> None:
        """Make visible, or merge, what is due."""

    def close(self) -> None:
        """The run is at its end."""


class Export(Job):
    """Exports until it is told to stop, or (``once``) what is there when it starts."""

    name = "export"

    def __init__(self, options: ExportOptions, *, now: Callable[[], float] = time.monotonic) -> None:
        """`now` in seconds: it says when to look at what is held back."""
        self._options, self._now = options, now
        self._looked_at = now()
        self._lock = threading.Lock()  # around the target: batches come on a thread of Spark's
        self._shape = options.shape()
        self._settings = options.client_settings()
        self._target: Target | None = None
        self._query: StreamingQuery | None = None
        self._spark: SparkSession | None = None

    def configs(self) -> dict[str, str]:
        return self._options.spark_configs()

    def checkpoint_beside(self) -> str | None:
        return self._options.checkpoint_beside()

    def start(self, spark: "SparkSession", *, once: bool, checkpoint: str) -> Sequence["StreamingQuery"]:
        """One query.

        Raises:
            ValueError: an option is wrong, as far as that is seen without a record.
        """
        from barnabas.pipelines.jobs.exporting.columns import shaped
        from barnabas.pipelines.values import decode_value

        options = self._options
        self._spark = spark
        df = spark.readStream.format("barnabas").options(**options.source()).load()
        for column, format in options.decoding().items():
            df = decode_value(df, column, format, bad="null" if options.undecodable == "null" else "fail")
        shaped(spark.createDataFrame([], df.schema), self._shape)  # what is wrong is told before there is a batch
        writer = df.writeStream.foreachBatch(self._add).option("checkpointLocation", checkpoint)
        trigger = {"availableNow": True} if once else {"processingTime": f"{options.trigger_seconds} seconds"}
        self._query = writer.trigger(**trigger).start()
        return [self._query]

    def look(self) -> None:
        """Make visible what has been held back for long enough, for Spark runs no batch while no records come."""
        wait = max(1.0, self._options.publish_seconds / LOOKS)
        if self._query is None or self._now() - self._looked_at < wait or not self._lock.acquire(blocking=False):
            return  # if a batch is at hand, it will see to that
        try:
            self._opened(str(self._query.id)).publish()
        finally:
            self._lock.release()
        self._looked_at = self._now()

    def close(self) -> None:
        """Make visible what is held back, unless it shall wait for the next run."""
        if self._query is not None and self._query.exception() is None and not self._options.keep_held:
            with self._lock:
                self._opened(str(self._query.id)).close()

    def _add(self, df: "DataFrame", batch: int) -> None:
        from barnabas.pipelines.jobs.exporting.columns import shaped

        export = df.sparkSession.sparkContext.getLocalProperty(QUERY_ID)
        assert export is not None, "Spark names the query in the thread that runs its batches"
        with self._lock:
            self._opened(export).add(shaped(df, self._shape), batch)

    def _opened(self, export: str) -> Target:
        if self._target is None:
            self._target = self._open(export)
        return self._target

    def _open(self, export: str) -> Target:
        """The target, for the query of this id.

        Raises:
            ValueError: something else is there.
        """
        options, spark = self._options, self._spark
        assert spark is not None, "the job has started"
        if options.format == "jdbc":
            from barnabas.pipelines.jobs.exporting.to_jdbc import JdbcTarget

            return JdbcTarget(spark, export, options.to, options.table or "", options.jdbc_properties)
        from barnabas.pipelines.jobs.exporting.claims import Claim, claim
        from barnabas.pipelines.jobs.exporting.files import LocalFiles, files_at
        from barnabas.pipelines.jobs.exporting.layout import Layout
        from barnabas.pipelines.jobs.exporting.to_delta import DeltaTarget
        from barnabas.pipelines.jobs.exporting.to_files import FileTarget, Format

        files = files_at(options.to, spark)
        claim(files, Layout(export, ""), Claim(options.format, self._shape.directories, self._partitions()))
        if options.format == "delta":
            assert isinstance(files, LocalFiles), "the options see to that"
            return DeltaTarget(files, export, options.codec(), self._shape, options.limits())
        format = Format(options.format, options.codec())
        return FileTarget(spark.newSession(), files, export, format, self._shape, options.limits())

    def _partitions(self) -> dict[str, int]:
        """The topics of the export, as far as they exist, with their numbers of partitions."""
        from barnabas.pipelines.client.cluster import Cluster

        cluster = Cluster.of(self._settings)
        pattern = self._options.whole_pattern
        topics = cluster.topics(pattern) if pattern else list(self._options.topics)
        return {name: len(topic.leaders) for name, topic in cluster.describe(topics).items()}

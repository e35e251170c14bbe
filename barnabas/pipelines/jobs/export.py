"""The export job: writes topics to Parquet, Delta, CSV, JSON or a database table, each record exactly once.

Knows nothing of the command line. Imported without Spark.
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
"""The local property of Spark's threads that holds the id of the query; the checkpoint keeps the id."""

CHECKS = 10
"""How many times during ``publish_seconds`` the job checks which held-back files are due."""


class Target(Protocol):
    """Where an export is written."""

    def add(self, df: "DataFrame", batch: int) -> bool:
        """Adds this batch; returns False if it was there already."""

    def publish(self) -> None:
        """Makes visible, or merges, the files that are due."""

    def close(self) -> None:
        """Makes visible, or merges, all files: the run is over."""


class Export(Job):
    """Exports until it is stopped, or with ``once`` the records that exist when it starts."""

    name = "export"

    def __init__(self, options: ExportOptions, *, now: Callable[[], float] = time.monotonic) -> None:
        """:param now: the time in seconds, which decides when held-back files are checked."""
        self._options, self._now = options, now
        self._checked_at = now()
        self._lock = threading.Lock()  # for the target: Spark calls `_add` on a thread of its own
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
        """Starts one query.

        :raises ValueError: an option is wrong, as far as that can be seen without a record.
        """
        from barnabas.pipelines.jobs.exporting.columns import shaped
        from barnabas.pipelines.values import decode_value

        options = self._options
        self._spark = spark
        df = spark.readStream.format("barnabas").options(**options.source()).load()
        for column, format in options.decoding().items():
            df = decode_value(df, column, format, bad="null" if options.undecodable == "null" else "fail")
        df = shaped(df, self._shape)  # here, not in each batch, whose rows would be copied once more
        writer = df.writeStream.foreachBatch(self._add).option("checkpointLocation", checkpoint)
        trigger = {"availableNow": True} if once else {"processingTime": f"{options.trigger_seconds} seconds"}
        self._query = writer.trigger(**trigger).start()
        return [self._query]

    def tick(self) -> None:
        """Publishes held-back files that are old enough. Without new records Spark runs no batch that would."""
        wait = max(1.0, self._options.publish_seconds / CHECKS)
        if self._query is None or self._now() - self._checked_at < wait or not self._lock.acquire(blocking=False):
            return  # a running batch holds the lock, and publishes at its end
        try:
            self._opened(str(self._query.id)).publish()
        finally:
            self._lock.release()
        self._checked_at = self._now()

    def close(self) -> None:
        """Publishes all held-back files, unless ``keep_held`` leaves them to the next run."""
        if self._query is not None and self._query.exception() is None and not self._options.keep_held:
            with self._lock:
                self._opened(str(self._query.id)).close()

    def _add(self, df: "DataFrame", batch: int) -> None:
        export = df.sparkSession.sparkContext.getLocalProperty(QUERY_ID)
        assert export is not None, "Spark sets the query's id in the thread that runs its batches"
        with self._lock:
            self._opened(export).add(df, batch)

    def _opened(self, export: str) -> Target:
        if self._target is None:
            self._target = self._open(export)
        return self._target

    def _open(self, export: str) -> Target:
        """Opens the target of the query with this id.

        :raises ValueError: the target holds another export.
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
            assert isinstance(files, LocalFiles), "ExportOptions allows nothing else"
            return DeltaTarget(files, export, options.codec(), self._shape, options.limits())
        format = Format(options.format, options.codec())
        return FileTarget(spark.newSession(), files, export, format, self._shape, options.limits())

    def _partitions(self) -> dict[str, int]:
        """Returns the number of partitions of each exported topic that exists."""
        from barnabas.pipelines.client.cluster import Cluster

        cluster = Cluster.of(self._settings)
        pattern = self._options.whole_pattern
        topics = cluster.topics(pattern) if pattern else list(self._options.topics)
        return {name: len(topic.leaders) for name, topic in cluster.describe(topics).items()}

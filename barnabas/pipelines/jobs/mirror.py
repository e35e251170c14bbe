"""The mirror job: copies topics to another cluster, unchanged and exactly once, and translates offsets of groups.

Knows nothing of the command line. Imported without Spark.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from barnabas.pipelines.jobs.mirroring.options import MirrorOptions
from barnabas.pipelines.jobs.progress import COUNTED
from barnabas.pipelines.jobs.running import Job

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from barnabas.pipelines.jobs.mirroring.periodic_sync import PeriodicSync

__all__ = ["Mirror", "MirrorOptions"]

TASKS_PER_CORE = 4
CORES_ELSEWHERE = 4
"""The assumed number of cores behind Spark Connect, which does not report it."""


class Mirror(Job):
    """Mirrors until it is stopped, or with ``once`` the records that exist when it starts."""

    name = "mirror"

    def __init__(self, options: MirrorOptions) -> None:
        self._options = options
        self._spec = options.spec()
        self._keeper: PeriodicSync | None = None
        self._query: StreamingQuery | None = None

    def start(self, spark: "SparkSession", *, once: bool, checkpoint: str) -> Sequence["StreamingQuery"]:
        """Starts one query and, without ``once``, a thread that syncs topics, their configs and offsets of groups.

        :raises ValueError: source and target are the same cluster.
        """
        from pyspark.sql import functions as f

        from barnabas.pipelines.jobs.mirroring.periodic_sync import PeriodicSync
        from barnabas.pipelines.jobs.mirroring.source import FORMAT, SPEC, TASKS, MirrorSource

        self._keeper = PeriodicSync(self._spec)
        self._keeper.check()
        spark.dataSource.register(MirrorSource)
        copied = (
            spark.readStream.format(FORMAT)
            .option(SPEC, self._spec.to_json())
            .option(TASKS, str(self._options.tasks or TASKS_PER_CORE * _cores(spark)))
            .load()
            .observe(COUNTED, f.sum("records").alias("rows"))
        )
        writer = copied.writeStream.format("noop").option("checkpointLocation", checkpoint)
        if once:
            writer = writer.trigger(availableNow=True)
        else:
            writer = writer.trigger(processingTime=f"{self._options.poll_seconds} seconds")
        self._query = writer.start()
        if not once:
            self._keeper.start()
        return [self._query]

    def close(self) -> None:
        """Stops the thread. Syncs configs and groups a last time, unless the query failed."""
        if self._keeper is not None:
            mirrored = self._query is not None and self._query.exception() is None
            self._keeper.close(last_look=mirrored)


def _cores(spark: "SparkSession") -> int:
    try:
        return spark.sparkContext.defaultParallelism
    except Exception as error:
        if "JVM_ATTRIBUTE_NOT_SUPPORTED" not in str(error) and "NOT_IMPLEMENTED" not in str(error):
            raise
        return CORES_ELSEWHERE

"""The backfill job: writes an export's Parquet back to topics, each record exactly once, in order and unchanged.

Knows nothing of the command line. Imported without Spark.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from barnabas.pipelines.jobs.backfilling.options import BackfillOptions
from barnabas.pipelines.jobs.backfilling.plan import Plan, Range, batches, partition_counts
from barnabas.pipelines.jobs.progress import Progress, Report
from barnabas.pipelines.jobs.running import BatchJob

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from barnabas.pipelines.client.cluster import Cluster
    from barnabas.pipelines.jobs.exporting.files import Files

__all__ = ["Backfill", "BackfillOptions"]

PLAN, DONE = "plan.json", "done.json"
DAY_MS = 86_400_000


class Backfill(BatchJob):
    """Writes an export to its topics, and ends. A later run continues an incomplete backfill."""

    name = "backfill"

    def __init__(self, options: BackfillOptions, *, now: Callable[[], float] = time.time) -> None:
        """:param now: the time in seconds since the epoch, which decides how old records are."""
        self._options, self._now = options, now
        self._settings = options.client_settings()
        options.write_settings()

    def checkpoint_beside(self) -> str | None:
        return self._options.checkpoint_beside()

    def work(
        self, spark: "SparkSession", *, once: bool, checkpoint: str, report: Report, stop: threading.Event
    ) -> None:
        """Writes the export in batches of about ``batch_records`` records.

        :raises ValueError: the export lacks a column or a file, or the topic would not keep the records unchanged.
        """
        from barnabas.pipelines.client.cluster import Cluster
        from barnabas.pipelines.jobs.backfilling.reading import read
        from barnabas.pipelines.jobs.exporting.claims import noted_partitions
        from barnabas.pipelines.jobs.exporting.files import files_at

        kept, files = files_at(checkpoint, spark), files_at(self._options.source, spark)
        if kept.read(DONE) is not None:
            Plan.from_json(kept.read(PLAN) or "").check_same(self._options.what())
            return
        plan = self._plan(spark, kept, files)
        df = read(spark, files, sorted(plan.files), self._options)
        cluster = Cluster.of(self._settings)
        targets = self._targets(plan)
        counts = partition_counts(plan.spans, noted_partitions(files))
        for topic, count in counts.items():
            self._prepare(cluster, targets[topic], count, plan.oldest)
        left = plan.records
        for number, ranges in enumerate(batches(plan.spans, self._options.batch_records)):
            if stop.is_set():
                return
            began = time.monotonic()
            done = self._write(df, plan, targets, ranges)
            left -= done
            report(Progress(self.name, number, done, time.monotonic() - began, left))
        kept.write(DONE, "{}")

    def _plan(self, spark: "SparkSession", kept: "Files", files: "Files") -> Plan:
        """Returns the plan of the first run; makes and keeps it if this is the first run."""
        from barnabas.pipelines.jobs.backfilling.reading import holds_back, parquet_files, read, spans

        there = parquet_files(files)
        text = kept.read(PLAN)
        if text is not None:
            plan = Plan.from_json(text)
            plan.check_same(self._options.what())
            plan.check_files(there)
            return plan
        if not there:
            raise ValueError(f"there is no Parquet in {self._options.source}")
        if holds_back(files) and not self._options.partial:
            raise ValueError(
                f"the export in {self._options.source} holds records back that would be missing: stop it first, so "
                "that it shows them, or say partial"
            )
        found, oldest = spans(read(spark, files, sorted(there), self._options))
        if not found:
            raise ValueError(f"{self._options.source} holds no record that was requested")
        plan = Plan(f"barnabas-backfill-{uuid4()}", self._options.what(), there, found, oldest)
        kept.write(PLAN, plan.to_json())
        return plan

    def _targets(self, plan: Plan) -> dict[str, str]:
        """Returns the target topic of each topic in the export."""
        topics = sorted({span.topic for span in plan.spans})
        if self._options.to_topic is None:
            return {topic: topic for topic in topics}
        if len(topics) > 1:
            raise ValueError(f"to_topic is one topic, but the export holds {', '.join(topics)}: choose with topics")
        return {topics[0]: self._options.to_topic}

    def _prepare(self, cluster: "Cluster", topic: str, partitions: int, oldest: int) -> None:
        """Creates the topic, or checks that the existing one keeps the records unchanged.

        :raises ValueError: it would not; the message names the config and what to do.
        """
        from barnabas.pipelines.jobs.mirroring.administration import NewTopic, create_topic

        configs = {"retention.ms": "-1", **self._options.topic_config}
        new = NewTopic(topic, partitions, self._options.replication_factor, configs)
        there = cluster.describe([topic]).get(topic)
        if there is None and create_topic(cluster, new):
            return
        there = there or cluster.describe([topic])[topic]
        if len(there.leaders) < partitions:
            raise ValueError(
                f"topic {topic} has {len(there.leaders)} partitions, but the export is of {partitions}: add "
                "partitions to it, or name another with to_topic"
            )
        problem = would_change(self._configs(cluster, topic), oldest, now=self._now() * 1000)
        if problem and not (self._options.ignore_retention and problem.startswith("retention.ms")):
            raise ValueError(f"topic {topic}: {problem}")

    def _configs(self, cluster: "Cluster", topic: str) -> dict[str, str]:
        """Returns the topic's effective configs."""
        from kafka.admin import ConfigResource, ConfigResourceType

        with contextlib.closing(cluster.admin()) as admin:
            described: Any = admin.describe_configs(
                [ConfigResource(ConfigResourceType.TOPIC, topic)], config_filter="all"
            )
        return {name: str(config["value"]) for name, config in described["topic"][topic].items()}

    def _write(self, df: "DataFrame", plan: Plan, targets: Mapping[str, str], ranges: list[Range]) -> int:
        """Writes these ranges; returns the number of their records, including those that were written before."""
        from barnabas.pipelines.jobs.backfilling.reading import within
        from barnabas.pipelines.jobs.backfilling.writing import RESULT, Write

        if not ranges:
            return 0
        write = Write(plan.id, self._settings, self._options.write_settings(), tuple(targets.items()))
        rows = within(df, ranges).mapInArrow(write, RESULT).collect()
        return sum(row.written + row.skipped for row in rows)


def would_change(configs: Mapping[str, str], oldest: int, *, now: float) -> str | None:
    """Returns why a topic with these configs would not keep the records unchanged, or None if it would.

    :param oldest: the timestamp of the oldest record in ms.
    :param now: the time in ms.
    """
    if configs.get("message.timestamp.type") == "LogAppendTime":
        return "message.timestamp.type is LogAppendTime, so that records would get new timestamps: set it to CreateTime"
    retention = int(configs.get("retention.ms", "-1"))
    if "delete" in configs.get("cleanup.policy", "delete") and 0 <= retention < now - oldest:
        return (
            f"retention.ms is {retention}, but the oldest record is of {round((now - oldest) / DAY_MS)} days ago, and "
            "would be deleted: set it to -1, or say ignore_retention"
        )
    return None

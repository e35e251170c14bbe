"""The stream job: reads topics as tables, transforms them by a function or SQL, and writes the result to a topic.

Records that cannot be decoded may go to another topic. Knows nothing of the command line. Imported without Spark.
"""

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from barnabas.pipelines.jobs.running import Job
from barnabas.pipelines.jobs.streaming.options import STATE_STORES, StreamOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["Stream", "StreamOptions"]

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
PARTITIONS = "spark.sql.shuffle.partitions"
SPARKS_PARTITIONS = "200"
"""Spark's default, which is far too high for the state of a stream."""


class Stream(Job):
    """Writes the result in one query, and dead letters in another."""

    name = "stream"

    def __init__(self, options: StreamOptions) -> None:
        self._options = options
        self._views: dict[str, SparkSession] = {}

    def start(self, spark: "SparkSession", *, once: bool, checkpoint: str) -> Sequence["StreamingQuery"]:
        """Starts one query, or two with dead letters.

        The query of the dead letters reads the topics itself: the result may be an aggregate, which does not show
        which records are missing.

        :raises ValueError: a table, the function or the statement is wrong.
        """
        from barnabas.pipelines.jobs.streaming.records import as_records, dead_letters
        from barnabas.pipelines.jobs.streaming.tables import make_tables

        options = self._options
        made = make_tables(spark, options, self._starting())
        result = self._result(spark, made.tables)
        if not result.isStreaming:
            raise ValueError("the result is of no table that is read as a stream, so that there is nothing to wait for")
        records = as_records(result, options.value_format, options.encoded_key_format)
        flows = [(f"stream to {options.to}", records, options.to, "flow", options.output_mode)]
        if made.bad is not None and options.dead_letters is not None:
            letters = dead_letters(made.bad, f"stream to {options.to}")
            flows.append((f"dead letters to {options.dead_letters}", letters, options.dead_letters, "dead", "append"))
        queries: list[StreamingQuery] = []
        with self._state(spark):
            try:
                for name, frame, topic, place, mode in flows:
                    writer = frame.writeStream.format("barnabas").options(**options.sink_options(topic))
                    writer = writer.queryName(name).outputMode(mode)
                    writer = writer.option("checkpointLocation", f"{checkpoint.rstrip('/')}/{place}")
                    if once:
                        writer = writer.trigger(availableNow=True)
                    elif options.trigger_seconds is not None:
                        writer = writer.trigger(processingTime=f"{options.trigger_seconds} seconds")
                    queries.append(writer.start())
            except BaseException:
                for query in queries:
                    query.stop()
                raise
        return queries

    def _result(self, spark: "SparkSession", tables: Mapping[str, "DataFrame"]) -> "DataFrame":
        from barnabas.pipelines.jobs.streaming.functions import call, function_of

        for name, frame in tables.items():
            frame.createOrReplaceTempView(name)
            self._views[name] = spark
        statement = self._options.statement()
        if statement is not None:
            return spark.sql(statement)
        return call(function_of(self._options.transform or ""), tables, spark)

    def close(self) -> None:
        """Drops the views. Spark Connect resolves them only when a query starts, so they are kept until now."""
        for name, spark in self._views.items():
            spark.catalog.dropTempView(name)
        self._views.clear()

    def _starting(self) -> dict[str, str]:
        """Returns the topics' end offsets if two queries start at ``latest``, as each query would see another end."""
        options = self._options
        if options.starting_offsets != "latest" or options.bad_records != "dead-letter":
            return {}
        from barnabas.pipelines.client.cluster import LATEST, Cluster, TopicPartition
        from barnabas.pipelines.client.settings import ClientSettings

        said = options.source_options()
        cluster = Cluster.of(ClientSettings.parse(_settings(said)))
        # Not behind an open transaction: for read_committed such a start is past the end.
        committed = said.get("kafka.isolation.level") == "read_committed"
        found = {}
        for topic in {table.topic for table in options.parsed_tables if table.topic is not None}:
            asks = {TopicPartition(topic, partition): LATEST for partition in cluster.partitions(topic)}
            ends = cluster.list_offsets(asks, committed=committed)
            found[topic] = json.dumps({topic: {str(each.partition): end.offset for each, end in ends.items()}})
        return found

    @contextlib.contextmanager
    def _state(self, spark: "SparkSession") -> Iterator[None]:
        """Sets the configs of the state store while queries start, and restores the session's configs afterwards."""
        wanted = {PROVIDER: STATE_STORES[self._options.state_store]}
        partitions = self._options.state_partitions
        if partitions is None and spark.conf.get(PARTITIONS, SPARKS_PARTITIONS) == SPARKS_PARTITIONS:
            partitions = self._widest()
        if partitions is not None:
            wanted[PARTITIONS] = str(partitions)
        before = {name: spark.conf.get(name, None) for name in wanted}
        for name, value in wanted.items():
            spark.conf.set(name, value)
        try:
            yield
        finally:
            for name, old in before.items():
                if old is None:
                    spark.conf.unset(name)
                else:
                    spark.conf.set(name, old)

    def _widest(self) -> int:
        """Returns the largest number of partitions of a topic that is read as a stream."""
        from barnabas.pipelines.client.cluster import Cluster
        from barnabas.pipelines.client.settings import ClientSettings

        cluster = Cluster.of(ClientSettings.parse(_settings(self._options.source_options())))
        streamed = [table.topic for table in self._options.parsed_tables if table.topic and table.read == "stream"]
        return max((len(cluster.partitions(topic)) for topic in streamed), default=1)


def _settings(source_options: Mapping[str, str]) -> dict[str, str]:
    """Returns the client's settings among these options, by Kafka's names."""
    from barnabas.pipelines.client.settings import SETTINGS

    named = {name.removeprefix("kafka."): value for name, value in source_options.items()}
    return {name: value for name, value in named.items() if name in SETTINGS}

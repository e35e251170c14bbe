"""Reads and writes topics as DataFrames in one call: with Spark's own Kafka connector if installed, or our data source.

Knows nothing of how they work; both have the same columns and options.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from barnabas.pipelines.options import READ, WRITE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

SPARKS_OWN, OURS = "kafka", "barnabas"

ONLY_OURS = frozenset({"commitgroup", "delivery", "sinkid", "batchid"})
"""Options that Spark's own connector would ignore silently."""


def read_topic(
    spark: "SparkSession",
    topics: str | Sequence[str] | re.Pattern[str],
    *,
    bootstrap_servers: str,
    stream: bool = False,
    **options: Any,
) -> "DataFrame":
    """Returns a DataFrame of topics.

    Options are those of the source: ``startingOffsets="earliest"``, ``includeHeaders=True``,
    ``**{"kafka.security.protocol": "SSL"}``. Offsets and times of partitions may be dicts.

    :param topics: names, or a pattern that is found in names.
    """
    said = _texts(options)
    if isinstance(topics, re.Pattern):
        said["subscribePattern"] = topics.pattern
    else:
        said["subscribe"] = topics if isinstance(topics, str) else ",".join(topics)
    reader = spark.readStream if stream else spark.read
    format_ = connector(spark, options)
    return reader.format(format_).options(**{**said, "kafka.bootstrap.servers": bootstrap_servers}).load()


def write_topic(
    frame: "DataFrame",
    topic: str | None = None,
    *,
    bootstrap_servers: str,
    checkpoint: str | None = None,
    **options: Any,
) -> "DataStreamWriter | None":
    """Writes a DataFrame's rows to a topic, or to the topics in its column ``topic``.

    Writes a batch DataFrame at once. For a streaming one it returns a writer, whose ``trigger`` and ``start`` the
    caller calls. The columns are value and, optionally, key, headers, topic, partition and timestamp. Only our data
    source writes the column timestamp.
    """
    said = {**_texts(options), "kafka.bootstrap.servers": bootstrap_servers}
    if topic is not None:
        said["topic"] = topic
    format_ = OURS if "timestamp" in frame.columns else connector(frame.sparkSession, options)
    if not frame.isStreaming:
        frame.write.format(format_).mode("append").options(**said).save()
        return None
    if checkpoint is not None:
        said["checkpointLocation"] = checkpoint
    return frame.writeStream.format(format_).options(**said)


def connector(spark: "SparkSession", options: Mapping[str, Any] | None = None) -> str:
    """Returns the format for topics in this session, with these options."""
    if any(name.lower() in ONLY_OURS for name in options or ()):
        return OURS
    return SPARKS_OWN if has_connector(spark) else OURS


def has_connector(spark: "SparkSession") -> bool:
    """Returns whether Spark finds its own Kafka connector, by loading it, which also works through Spark Connect."""
    from pyspark.errors import PySparkException

    probe = (
        spark.read.format(SPARKS_OWN).option("kafka.bootstrap.servers", "nobody:9092").option("subscribe", "nothing")
    )
    try:
        probe.load().schema  # noqa: B018  # Spark Connect looks for the format only now
    except PySparkException as problem:
        if "data source" not in str(problem).lower():
            raise
        return False
    return True


def _texts(options: Mapping[str, Any]) -> dict[str, str]:
    """Returns values as Spark's texts, by the source's names of options."""
    result = {}
    for name, value in options.items():
        known = READ.get(name.lower()) or WRITE.get(name.lower())
        if isinstance(value, bool):
            text = "true" if value else "false"
        else:
            text = json.dumps(value) if isinstance(value, Mapping) else str(value)
        result[known.name if known is not None else name] = text
    return result

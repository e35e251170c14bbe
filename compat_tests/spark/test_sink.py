"""Rows written by Spark through this sink, read by another client."""

import datetime as dt
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, PythonException
from pyspark.sql import DataFrame, SparkSession

from compat_tests.spark.generated import Made, by_partition, made
from compat_tests.spark.topics import committed, create

PARTITIONS = 3
ROWS = (
    "topic string, key binary, value binary, headers array<struct<key:string,value:binary>>, "
    "partition int, timestamp timestamp, remark string"
)


def rows(spark: SparkSession, records: Sequence[Made]) -> DataFrame:
    """Returns the records as a table of two partitions, in order, with a column that is unknown to the sink."""
    table: list[tuple[Any, ...]] = []
    for topic, partition, key, value, headers, timestamp in records:
        time = dt.datetime.fromtimestamp(timestamp / 1000, dt.UTC)
        table.append((topic, key, value, list(headers) or None, partition, time, "not written"))
    return spark.createDataFrame(table, ROWS).coalesce(1)


def writer(table: DataFrame, bootstrap: str, **options: str) -> Any:
    return table.write.format("barnabas").mode("append").options(**{"kafka.bootstrap.servers": bootstrap, **options})


@pytest.mark.parametrize("delivery", ["at-least-once", "exactly-once"])
def test_every_column_of_every_row(spark: SparkSession, bootstrap: str, name: str, delivery: str) -> None:
    one, other = f"{name}-1", f"{name}-2"
    create(bootstrap, one, other, partitions=PARTITIONS)
    records = [*made(one, 700, partitions=PARTITIONS), *made(other, 300, partitions=PARTITIONS)]
    writer(rows(spark, records), bootstrap, delivery=delivery, **{"kafka.compression.type": "zstd"}).save()
    for topic in (one, other):
        assert committed(bootstrap, topic) == by_partition([r for r in records if r.topic == topic], PARTITIONS)


def test_the_option_topic_wins_and_keys_find_their_partitions(spark: SparkSession, bootstrap: str, name: str) -> None:
    create(bootstrap, name, partitions=PARTITIONS)
    table = spark.range(0, 2_000, 1, 2).selectExpr(
        "'nowhere' topic", "cast(id as string) key", "cast(id as string) value"
    )
    writer(table, bootstrap, topic=name).save()
    found = committed(bootstrap, name)
    assert sorted(int(record.value or b"") for partition in found for record in partition) == list(range(2_000))
    assert all(len(partition) > 500 for partition in found)
    assert all(record.key == record.value for partition in found for record in partition)


def test_a_stream_of_rows(spark: SparkSession, bootstrap: str, name: str, tmp_path: Path) -> None:
    create(bootstrap, name, partitions=PARTITIONS)
    table = spark.range(0, 3_000, 1, 3).selectExpr("cast(id % 7 as string) key", "cast(id as string) value")
    table.write.parquet(str(tmp_path / "rows"))
    for _ in range(2):  # the second finds nothing new
        query = (
            spark.readStream.schema(table.schema)
            .option("maxFilesPerTrigger", 1)
            .parquet(str(tmp_path / "rows"))
            .writeStream.format("barnabas")
            .options(**{"kafka.bootstrap.servers": bootstrap, "topic": name, "delivery": "exactly-once"})
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(120)
    found = [int(record.value or b"") for partition in committed(bootstrap, name) for record in partition]
    assert sorted(found) == list(range(3_000))


def test_errors_of_invalid_rows(spark: SparkSession, bootstrap: str, topic: str) -> None:
    create(bootstrap, topic, partitions=PARTITIONS)
    table = spark.range(4).selectExpr(
        "cast(id as string) value", "cast(null as string) topic", "cast(id as int) partition"
    )
    for wrong, options, words in (
        (table.select("value"), {}, "no topic: set the option topic"),
        (table.select("topic"), {"topic": topic}, "there is no column value, only topic"),
        (table.selectExpr("partition as value"), {"topic": topic}, "column value is int, not a string or binary"),
        (table, {"topic": topic, "toppic": "x"}, "toppic is not an option of a batch write; did you mean topic?"),
    ):
        with pytest.raises(AnalysisException) as refused:
            writer(wrong, bootstrap, **options).save()
        assert words in str(refused.value)
    with pytest.raises(AnalysisException, match=r'a topic cannot be overwritten: use .mode\("append"\)'):
        writer(table, bootstrap, topic=topic).mode("overwrite").save()
    with pytest.raises(PythonException, match="the column topic of a row is null"):
        writer(table, bootstrap).save()
    with pytest.raises(PythonException, match=f"a row names partition 3 of topic '{topic}', which has"):
        writer(table, bootstrap, topic=topic).save()

"""Invalid options, and topics or offsets that are gone: the error names them, and says what would be right."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition as Cut
from confluent_kafka.admin import AdminClient
from pyspark.sql import DataFrame, SparkSession

from compat_tests.running import Running
from compat_tests.spark.generated import made, send
from compat_tests.spark.test_source import batch, drain, eventually, plain, stream
from compat_tests.spark.topics import create


def complaint(action: Callable[[], Any]) -> str:
    with pytest.raises(Exception) as raised:
        action()
    return str(raised.value)


def recreate(bootstrap: str, topic: str, partitions: int) -> None:
    """Deletes a topic and creates it again, with another id."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.delete_topics([topic])[topic].result(30)
    eventually(lambda: topic not in admin.list_topics(timeout=30).topics)
    create(bootstrap, topic, partitions=partitions)


def cut(bootstrap: str, topic: str, partition: int, before: int) -> None:
    """Deletes the records before an offset."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for done in admin.delete_records([Cut(topic, partition, before)]).values():
        done.result(30)


def test_errors_are_raised_when_the_query_is_made(spark: SparkSession, bootstrap: str, topic: str) -> None:
    create(bootstrap, topic, partitions=2)
    assert f"topic {topic}-x does not exist" in complaint(batch(spark, bootstrap, subscribe=f"{topic}-x").collect)
    assert "did you mean startingOffsets?" in complaint(lambda: batch(spark, bootstrap, startingOffset="earliest"))
    some = batch(spark, bootstrap, subscribe=topic, startingOffsets=f'{{"{topic}": {{"0": 0}}}}')
    assert f"missing: {topic}-1" in complaint(some.collect)
    other = spark.read.format("barnabas").schema("a int").option("kafka.bootstrap.servers", bootstrap)
    assert "not struct<a:int>: omit .schema()" in complaint(other.option("subscribe", topic).load().collect)
    rows = spark.createDataFrame([(b"v",)], "value binary")
    writer = rows.write.format("barnabas").option("kafka.bootstrap.servers", bootstrap).option("topic", topic)
    assert 'use .mode("append")' in complaint(writer.mode("overwrite").save)


def test_offsets_that_are_out_of_range(spark: SparkSession, bootstrap: str, topic: str, tmp_path: Path) -> None:
    create(bootstrap, topic, partitions=1)
    send(bootstrap, made(topic, 100, partitions=1))
    frame = stream(spark, bootstrap, subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger="10")
    query = (
        frame.writeStream.foreachBatch(lambda *_: None).option("checkpointLocation", str(tmp_path)).trigger(once=True)
    )
    limited = query.start()
    assert limited.awaitTermination(120)
    send(bootstrap, made(topic, 20, partitions=1, seed=8))
    cut(bootstrap, topic, 0, 110)

    early = {"startingOffsets": f'{{"{topic}": {{"0": 50}}}}'}
    found = complaint(batch(spark, bootstrap, subscribe=topic, **early).collect)
    assert f"{topic}-0: the records at offsets 50 to 109 cannot be read" in found and "failOnDataLoss=false" in found
    rest = batch(spark, bootstrap, subscribe=topic, failOnDataLoss="false", **early).collect()
    assert [row.offset for row in rest] == list(range(110, 120))
    beyond = {"startingOffsets": f'{{"{topic}": {{"0": 500}}}}'}
    assert f"{topic}-0: startingOffsets begins at offset 500, after its end 120" in complaint(
        batch(spark, bootstrap, subscribe=topic, **beyond).collect
    )

    again = {"subscribe": topic, "startingOffsets": "earliest"}
    found = complaint(lambda: drain(stream(spark, bootstrap, **again), tmp_path))
    assert f"{topic}-0: the records at offsets 100 to 109 cannot be read" in found
    batches, _ = drain(stream(spark, bootstrap, failOnDataLoss="false", **again), tmp_path)
    assert [row.offset for rows in batches for row in rows] == list(range(110, 120))


def test_a_topic_that_is_deleted_and_made_again_under_a_query(
    spark: SparkSession, bootstrap: str, topic: str, tmp_path: Path
) -> None:
    create(bootstrap, topic, partitions=2)
    send(bootstrap, made(topic, 100, partitions=2))
    options = {"subscribe": topic, "startingOffsets": "earliest"}
    batches, _ = drain(stream(spark, bootstrap, **options), tmp_path)
    assert sum(map(len, batches)) == 100
    recreate(bootstrap, topic, 1)
    new = made(topic, 150, partitions=1, seed=8)
    send(bootstrap, new)
    found = complaint(lambda: drain(stream(spark, bootstrap, **options), tmp_path))
    assert f"topic {topic} was deleted and created again" in found and f"{topic}-1: lost" in found
    batches, _ = drain(stream(spark, bootstrap, failOnDataLoss="false", **options), tmp_path)
    rows = plain([row for rows in batches for row in rows])
    assert [(row[1], row[3]) for row in rows] == [(at, record.value) for at, record in enumerate(new)]


def test_a_broker_that_goes_away_and_comes_back_under_a_stream(
    spark: SparkSession, own_broker: Callable[..., Running], topic: str, tmp_path: Path
) -> None:
    broker = own_broker()
    create(broker.bootstrap, topic, partitions=2)
    send(broker.bootstrap, made(topic, 100, partitions=2))
    seen: list[int] = []
    gone = threading.Event()
    returning = threading.Timer(1, broker.start)

    def take(rows: DataFrame, number: int) -> None:
        if number == 1 and not gone.is_set():
            gone.set()
            broker.kill()
            returning.start()
        seen.extend(row.partition << 32 | row.offset for row in rows.select("partition", "offset").collect())

    frame = stream(spark, broker.bootstrap, subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger="30")
    query = frame.writeStream.foreachBatch(take).option("checkpointLocation", str(tmp_path)).start()
    try:
        eventually(lambda: len(seen) >= 100 or query.exception() is not None)
        send(broker.bootstrap, made(topic, 40, partitions=2, seed=8))
        eventually(lambda: len(seen) >= 140 or query.exception() is not None)
        assert query.exception() is None
        assert gone.is_set() and len(seen) == len(set(seen)) == 140
    finally:
        query.stop()
        if gone.is_set():
            returning.join()

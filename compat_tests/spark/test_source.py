"""The data source for its users: batches and streams of topics, their options, checkpoints and lag."""

import json
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions
from pyspark.sql import DataFrame, Row, SparkSession

from barnabas.pipelines import topics
from barnabas.pipelines.client import LATEST, TopicPartition
from barnabas.pipelines.client.cluster import Cluster
from barnabas.pipelines.client.settings import ClientSettings
from barnabas.pipelines.lag import follow
from compat_tests.spark.generated import Made, by_partition, made, send
from compat_tests.spark.topics import create

Record = tuple[int, int, bytes | None, bytes | None, int, tuple[tuple[str, bytes | None], ...]]


def eventually(condition: Callable[[], object], seconds: float = 120) -> None:
    """Returns once the condition holds; fails after the timeout."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def cluster(bootstrap: str) -> Cluster:
    return Cluster.of(ClientSettings.parse({"bootstrap.servers": bootstrap}))


def batch(spark: SparkSession, bootstrap: str, **options: str) -> DataFrame:
    return (
        spark.read.format("barnabas")
        .options(**{"kafka.bootstrap.servers": bootstrap, "includeHeaders": "true", **options})
        .load()
    )


def stream(spark: SparkSession, bootstrap: str, **options: str) -> DataFrame:
    return (
        spark.readStream.format("barnabas")
        .options(**{"kafka.bootstrap.servers": bootstrap, "includeHeaders": "true", **options})
        .load()
    )


def drain(frame: DataFrame, checkpoint: Path) -> tuple[list[list[Row]], Any]:
    """Returns the rows of each micro-batch until the end of the topic, and the query."""
    batches: list[list[Row]] = []
    query = (
        frame.writeStream.foreachBatch(lambda rows, _: batches.append(rows.collect()))
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)
    return batches, query


def plain(rows: Sequence[Row]) -> list[Record]:
    """Returns rows in order of partition and offset, as Python's own values; timestamps in ms."""
    return sorted(
        (
            row.partition,
            row.offset,
            None if row.key is None else bytes(row.key),
            None if row.value is None else bytes(row.value),
            round(row.timestamp.replace(tzinfo=UTC).timestamp() * 1000),
            tuple((header.key, header.value and bytes(header.value)) for header in row.headers or ()),
        )
        for row in rows
    )


def sent(records: Sequence[Made], partitions: int = 4) -> list[Record]:
    """Returns the `plain` rows of records that were sent to an empty topic in this order."""
    return [
        (record.partition, offset, record.key, record.value, record.timestamp, record.headers)
        for held in by_partition(records, partitions)
        for offset, record in enumerate(held)
    ]


def test_a_batch_is_what_was_sent_row_by_row(spark: SparkSession, bootstrap: str, topic: str) -> None:
    create(bootstrap, topic)
    records = made(topic, 4_000)
    send(bootstrap, records, compression_type="lz4")
    assert plain(batch(spark, bootstrap, subscribe=topic).collect()) == sent(records)

    some = batch(
        spark,
        bootstrap,
        assign=json.dumps({topic: [0, 1, 3]}),
        startingOffsets=json.dumps({topic: {"0": -2, "1": 5, "3": 10}}),
        endingOffsets=json.dumps({topic: {"0": 7, "1": -1, "3": 10}}),
        minPartitions="8",
    )
    assert plain(some.collect()) == [
        record for record in sent(records) if (record[0] == 0 and record[1] < 7) or (record[0] == 1 and record[1] >= 5)
    ]


def test_a_batch_from_one_time_to_another(spark: SparkSession, bootstrap: str, topic: str) -> None:
    create(bootstrap, topic, partitions=2)
    records = [Made(topic, n % 2, None, b"%d" % n, (), 1_700_000_000_000 + 1_000 * n) for n in range(40)]
    send(bootstrap, records)
    between = batch(
        spark,
        bootstrap,
        subscribePattern=f"{topic[:-1]}.",
        startingTimestamp="1700000010500",
        endingTimestamp="1700000020000",
    )
    rows = between.orderBy("timestamp").collect()
    assert [int(bytes(row.value)) for row in rows] == list(range(11, 20))
    assert rows[0].timestamp.replace(tzinfo=UTC) == datetime(2023, 11, 14, 22, 13, 31, tzinfo=UTC)
    assert {(row.topic, row.timestampType, row.headers) for row in rows} == {(topic, 0, None)}
    late = {"startingOffsetsByTimestamp": json.dumps({topic: {"0": 1_800_000_000_000, "1": 1_700_000_035_000}})}
    rows = batch(spark, bootstrap, subscribe=topic, startingOffsetsByTimestampStrategy="latest", **late).collect()
    assert [int(bytes(row.value)) for row in rows] == [35, 37, 39]


def test_a_stream_continues_at_its_checkpoint_with_new_partitions_and_topics(
    spark: SparkSession, bootstrap: str, topic: str, group: str, tmp_path: Path
) -> None:
    create(bootstrap, topic, partitions=2)
    first = made(topic, 1_000, partitions=2)
    send(bootstrap, first)
    options = {
        "subscribePattern": f"{topic}.*",
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": "400",
        "commitGroup": group,
    }
    batches, query = drain(stream(spark, bootstrap, **options), tmp_path)
    assert plain([row for rows in batches for row in rows]) == sent(first, 2)
    assert len(batches) == 3 and all(len(rows) <= 402 for rows in batches)
    ends = {
        part: listed.offset
        for part, listed in cluster(bootstrap)
        .list_offsets({TopicPartition(topic, 0): LATEST, TopicPartition(topic, 1): LATEST})
        .items()
    }
    assert json.loads(query.recentProgress[0].sources[0].latestOffset)[topic] == {
        "0": ends[topic, 0],
        "1": ends[topic, 1],
    }
    assert {part: kept.offset for part, kept in cluster(bootstrap).committed(group).items()} == ends

    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_partitions([NewPartitions(topic, 4)])[topic].result(30)
    create(bootstrap, f"{topic}-more", partitions=1)
    more, other = made(topic, 500, seed=8), made(f"{topic}-more", 50, partitions=1)
    send(bootstrap, [*more, *other])
    batches, _ = drain(stream(spark, bootstrap, **options), tmp_path)
    rows = [row for rows in batches for row in rows]
    assert plain([row for row in rows if row.topic != topic]) == sent(other, 1)
    assert sent([*first, *more]) == sorted([*sent(first, 2), *plain([row for row in rows if row.topic == topic])])
    batches, _ = drain(stream(spark, bootstrap, **options), tmp_path)
    assert batches == []


def test_latest_is_where_the_query_was_first_started(
    spark: SparkSession, bootstrap: str, topic: str, tmp_path: Path
) -> None:
    create(bootstrap, topic, partitions=1)
    send(bootstrap, made(topic, 10, partitions=1))
    batches, _ = drain(stream(spark, bootstrap, subscribe=topic), tmp_path)
    assert batches == [[]]  # the query keeps this offset in its checkpoint
    missed = made(topic, 20, partitions=1, seed=8)
    send(bootstrap, missed)
    batches, _ = drain(stream(spark, bootstrap, subscribe=topic), tmp_path)
    assert [record[1] for rows in batches for record in plain(rows)] == list(range(10, 30))
    assert [record[3] for rows in batches for record in plain(rows)] == [record.value for record in missed]


def test_a_first_batch_that_failed_begins_where_it_began(
    spark: SparkSession, bootstrap: str, topic: str, tmp_path: Path
) -> None:
    """Spark does not keep the start of a first batch: "latest" would be a different offset in the second attempt."""
    create(bootstrap, topic, partitions=1)
    send(bootstrap, made(topic, 10, partitions=1))

    def fail(rows: DataFrame, number: int) -> None:
        raise RuntimeError("no disk")

    query = (
        stream(spark, bootstrap, subscribe=topic)
        .writeStream.foreachBatch(fail)
        .option("checkpointLocation", str(tmp_path))
        .start()
    )
    with pytest.raises(Exception, match="no disk"):
        query.awaitTermination(120)
    send(bootstrap, made(topic, 5, partitions=1, seed=8))
    batches, _ = drain(stream(spark, bootstrap, subscribe=topic), tmp_path)
    assert [[row.offset for row in rows] for rows in batches] == [[], [10, 11, 12, 13, 14]]


def test_topics_in_one_call_and_their_lag(
    spark: SparkSession, bootstrap: str, topic: str, group: str, tmp_path: Path
) -> None:
    create(bootstrap, topic, partitions=1)
    assert topics.connector(spark, {"commitGroup": group}) == "barnabas"
    assert topics.connector(spark) == ("kafka" if "kafka" in spark.conf.get("spark.jars", "") else "barnabas")
    rows = spark.createDataFrame([(b"k%d" % n, b"v%d" % n) for n in range(20)], "key binary, value binary")
    rows = rows.coalesce(1)  # one task writes them in order
    assert topics.write_topic(rows, topic, bootstrap_servers=bootstrap) is None
    read = topics.read_topic(spark, topic, bootstrap_servers=bootstrap, startingOffsets={topic: {"0": 5}})
    assert sorted(bytes(row.value) for row in read.collect()) == sorted(b"v%d" % n for n in range(5, 20))

    listener = follow(spark, bootstrap_servers=bootstrap, group=group)
    try:
        again = topics.read_topic(spark, [topic], bootstrap_servers=bootstrap, stream=True, startingOffsets="earliest")
        writer = topics.write_topic(
            again.select("key", "value"), f"{topic}-copy", bootstrap_servers=bootstrap, checkpoint=str(tmp_path)
        )
        assert writer is not None
        assert writer.trigger(availableNow=True).start().awaitTermination(120)
        cluster_client = cluster(bootstrap)
        eventually(
            lambda: {part: kept.offset for part, kept in cluster_client.committed(group).items()} == {(topic, 0): 20}
        )
        copied = topics.read_topic(spark, f"{topic}-copy", bootstrap_servers=bootstrap)
        assert sorted(bytes(row.value) for row in copied.collect()) == sorted(b"v%d" % n for n in range(20))
    finally:
        spark.streams.removeListener(listener)


def test_beside_spark_s_own_connector(connector: SparkSession, bootstrap: str, topic: str, tmp_path: Path) -> None:
    """The same options give the same records, tasks, and ends of micro-batches."""
    spark = connector
    create(bootstrap, topic, partitions=3)
    send(bootstrap, [record for record in made(topic, 600, partitions=3) if record.partition or record.key])
    middle = made(topic, 300, partitions=3)[-1].timestamp

    def both(**options: str) -> list[DataFrame]:
        given = {"kafka.bootstrap.servers": bootstrap, "includeHeaders": "true", **options}
        return [spark.read.format(format_).options(**given).load() for format_ in ("kafka", "barnabas")]

    for options in (
        {"subscribePattern": f"{topic}.*", "startingTimestamp": str(middle), "minPartitions": "7"},
        {
            "assign": json.dumps({topic: [0, 2]}),
            "startingOffsets": json.dumps({topic: {"0": 11, "2": -2}}),
            "endingOffsets": json.dumps({topic: {"0": -1, "2": 30}}),
        },
    ):
        theirs, ours = both(**options)
        assert plain(ours.collect()) == plain(theirs.collect()) != []
        if "minPartitions" in options:
            assert ours.rdd.getNumPartitions() == theirs.rdd.getNumPartitions()

    ends = []
    for format_ in ("kafka", "barnabas"):
        frame = (
            spark.readStream.format(format_)
            .option("kafka.bootstrap.servers", bootstrap)
            .option("subscribe", topic)
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", "250")
            .load()
        )
        query = (
            frame.writeStream.format("noop")
            .option("checkpointLocation", str(tmp_path / format_))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(120)
        ends.append([json.loads(progress.sources[0].endOffset)[topic] for progress in query.recentProgress])
    assert ends[0] == ends[1] and len(ends[0]) == 3

"""Spark's own connector, unmodified, against Barnabas, and Barnabas's source beside it: same queries, same rows.

Without the connector's jars only our half runs. The records are from `generated`.
"""

import json
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka import TopicPartition as Position
from confluent_kafka.admin import AdminClient
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StreamingQuery

from compat_tests.spark.generated import Made, by_partition, made, renamed, send
from compat_tests.spark.topics import create

PARTITIONS = 4
FORMATS = ("kafka", "barnabas")
SAME_FOR_ALL = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")
TIMES = 1_700_000_000_000
FAILURES = (PySparkException, Py4JJavaError)
"""Errors as Python gets them: those of Spark's own connector have no Python class."""


@pytest.fixture(params=FORMATS)
def source(request: pytest.FixtureRequest) -> str:
    """Returns the name of the format; Spark's own only if its jars are there."""
    if request.param == "kafka":
        request.getfixturevalue("connector")
    return str(request.param)


@pytest.fixture(scope="module")
def admin(bootstrap: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap})


@pytest.fixture(scope="module")
def new_topic(bootstrap: str) -> Callable[[str], str]:
    def new(name: str) -> str:
        name = f"{name}-{secrets.token_hex(4)}"
        create(bootstrap, name, partitions=PARTITIONS)
        return name

    return new


@pytest.fixture(scope="module")
def sent(bootstrap: str, new_topic: Callable[[str], str]) -> list[Made]:
    """Returns the records of one topic; `by_partition` has their order."""
    records = made(new_topic("own-connector"), 2000, partitions=PARTITIONS)
    send(bootstrap, records, compression_type="lz4")
    return records


@pytest.fixture
def read(spark: SparkSession, bootstrap: str, source: str) -> Callable[..., DataFrame]:
    def read(**options: str) -> DataFrame:
        given = {"kafka.bootstrap.servers": bootstrap, "includeHeaders": "true", **options}
        return spark.read.format(source).options(**given).load()

    return read


Row = tuple[Any, ...]


def row(record: Made, offset: int) -> Row:
    """Returns a record as a row, with times in ms; a record without headers has null for them."""
    return (
        record.key,
        record.value,
        record.topic,
        record.partition,
        offset,
        record.timestamp,
        0,
        list(record.headers) or None,
    )


def rows_of(records: list[Made]) -> list[Row]:
    held = by_partition(records, PARTITIONS)
    return [row(record, offset) for partition in held for offset, record in enumerate(partition)]


def taken(frame: DataFrame) -> list[Row]:
    """Returns the rows of a source in order of topic, partition and offset, in the form of `row`."""
    found = frame.withColumn("timestamp", F.unix_millis("timestamp")).select(*SAME_FOR_ALL).collect()
    rows = [(*each[:7], each[7] and [tuple(header) for header in each[7]]) for each in found]
    return sorted(rows, key=lambda each: each[2:5])


# ---------------------------------------------------------------- reading


def test_every_row_comes_as_it_was_sent(read: Callable[..., DataFrame], sent: list[Made]) -> None:
    assert taken(read(subscribe=sent[0].topic)) == rows_of(sent)


def test_without_headers_there_is_no_column_of_them(read: Callable[..., DataFrame], sent: list[Made]) -> None:
    columns = read(subscribe=sent[0].topic, includeHeaders="false").columns
    assert columns == list(SAME_FOR_ALL[:-1])


def test_topics_are_chosen_by_pattern_and_partitions_by_name(
    read: Callable[..., DataFrame], sent: list[Made], new_topic: Callable[[str], str], bootstrap: str
) -> None:
    topic = sent[0].topic
    other = new_topic(f"{topic}-too")
    more = made(other, 40, partitions=PARTITIONS)
    send(bootstrap, more)
    both = rows_of(sent) + rows_of(more)
    matching = read(subscribePattern=f"{topic[1:]}$|{other[1:-1]}.", endingOffsets="latest")
    assert taken(matching) == sorted(both, key=lambda row: row[2:5])
    two = read(assign=json.dumps({topic: [1, 3]}))
    assert taken(two) == [each for each in rows_of(sent) if each[3] in (1, 3)]


def test_offsets_say_where_to_begin_and_end(read: Callable[..., DataFrame], sent: list[Made]) -> None:
    topic = sent[0].topic
    frame = read(
        subscribe=topic,
        startingOffsets=json.dumps({topic: {"0": 10, "1": -2, "2": 100, "3": 7}}),
        endingOffsets=json.dumps({topic: {"0": 50, "1": 20, "2": -1, "3": 7}}),
    )
    ends = {0: range(10, 50), 1: range(20), 2: range(100, 10_000), 3: range(0)}
    assert taken(frame) == [each for each in rows_of(sent) if each[4] in ends[each[3]]]


def test_times_say_where_to_begin_and_end(
    read: Callable[..., DataFrame], new_topic: Callable[[str], str], bootstrap: str
) -> None:
    topic = new_topic("by-time")
    records = [Made(topic, n % PARTITIONS, None, b"%d" % n, (), TIMES + 1000 * n) for n in range(400)]
    send(bootstrap, records)
    wanted = rows_of(records)
    begin, end = TIMES + 99_500, TIMES + 300_000
    assert taken(read(subscribe=topic, startingTimestamp=str(begin))) == [r for r in wanted if r[5] >= begin]
    between = read(
        subscribe=topic,
        startingOffsetsByTimestamp=json.dumps({topic: {str(p): begin for p in range(PARTITIONS)}}),
        endingOffsetsByTimestamp=json.dumps({topic: {str(p): end for p in range(PARTITIONS)}}),
    )
    assert taken(between) == [r for r in wanted if begin <= r[5] < end]
    late = {"subscribe": topic, "startingTimestamp": str(TIMES + 10**9)}
    assert taken(read(**late, startingOffsetsByTimestampStrategy="latest")) == []
    with pytest.raises(FAILURES, match=r"(?i)timestamp|offset"):
        taken(read(**late))


def test_lost_data_is_an_error_or_a_warning(
    read: Callable[..., DataFrame], new_topic: Callable[[str], str], bootstrap: str, admin: AdminClient
) -> None:
    topic = new_topic("lost")
    records = made(topic, 200, partitions=PARTITIONS)
    send(bootstrap, records)
    [gone.result(30) for gone in admin.delete_records([Position(topic, 1, 12)]).values()]
    from_first = {"subscribe": topic, "startingOffsets": json.dumps({topic: dict.fromkeys("0123", 0)})}
    rest = [each for each in rows_of(records) if each[3] != 1 or each[4] >= 12]
    assert taken(read(**from_first, failOnDataLoss="false")) == rest
    with pytest.raises(FAILURES, match=topic):
        taken(read(**from_first, failOnDataLoss="true"))


def test_only_what_was_committed_is_read(
    read: Callable[..., DataFrame], new_topic: Callable[[str], str], bootstrap: str
) -> None:
    topic = new_topic("transactions")
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic, "linger.ms": 5})
    producer.init_transactions(30)
    for number in range(10):
        producer.begin_transaction()
        for n in range(30):
            producer.produce(topic, f"{number} {n}".encode(), partition=n % PARTITIONS)
        producer.flush(30)
        (producer.commit_transaction if number % 3 else producer.abort_transaction)(30)
    committed = {f"{number} {n}".encode() for number in range(10) if number % 3 for n in range(30)}
    every = {f"{number} {n}".encode() for number in range(10) for n in range(30)}
    options = {"subscribe": topic}
    rows = taken(read(**options, **{"kafka.isolation.level": "read_committed"}))
    assert sorted(each[1] for each in rows) == sorted(committed)
    assert {each[1] for each in taken(read(**options))} == every


# ---------------------------------------------------------------- writing


def test_what_is_written_is_what_it_was(
    spark: SparkSession, source: str, read: Callable[..., DataFrame], sent: list[Made], new_topic: Callable[[str], str],
    bootstrap: str,
) -> None:  # fmt: skip
    """Headers, nulls and partitions are kept; Spark's connector has the producer's time, ours writes the column."""
    target = new_topic("written")
    frame = read(subscribe=sent[0].topic).select("key", "value", "headers", "partition", F.lit(target).alias("topic"))
    frame.write.format(source).option("kafka.bootstrap.servers", bootstrap).mode("append").save()
    found = taken(read(subscribe=target))
    wanted = rows_of(renamed(sent, target))
    assert [each[:5] + each[7:] for each in found] == [each[:5] + each[7:] for each in wanted]


def test_keys_go_to_the_partitions_that_a_java_producer_gives_them(
    connector: SparkSession, bootstrap: str, sent: list[Made], new_topic: Callable[[str], str]
) -> None:
    given = {"kafka.bootstrap.servers": bootstrap}
    frame = connector.read.format("kafka").options(**given, subscribe=sent[0].topic).load().where("key IS NOT NULL")
    placed = []
    for kind in FORMATS:
        target = new_topic(f"placed-{kind}")
        frame.select("key", "value").write.format(kind).options(**given, topic=target).mode("append").save()
        back = connector.read.format("kafka").options(**given, subscribe=target).load()
        placed.append({(bytes(key), partition) for key, partition in back.select("key", "partition").collect()})
    assert placed[0] == placed[1]
    assert len({partition for _, partition in placed[0]}) == PARTITIONS


# ---------------------------------------------------------------- streams


@pytest.fixture
def copying(
    spark: SparkSession, bootstrap: str, source: str, tmp_path: Path
) -> Iterator[Callable[..., StreamingQuery]]:
    """``copying(a, b)`` starts a query from one topic to another, with a checkpoint that the test keeps."""
    queries: list[StreamingQuery] = []

    def start(topic: str, target: str, **options: str) -> StreamingQuery:
        given = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic, "includeHeaders": "true"}
        stream = spark.readStream.format(source).options(**{**given, "startingOffsets": "earliest", **options}).load()
        sink = stream.select("key", "value", "headers", "partition").writeStream.format(source)
        queries.append(
            sink.options(
                **{
                    "kafka.bootstrap.servers": bootstrap,
                    "topic": target,
                    "checkpointLocation": str(tmp_path / "checkpoint"),
                }
            )
            .trigger(availableNow=True)
            .start()
        )
        return queries[-1]

    yield start
    for query in queries:
        query.stop()


def finished(query: StreamingQuery) -> StreamingQuery:
    assert query.awaitTermination(60), "the query goes on"
    return query


def test_a_stream_continues_at_its_checkpoint(
    copying: Callable[..., StreamingQuery], read: Callable[..., DataFrame], new_topic: Callable[[str], str],
    bootstrap: str,
) -> None:  # fmt: skip
    topic, target = new_topic("stream"), new_topic("stream-out")
    records = made(topic, 900, partitions=PARTITIONS)
    send(bootstrap, records[:600])
    first = finished(copying(topic, target, maxOffsetsPerTrigger="250"))
    counts = [each["numInputRows"] for each in first.recentProgress]
    assert sum(counts) == 600
    assert max(counts) <= 251, "the limit is shared out among the partitions"
    ends = {str(p): len(held) for p, held in enumerate(by_partition(records[:600], PARTITIONS))}
    assert json.loads(first.lastProgress["sources"][0]["endOffset"])[topic] == ends
    send(bootstrap, records[600:])
    finished(copying(topic, target))
    found = taken(read(subscribe=target))
    wanted = rows_of(renamed(records, target))
    assert [each[:2] + each[3:5] + each[7:] for each in found] == [each[:2] + each[3:5] + each[7:] for each in wanted]


def test_a_whole_result_is_written_with_each_batch(
    spark: SparkSession, source: str, read: Callable[..., DataFrame], new_topic: Callable[[str], str], bootstrap: str,
    tmp_path: Path,
) -> None:  # fmt: skip
    topic, target = new_topic("counted"), new_topic("counts")
    send(bootstrap, [Made(topic, 0, key, b"", (), TIMES) for key in (b"a", b"b", b"a", b"a")])
    given = {"kafka.bootstrap.servers": bootstrap}
    two = {"subscribe": topic, "startingOffsets": "earliest", "maxOffsetsPerTrigger": "2"}
    stream = spark.readStream.format(source).options(**given, **two).load()
    counts = stream.groupBy("key").agg(F.count("*").cast("string").alias("value")).orderBy("key").coalesce(1)
    written = counts.writeStream.outputMode("complete").format(source).options(**given, topic=target)
    finished(written.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start())
    assert sorted(each[:2] for each in taken(read(subscribe=target))) == [
        (b"a", b"1"), (b"a", b"3"), (b"b", b"1"), (b"b", b"1")
    ]  # fmt: skip


def test_a_query_of_sparks_connector_continues_with_ours(
    connector: SparkSession, bootstrap: str, new_topic: Callable[[str], str], tmp_path: Path
) -> None:
    """Offsets have the same form, and ours have the topic id too: ours reads theirs, but not the reverse."""
    topic = new_topic("taken-up")
    records = made(topic, 200, partitions=PARTITIONS)
    found: list[Any] = []
    for step, kind in enumerate(FORMATS):
        send(bootstrap, records[100 * step : 100 * step + 100])
        given = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic, "startingOffsets": "earliest"}
        stream = connector.readStream.format(kind).options(**given).load().select("partition", "offset")
        query = stream.writeStream.foreachBatch(lambda frame, _: found.extend(map(tuple, frame.collect())))
        at = query.option("checkpointLocation", str(tmp_path / "checkpoint"))
        finished(at.trigger(availableNow=True).start())
    assert sorted(found) == [each[3:5] for each in rows_of(records)]


def test_both_have_the_same_schema(connector: SparkSession, bootstrap: str, sent: list[Made]) -> None:
    given = {"kafka.bootstrap.servers": bootstrap, "subscribe": sent[0].topic}
    for headers in ("true", "false"):
        schemas = [
            reader.format(kind).options(**given, includeHeaders=headers).load().schema.simpleString()
            for kind in FORMATS
            for reader in (connector.read, connector.readStream)
        ]
        assert len(set(schemas)) == 1, schemas

"""The schema of the sink, and the writes of a task. Only Spark's task context is used."""

import json
import pickle
import uuid
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import types

from barnabas.clock import ManualClock
from barnabas.errors import ProducerFenced
from barnabas.pipelines import tasks
from barnabas.pipelines.client import TopicPartition
from barnabas.pipelines.client.cluster import Cluster, Unauthenticated
from barnabas.pipelines.client.transactional import Transaction
from barnabas.pipelines.offsets import BadOption
from barnabas.pipelines.options import BATCH_WRITE, STREAM_WRITE, WriteOptions, write_options
from barnabas.pipelines.sink import BATCH_ID, QUERY_ID, StreamSink, Written, check_columns
from barnabas.pipelines.tasks import BadRow, Repeated, gather, timestamps_of, write_exactly_once, write_rows
from barnabas.testing import Broker

COLUMNS = ("key", "value")


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(num_partitions=3) as running:
        yield running


@pytest.fixture
def topic(broker: Broker) -> str:
    name = f"topic-{uuid.uuid4()}"
    broker.create_topic(name, partitions=3)
    return name


@pytest.fixture
def options(broker: Broker, topic: str) -> Iterator[Callable[..., WriteOptions]]:
    """Returns the sink's options, as a query passes them."""
    clients = set()

    def made(scope: str = STREAM_WRITE, **changes: str) -> WriteOptions:
        said = {"kafka.bootstrap.servers": broker.bootstrap_servers, "topic": topic, "kafka.retry.backoff.ms": "5"}
        parsed = write_options({**said, **changes}, scope)
        clients.add(parsed.client)
        return parsed

    yield made
    for client in clients:
        Cluster.of(client).close()


@pytest.fixture
def task(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Sets this process's task, batch and query."""

    def be(query: str | None, batch: int | None, number: int) -> None:
        found = {QUERY_ID: query, BATCH_ID: None if batch is None else str(batch)}
        context = SimpleNamespace(getLocalProperty=found.get, partitionId=lambda: number)
        monkeypatch.setattr(tasks.TaskContext, "get", lambda: context)

    return be


def rows(start: int, stop: int) -> list[pa.RecordBatch]:
    keys = [f"{number}" for number in range(start, stop)]
    return [pa.RecordBatch.from_pydict({"key": keys, "value": [key.encode() for key in keys]})]


def committed(broker: Broker, topic: str) -> list[int]:
    return sorted(int(record.value) for record in broker.records(topic, committed=True) if record.value)


def query() -> str:
    return str(uuid.uuid4())


# Exactly once


def test_a_task_that_runs_again_writes_nothing_again(
    broker: Broker, topic: str, options: Callable[..., WriteOptions], task: Callable[..., None]
) -> None:
    chosen, id_ = options(delivery="exactly-once"), query()
    for batch, number, start in ((0, 0, 0), (0, 1, 100), (1, 0, 200)):
        task(id_, batch, number)
        first = write_exactly_once(rows(start, start + 100), chosen, COLUMNS, "own")
        again = write_exactly_once(rows(start, start + 100), chosen, COLUMNS, "own")
        assert (first.records, first.skipped) == (100, False)
        assert again == Written(first.records, first.bytes, skipped=True)
    assert committed(broker, topic) == list(range(300))


def test_a_batch_before_the_last_is_not_written_again_either(
    broker: Broker, topic: str, options: Callable[..., WriteOptions], task: Callable[..., None]
) -> None:
    chosen, id_ = options(delivery="exactly-once"), query()
    for batch in (0, 1, 2):
        task(id_, batch, 0)
        write_exactly_once(rows(batch * 10, batch * 10 + 10), chosen, COLUMNS, "own")
    task(id_, 1, 0)
    assert write_exactly_once(rows(10, 15), chosen, COLUMNS, "own").skipped
    assert committed(broker, topic) == list(range(30))


def test_a_task_that_fails_leaves_nothing(
    broker: Broker, topic: str, options: Callable[..., WriteOptions], task: Callable[..., None]
) -> None:
    chosen = options(delivery="exactly-once", **{"kafka.linger.ms": "0"})

    def breaking() -> Iterator[pa.RecordBatch]:
        yield from rows(0, 50)
        raise RuntimeError("the source broke")

    task(query(), 0, 0)
    with pytest.raises(RuntimeError, match="the source broke"):
        write_exactly_once(breaking(), chosen, COLUMNS, "own")
    assert committed(broker, topic) == []
    assert len(broker.records(topic)) <= 50
    write_exactly_once(rows(0, 50), chosen, COLUMNS, "own")
    assert committed(broker, topic) == list(range(50))


def test_the_error_of_a_task_is_told_though_its_transaction_stays_open(
    options: Callable[..., WriteOptions],
    task: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def refused(self: Transaction) -> None:
        raise Unauthenticated("the password has changed")

    monkeypatch.setattr(Transaction, "abort", refused)
    id_ = query()
    task(id_, 0, 0)
    broken = rows(0, 1)[0].drop_columns(["key"])
    with pytest.raises(KeyError, match="key"):
        write_exactly_once([broken], options(delivery="exactly-once"), COLUMNS, "own")
    assert f"cannot abort transaction barnabas-{id_}-0 now: the password has changed" in caplog.text


def test_of_two_attempts_at_a_time_one_writes(
    broker: Broker, topic: str, options: Callable[..., WriteOptions], task: Callable[..., None]
) -> None:
    """The second attempt begins while the first one writes rows, and aborts its transaction."""
    chosen, id_ = options(delivery="exactly-once", **{"kafka.linger.ms": "0"}), query()
    second: list[Written] = []

    def slow() -> Iterator[pa.RecordBatch]:
        yield from rows(0, 20)
        second.append(write_exactly_once(rows(0, 40), chosen, COLUMNS, "own"))
        yield from rows(20, 40)

    task(id_, 0, 0)
    with pytest.raises(ProducerFenced, match=f"another producer has begun a transaction as barnabas-{id_}-0"):
        write_exactly_once(slow(), chosen, COLUMNS, "own")
    assert second == [Written(40, second[0].bytes)]
    assert committed(broker, topic) == list(range(40))
    assert write_exactly_once(rows(0, 40), chosen, COLUMNS, "own").skipped


def test_what_a_killed_worker_left_open_is_taken_back(
    broker: Broker, topic: str, options: Callable[..., WriteOptions], task: Callable[..., None]
) -> None:
    chosen, id_ = options(delivery="exactly-once"), query()
    cluster = Cluster.of(chosen.client)
    dead = Transaction(cluster, f"barnabas-{id_}-2", chosen.settings)
    dead.begin()
    for batch in rows(500, 600):
        tasks.write_table(batch, topic, dead.produce)
    dead.writer.flush()
    task(id_, 0, 2)
    write_exactly_once(rows(0, 10), chosen, COLUMNS, "own")
    assert committed(broker, topic) == list(range(10))
    assert len(broker.records(topic)) == 110


def test_a_batch_that_is_split_otherwise_when_it_is_repeated_is_an_error(
    options: Callable[..., WriteOptions], task: Callable[..., None]
) -> None:
    chosen = options(delivery="exactly-once")
    task(query(), 7, 3)
    write_exactly_once(rows(0, 10), chosen, COLUMNS, "own")
    with pytest.raises(Repeated, match="task 3 of batch 7 wrote 10 records before it was repeated, and now has 11"):
        write_exactly_once(rows(0, 11), chosen, COLUMNS, "own")


def test_queries_do_not_know_of_each_other(
    broker: Broker, topic: str, options: Callable[..., WriteOptions], task: Callable[..., None]
) -> None:
    """Even with the same sinkId: the batches of the second query begin anew, with its checkpoint."""
    for sink in ({}, {"sinkId": f"sink-{uuid.uuid4()}"}):
        before = len(committed(broker, topic))
        for start in (0, 10):
            task(query(), 0, 0)
            write_exactly_once(rows(start, start + 10), options(delivery="exactly-once", **sink), COLUMNS, "own")
        assert len(committed(broker, topic)) == before + 20


def test_a_batch_query_remembers_by_its_own_id_or_by_the_one_it_is_given(
    broker: Broker, topic: str, options: Callable[..., WriteOptions], task: Callable[..., None]
) -> None:
    task(None, None, 0)
    plain = options(BATCH_WRITE, delivery="exactly-once")
    for own_id in ("own-1", "own-2"):
        assert not write_exactly_once(rows(0, 5), plain, COLUMNS, own_id + topic).skipped
        assert write_exactly_once(rows(0, 5), plain, COLUMNS, own_id + topic).skipped
    numbered = {"delivery": "exactly-once", "sinkId": f"import-{uuid.uuid4()}"}
    for number, skipped in ((4, False), (4, True), (5, False), (3, True)):
        chosen = options(BATCH_WRITE, batchId=str(number), **numbered)
        assert write_exactly_once(rows(0, 5), chosen, COLUMNS, "own").skipped is skipped
    assert len(committed(broker, topic)) == 20


def test_many_tasks_have_their_markers_in_several_groups(
    broker: Broker, options: Callable[..., WriteOptions], task: Callable[..., None]
) -> None:
    chosen, id_ = options(delivery="exactly-once"), query()
    cluster = Cluster.of(chosen.client)
    for number in (49, 50, 101):
        task(id_, 0, number)
        write_exactly_once(rows(0, number), chosen, COLUMNS, "own")
    for group, place, number in (
        (f"barnabas-{id_}", 49, 49),
        (f"barnabas-{id_}-1", 0, 50),
        (f"barnabas-{id_}-2", 1, 101),
    ):
        found = cluster.committed(group, [TopicPartition("__consumer_offsets", place)])
        (marker,) = found.values()
        assert marker.offset == 1
        assert json.loads(marker.metadata)["records"] == number


def test_nothing_to_write_is_a_batch_too(
    broker: Broker, topic: str, options: Callable[..., WriteOptions], task: Callable[..., None]
) -> None:
    chosen = options(delivery="exactly-once")
    task(query(), 0, 0)
    assert write_exactly_once([], chosen, COLUMNS, "own") == Written(0, 0)
    assert write_exactly_once([], chosen, COLUMNS, "own") == Written(0, 0, skipped=True)
    assert write_rows([], options(), COLUMNS) == Written(0, 0)


def test_at_least_once_may_write_twice(
    broker: Broker, topic: str, options: Callable[..., WriteOptions], task: Callable[..., None]
) -> None:
    for _ in range(2):
        assert write_rows(rows(0, 10), options(), COLUMNS).records == 10
    assert committed(broker, topic) == sorted([*range(10), *range(10)])


# Rows


def test_each_row_may_have_its_own_topic(broker: Broker, options: Callable[..., WriteOptions]) -> None:
    names = [f"topic-{uuid.uuid4()}" for _ in range(3)]
    chosen = options()
    batch = pa.RecordBatch.from_pydict(
        {"topic": [names[number % 3] for number in range(90)], "value": [b"%d" % number for number in range(90)]}
    )
    without = WriteOptions(**{**vars(chosen), "topic": None})
    write_rows([batch], without, ("topic", "value"))
    for index, name in enumerate(names):
        assert committed(broker, name) == list(range(index, 90, 3))
    nameless = pa.RecordBatch.from_pydict({"topic": ["a", None], "value": [b"", b""]})
    with pytest.raises(BadRow, match=r"the column topic of a row is null: .*set the option topic"):
        write_rows([nameless], without, ("topic", "value"))


def test_times_are_milliseconds_and_now_where_there_is_none() -> None:
    column = pa.array([1_700_000_000_123_999, None, -1_000, 0], pa.timestamp("us", "UTC"))
    clock = ManualClock(1_800_000_000_000)
    assert timestamps_of(None, 2, clock).tolist() == [1_800_000_000_000] * 2
    assert timestamps_of(column, 4, clock).tolist() == [1_700_000_000_123, 1_800_000_000_000, -1, 0]
    with pytest.raises(BadRow, match="before 1970"):
        timestamps_of(pa.array([-5_000_000], pa.timestamp("us", "UTC")), 1)


def test_small_batches_are_put_together() -> None:
    batches = [pa.RecordBatch.from_pydict({"value": [b"v" * 100], "other": [n]}) for n in range(20)]
    size = batches[0].select(["value"]).nbytes
    gathered = list(gather(batches, ("value",), size * 8, linger=60))
    assert [batch.num_rows for batch in gathered] == [8, 8, 4]
    assert gathered[0].schema.names == ["value"]
    assert [batch.num_rows for batch in gather(batches, ("value",), size * 8, linger=0)] == [1] * 20
    assert list(gather([batches[0].slice(0, 0)], ("value",), 1, linger=0)) == []


# Columns


HEADERS = types.ArrayType(types.StructType().add("key", types.StringType()).add("value", types.BinaryType()))


def table(**columns: types.DataType) -> types.StructType:
    schema = types.StructType()
    for name, kind in columns.items():
        schema.add(name, kind)
    return schema


TEXT, BYTES, INT, LONG = types.StringType(), types.BinaryType(), types.IntegerType(), types.LongType()


@pytest.mark.parametrize(
    "schema",
    [
        table(value=TEXT),
        table(key=BYTES, value=BYTES, topic=TEXT, partition=INT, offset=LONG, timestamp=types.TimestampType()),
        table(key=TEXT, value=TEXT, headers=HEADERS),
    ],
    ids=types.StructType.simpleString,
)
def test_columns_that_can_be_written(schema: types.StructType) -> None:
    check_columns(schema, "orders")


@pytest.mark.parametrize(
    ("schema", "topic", "words"),
    [
        (table(value=TEXT), None, "there is no topic: set the option topic, or add a column topic"),
        (table(key=TEXT), "t", "there is no column value, only key"),
        (table(value=INT), "t", r"column value is int, not a string or binary: cast it, or make it to_json"),
        (table(key=types.DoubleType(), value=TEXT), "t", "column key is double, not a string or binary"),
        (table(topic=INT, value=TEXT), None, "column topic is int, not a string"),
        (table(partition=LONG, value=TEXT), "t", "column partition is bigint, not an integer"),
        (table(timestamp=LONG, value=TEXT), "t", "column timestamp is bigint, not a timestamp"),
        (table(timestamp=types.TimestampNTZType(), value=TEXT), "t", "column timestamp is timestamp_ntz, not a time"),
        (table(headers=types.ArrayType(TEXT), value=TEXT), "t", "column headers is array<string>, not array<struct<"),
        (table(headers=types.MapType(TEXT, BYTES), value=TEXT), "t", "column headers is map<string,binary>, not array"),
    ],
)
def test_columns_that_cannot_are_named(schema: types.StructType, topic: str | None, words: str) -> None:
    with pytest.raises(BadOption, match=words):
        check_columns(schema, topic)


def test_sinks_travel_to_workers(options: Callable[..., WriteOptions]) -> None:
    sink: Any = StreamSink(options(), table(value=TEXT, offset=LONG, key=TEXT))
    there = pickle.loads(pickle.dumps(sink))
    assert there.columns == ("key", "value")
    assert there.options == sink.options

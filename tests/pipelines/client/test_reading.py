"""Ranges of offsets, read from a broker, and from one with faults."""

import contextlib
import logging
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
import trustme
from confluent_kafka import Producer
from kafka import errors as kafka_errors
from kafka.structs import TopicPartition as TheirPartition

import barnabas.pipelines.client.cluster
from barnabas.columnar.decoding import schema
from barnabas.errors import CorruptMessage, KafkaError, OffsetOutOfRange, RequestTimedOut
from barnabas.pipelines.client import LATEST, TopicPartition
from barnabas.pipelines.client.cluster import Cluster
from barnabas.pipelines.client.reading import read
from barnabas.pipelines.client.settings import ClientSettings
from barnabas.pipelines.offsets import DataLoss
from barnabas.testing import Broker
from tests.columnar.batches import Raw, batch_bytes

SMALL = {"fetch_bytes": 2000, "max_wait_ms": 50}
"""Settings for many fetches of few records."""

AT_ONCE = {**SMALL, "patience": 0.0}
"""Settings without any patience, so that waiting fails."""


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(delete_topic_enable=True) as running:
        yield running


@pytest.fixture
def cluster(broker: Broker) -> Iterator[Cluster]:
    with_settings = connected(broker)
    yield with_settings
    with_settings.close()


@pytest.fixture
def topic(broker: Broker, request: pytest.FixtureRequest) -> str:
    name = f"topic-{abs(hash(request.node.name))}"
    broker.create_topic(name)
    return name


def connected(broker: Broker, **more: str) -> Cluster:
    settings = {"bootstrap.servers": broker.bootstrap_servers, "retry.backoff.ms": "20", **more}
    return Cluster(ClientSettings.parse(settings))


def produce(broker: Broker, topic: str, count: int = 100, **settings: Any) -> None:
    """Produces records 0, 1, 2 ... of 100 bytes in several batches; every third record has headers."""
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap_servers, "batch.num.messages": 7, "linger.ms": 20, **settings}
    )
    for at in range(count):
        producer.produce(topic, b"%d" % at * 40, b"%d" % at, headers=[("h", b"%d" % at)] if at % 3 == 0 else [])
    assert producer.flush(30) == 0


def keys(tables: Iterator[pa.RecordBatch]) -> list[int]:
    return [int(key) for table in tables for key in table["key"].to_pylist()]


@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_a_range(broker, cluster, topic, codec) -> None:
    produce(broker, topic, **{"compression.codec": codec})
    for start, end in ((0, 100), (1, 2), (33, 77), (99, 100), (5, 5)):
        tables = list(read(cluster, topic, 0, start, end, headers=True, **AT_ONCE))
        table = pa.Table.from_batches(tables, schema(headers=True))
        assert table["offset"].to_pylist() == list(range(start, end))
        assert table["value"].to_pylist() == [b"%d" % at * 40 for at in range(start, end)]
        assert [len(each or ()) for each in table["headers"].to_pylist()] == [
            int(at % 3 == 0) for at in range(start, end)
        ]


@pytest.mark.parametrize("encrypted", [False, True], ids=["plain", "TLS"])
def test_megabytes(tmp_path, encrypted) -> None:
    """Responses that are received in pieces: of the default size, and larger than one receive."""
    with socket.create_server(("127.0.0.1", 0)) as outside:
        name = f"PLAINTEXT://127.0.0.1:{outside.getsockname()[1]}"
        with Broker({"advertised.listeners": name} if encrypted else {}) as broker:
            broker.create_topic("large")
            settings = {"bootstrap.servers": broker.bootstrap_servers}
            if encrypted:
                settings = behind_tls(outside, broker.port, tmp_path)
            values = [b"%d" % at * (at % 3000) for at in range(3000)]
            write(settings, "large", values)
            cluster = Cluster(ClientSettings.parse(settings))
            for fetch_bytes in (300_000, 4 << 20):
                tables = read(cluster, "large", 0, 0, 3000, fetch_bytes=fetch_bytes)
                assert [value for table in tables for value in table["value"].to_pylist()] == values
            cluster.close()


def write(settings: dict[str, str], topic: str, values: list[bytes]) -> None:
    tls = (
        {"security.protocol": "SSL", "ssl.ca.location": settings["ssl.truststore.location"]}
        if len(settings) > 1
        else {}
    )
    producer = Producer({"bootstrap.servers": settings["bootstrap.servers"], "linger.ms": 50, **tls})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(30) == 0


def behind_tls(outside: socket.socket, port: int, folder: Path) -> dict[str, str]:
    """Connects TLS clients of ``outside`` to that port; yields the settings of such a client."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)

    def pump(source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                target.sendall(data)

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                client = context.wrap_socket(outside.accept()[0], server_side=True)
                broker = socket.create_connection(("127.0.0.1", port))
                for pair in ((client, broker), (broker, client)):
                    threading.Thread(target=pump, args=pair, daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    return {
        "bootstrap.servers": f"127.0.0.1:{outside.getsockname()[1]}",
        "security.protocol": "SSL",
        "ssl.truststore.location": str(folder / "ca.pem"),
    }


def test_what_is_begun_and_not_ended_harms_nobody(broker, cluster, topic) -> None:
    produce(broker, topic)
    for _ in range(3):
        tables = read(cluster, topic, 0, 0, 100, **SMALL)
        next(tables)
        tables.close()
    assert keys(read(cluster, topic, 0, 0, 100, **SMALL)) == list(range(100))


def test_committed_records_only(broker, cluster, topic) -> None:
    expected = []
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": topic})
    producer.init_transactions()
    for number in range(6):
        producer.begin_transaction()
        for at in range(number * 10, number * 10 + 10):
            producer.produce(topic, b"v", b"%d" % at)
        if number % 3 == 1:
            producer.flush()
            producer.abort_transaction()
        else:
            producer.commit_transaction()
            expected += range(number * 10, number * 10 + 10)
    part = TopicPartition(topic, 0)
    end = cluster.list_offsets({part: LATEST}, committed=True)[part].offset
    assert end == 66  # the last offset is a marker, which is not waited for
    assert keys(read(cluster, topic, 0, 0, end, isolation="read_committed", **AT_ONCE)) == expected
    assert keys(read(cluster, topic, 0, 0, end, **AT_ONCE)) == list(range(60))
    assert keys(read(cluster, topic, 0, 15, end, isolation="read_committed", **AT_ONCE)) == expected[10:]


def test_a_transaction_that_stays_open(broker, cluster, topic) -> None:
    produce(broker, topic, 3)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": topic})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce(topic, b"v", b"3")
    producer.flush()
    tables = read(cluster, topic, 0, 0, 4, isolation="read_committed", **AT_ONCE)
    assert keys(iter([next(tables)])) == [0, 1, 2]
    with pytest.raises(RequestTimedOut, match=f"{topic}-0: a transaction .* open since offset 3 .* before offset 4"):
        next(tables)
    producer.abort_transaction()


def loses(cluster: Cluster, caplog: pytest.LogCaptureFixture, text: str, *range_: Any, **options: Any) -> list[int]:
    """Returns the records that are read if data loss is no error; otherwise it must be one with the same message."""
    with pytest.raises(DataLoss, match=text + ".*failOnDataLoss"):
        keys(read(cluster, *range_, **{**AT_ONCE, **options}))
    with caplog.at_level(logging.WARNING):
        found = keys(read(cluster, *range_, fail_on_data_loss=False, **{**AT_ONCE, **options}))
    (warning,) = [each for each in caplog.messages if "continuing" in each]
    assert "cannot be read" in warning
    return found


def test_records_that_were_deleted(broker, cluster, topic, caplog) -> None:
    produce(broker, topic)
    admin = cluster.admin()
    admin.delete_records({TheirPartition(topic, 0): 40})
    admin.close()
    rest = loses(cluster, caplog, f"{topic}-0: .* 10 to 39 cannot .* begins at offset 40", topic, 0, 10, 60)
    assert rest == list(range(40, 60))


def test_a_range_of_which_nothing_is_left(broker, cluster, topic, caplog) -> None:
    produce(broker, topic)
    admin = cluster.admin()
    admin.delete_records({TheirPartition(topic, 0): 40})
    admin.close()
    assert loses(cluster, caplog, "offsets 10 to 19 cannot", topic, 0, 10, 20) == []


def test_a_log_that_ends_before_the_range(broker, cluster, topic, caplog) -> None:
    produce(broker, topic)
    rest = loses(cluster, caplog, "offsets 100 to 119 cannot be read: .* ends at offset 100", topic, 0, 90, 120)
    assert rest == list(range(90, 100))


def test_a_range_behind_the_end(broker, cluster, topic, caplog) -> None:
    produce(broker, topic)
    assert loses(cluster, caplog, "offsets 110 to 119 cannot .* ends at offset 100", topic, 0, 110, 120) == []


def test_a_topic_that_is_gone(broker, cluster, topic, caplog, monkeypatch) -> None:
    monkeypatch.setattr(barnabas.pipelines.client.cluster, "NEW_TOPIC_PATIENCE", 0.1)
    produce(broker, topic)
    topic_id = cluster.topic_id(topic)
    delete(cluster, topic)
    text = f"offsets 10 to 19 cannot be read: topic {topic} was deleted"
    assert loses(cluster, caplog, text, topic, 0, 10, 20, topic_id=topic_id) == []


@pytest.mark.parametrize("release", [None, "2.8"], ids=["fetched by id", "fetched by name"])
def test_a_topic_that_was_made_again(caplog, release) -> None:
    with Broker(compatible_with=release, delete_topic_enable=True) as broker:
        broker.create_topic("again")
        produce(broker, "again")
        cluster = connected(broker)
        topic_id = str(cluster.topic_id("again"))
        assert keys(read(cluster, "again", 0, 0, 20, topic_id=topic_id, **AT_ONCE)) == list(range(20))
        tables = read(cluster, "again", 0, 0, 100, topic_id=topic_id, **SMALL)
        next(tables)
        delete(cluster, "again")
        broker.create_topic("again")
        produce(broker, "again")
        text = f"cannot be read: topic again was deleted and created again: its id was {topic_id}"
        assert loses(cluster, caplog, text, "again", 0, 0, 20, topic_id=topic_id) == []
        with pytest.raises(DataLoss, match=text):
            keys(tables)
        cluster.forget()
        assert keys(read(cluster, "again", 0, 0, 20, **AT_ONCE)) == list(range(20))
        cluster.close()


def delete(cluster: Cluster, topic: str) -> None:
    admin = cluster.admin()
    admin.delete_topics([topic])
    admin.close()


def test_a_broker_that_is_away_and_back(tmp_path: Path) -> None:
    configs = {"log.dirs": str(tmp_path), "listeners": "PLAINTEXT://127.0.0.1:0"}
    with Broker(configs, on_disk=True) as first:
        first.create_topic("kept")
        produce(first, "kept")
        cluster = connected(first)
        tables = read(cluster, "kept", 0, 0, 100, patience=30, **SMALL)
        found = keys(iter([next(tables)]))
        port = first.port
    back = Broker({**configs, "listeners": f"PLAINTEXT://127.0.0.1:{port}"}, on_disk=True)
    returning = threading.Timer(0.3, back.start)
    returning.start()
    try:
        assert found + keys(tables) == list(range(100))
    finally:
        returning.join()
        back.stop()
        cluster.close()


def test_a_broker_that_stays_away(broker) -> None:
    with Broker() as short:
        short.create_topic("t")
        produce(short, "t")
        cluster = connected(short, **{"default.api.timeout.ms": "500"})
        tables = read(cluster, "t", 0, 0, 100, **AT_ONCE)
        next(tables)
    with pytest.raises(KafkaError, match=r"no broker of 127\.0\.0\.1"):
        list(tables)
    cluster.close()


# ---------------------------------------------------------------- answers of brokers, one by one

ID = UUID(int=7)


def answer(data: bytes = b"", **fields: Any) -> SimpleNamespace:
    """Returns a Fetch response with the fields that are used."""
    throttle, code = fields.pop("throttle_time_ms", 0), fields.pop("whole_error", 0)
    said = {
        "partition_index": 0,
        "error_code": 0,
        "records": data,
        "aborted_transactions": None,
        "high_watermark": 100,
        "last_stable_offset": 100,
        "preferred_read_replica": -1,
    }
    partition = SimpleNamespace(**{**said, **fields})
    return SimpleNamespace(
        API_VERSION=17, throttle_time_ms=throttle, error_code=code, responses=[SimpleNamespace(partitions=[partition])]
    )


class Scripted:
    """A cluster with prepared responses; records the node and the offset of each fetch."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.fetches: list[tuple[int, int]] = []
        self.pauses: list[float | None] = []
        self.settings = ClientSettings.parse({"bootstrap.servers": "nowhere:1"})

    async def topic(self, topic: str) -> Any:
        return SimpleNamespace(id=ID)

    async def leader_of(self, where: TopicPartition) -> int:
        return 1

    async def send(self, node: int, request: Any) -> Any:
        (topic,) = request.topics
        self.fetches.append((node, topic.partitions[0].fetch_offset))
        result = self.answers.pop(0)
        if isinstance(result, Exception):
            raise result
        return result

    async def pause(self, seconds: float | None = None) -> None:
        self.pauses.append(seconds)

    async def retrying(self, attempt: Any, *, until: float) -> Any:
        while True:
            try:
                return await attempt()
            except (kafka_errors.RetriableError, KafkaError) as error:
                if not error.retriable:
                    raise

    def forget(self) -> None:
        pass

    def start(self, function: Any, *args: Any) -> Any:
        running = function(*args)
        try:
            running.send(None)
        except StopIteration as done:
            return done.value
        except BaseException as error:
            return error
        raise AssertionError("nothing here waits")

    def finish(self, begun: Any) -> Any:
        if isinstance(begun, BaseException):
            raise begun
        return begun

    def run(self, function: Any, *args: Any) -> Any:
        return self.finish(self.start(function, *args))

    def list_offsets(self, asks: Any) -> Any:
        return {part: SimpleNamespace(offset=0 if at == -2 else 100) for part, at in asks.items()}


def some(first: int, count: int = 10) -> bytes:
    return batch_bytes([Raw(at, 0, b"%d" % (first + at), None) for at in range(count)], base_offset=first)


def test_the_next_is_on_its_way_before_this_is_given() -> None:
    cluster = Scripted(answer(some(0)), answer(some(10) + some(20)), answer(some(30)))
    tables = read(cluster, "t", 0, 0, 35)
    assert keys(iter([next(tables)])) == list(range(10))
    assert cluster.fetches == [(1, 0), (1, 10)]
    assert keys(tables) == list(range(10, 35))
    assert cluster.fetches == [(1, 0), (1, 10), (1, 30)]


def test_a_replica_that_is_nearer() -> None:
    """KIP-392: the leader names it without records; fetches go to it until it returns an error."""
    elsewhere = answer(preferred_read_replica=5)
    behind = answer(error_code=OffsetOutOfRange.code)
    cluster = Scripted(elsewhere, answer(some(0)), answer(some(10)), behind, answer(some(20)), answer(some(30)))
    assert keys(read(cluster, "t", 0, 0, 40, rack="here")) == list(range(40))
    assert cluster.fetches == [(1, 0), (5, 0), (5, 10), (5, 20), (1, 20), (1, 30)]


@pytest.mark.parametrize(
    "failure",
    [
        answer(error_code=6),  # NOT_LEADER_OR_FOLLOWER
        answer(error_code=74),  # FENCED_LEADER_EPOCH
        answer(error_code=100),  # UNKNOWN_TOPIC_ID, of a broker that does not know it yet
        answer(error_code=3),
        answer(error_code=56),  # KAFKA_STORAGE_ERROR
        kafka_errors.KafkaConnectionError("gone"),
        kafka_errors.RequestTimedOutError("slow"),
    ],
    ids=str,
)
def test_what_passes(failure) -> None:
    cluster = Scripted(answer(some(0)), failure, failure, answer(some(10)))
    assert keys(read(cluster, "t", 0, 0, 20)) == list(range(20))


@pytest.mark.parametrize(
    ("failure", "text"),
    [
        (answer(error_code=29), "fetching t-0 at offset 0: Topic authorization failed"),
        (answer(whole_error=-1), "fetching t-0: "),
        (answer(partition_index=3), "does not contain the partition"),
    ],
)
def test_what_does_not_pass(failure, text) -> None:
    cluster = Scripted(failure, failure)
    with pytest.raises(KafkaError, match=text):
        list(read(cluster, "t", 0, 0, 20))


def test_an_offset_that_is_out_of_range_and_is_not() -> None:
    again = answer(error_code=OffsetOutOfRange.code)
    cluster = Scripted(again, again, answer(some(0)))
    assert keys(read(cluster, "t", 0, 0, 10)) == list(range(10))
    assert cluster.pauses == [None]
    with pytest.raises(OffsetOutOfRange, match="t-0 at offset 0"):
        list(read(Scripted(again, again), "t", 0, 0, 10, patience=0))


def test_a_broker_that_wants_to_be_left_alone() -> None:
    cluster = Scripted(answer(some(0), throttle_time_ms=9_000), answer(some(10)))
    assert keys(read(cluster, "t", 0, 0, 20)) == list(range(20))
    (pause,) = cluster.pauses
    assert pause is not None and 8 < pause <= 9


def test_a_compacted_tail_is_not_waited_for() -> None:
    """Offsets 10 to 19 are compacted: the batch has its last offset, or the next batch begins later."""
    emptied = batch_bytes([], base_offset=10, last_delta=9)
    for rest in (emptied, some(20)):
        cluster = Scripted(answer(some(0)), answer(rest))
        assert keys(read(cluster, "t", 0, 0, 20, patience=0)) == list(range(10))
        assert cluster.fetches == [(1, 0), (1, 10)]


def test_bytes_without_a_batch() -> None:
    cluster = Scripted(answer(some(0)), answer(some(10)[:50]))
    with pytest.raises(CorruptMessage, match=r"t-0 is corrupt at offset 10: .* no whole batch"):
        list(read(cluster, "t", 0, 0, 20))


def test_a_batch_that_lies_is_named() -> None:
    damaged = bytearray(some(10))
    damaged[18] ^= 1  # in the checksum itself
    tables = read(Scripted(answer(some(0) + damaged)), "t", 0, 0, 15)
    with pytest.raises(CorruptMessage, match="t-0 is corrupt at offset 10: the checksum"):
        list(tables)
    trusting = read(Scripted(answer(some(0) + damaged)), "t", 0, 0, 15, check_crcs=False)
    assert len(list(trusting)) == 1

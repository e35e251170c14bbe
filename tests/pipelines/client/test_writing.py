"""Writes of columns through a broker without faults, and through one that loses requests and responses."""

import random
import uuid
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from kafka.errors import KafkaConnectionError
from kafka.protocol.producer import ProduceRequest

from barnabas.columnar.encoding import Columns
from barnabas.columnar.partitioning import NoSuchPartition
from barnabas.errors import (
    InvalidRecord,
    KafkaError,
    LeaderNotAvailable,
    MessageTooLarge,
    NotLeaderOrFollower,
    OutOfOrderSequenceNumber,
    RequestTimedOut,
    UnknownProducerId,
    UnknownTopicOrPartition,
)
from barnabas.pipelines.client import TopicPartition
from barnabas.pipelines.client.cluster import Cluster
from barnabas.pipelines.client.settings import BadSetting, ClientSettings
from barnabas.pipelines.client.write_settings import WriteSettings
from barnabas.pipelines.client.writing import Writer
from barnabas.records.batch import Compression, RecordBatch
from barnabas.testing import Broker

Fault = Callable[["Faulty", Any, Any], Any]


class Faulty(Cluster):
    """Applies the next of the `faults` to each Produce request."""

    faults: list[Fault | None] = []
    produced: list[list[RecordBatch]] = []

    async def send(self, node_id: Any, request: Any, timeout_ms: float | None = None) -> Any:
        if not isinstance(request, ProduceRequest):
            return await super().send(node_id, request, timeout_ms)
        self.produced.append(
            [RecordBatch.parse(part.records) for topic in request.topic_data for part in topic.partition_data]
        )
        fault = self.faults.pop(0) if self.faults else None
        if fault is None:
            return await super().send(node_id, request, timeout_ms)
        return await fault(self, node_id, request)


async def lost_request(cluster: Faulty, node: Any, request: Any) -> Any:
    raise KafkaConnectionError("gone before it was sent")


async def lost_answer(cluster: Faulty, node: Any, request: Any) -> Any:
    await Cluster.send(cluster, node, request)
    raise KafkaConnectionError("gone before it was answered")


def refused(error: type[KafkaError], message: str | None = None) -> Fault:
    """Returns a fault: a response with this error for every batch, none of which reaches the broker."""

    async def fault(cluster: Faulty, node: Any, request: Any) -> Any:
        return SimpleNamespace(
            responses=[
                SimpleNamespace(
                    name=topic.name,
                    partition_responses=[
                        SimpleNamespace(
                            index=part.index, error_code=error.code, error_message=message, record_errors=[]
                        )
                        for part in topic.partition_data
                    ],
                )
                for topic in request.topic_data
            ]
        )

    return fault


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(num_partitions=3) as running:
        yield running


@pytest.fixture
def cluster(broker: Broker) -> Iterator[Faulty]:
    settings = {
        "bootstrap.servers": broker.bootstrap_servers,
        "retry.backoff.ms": "1",
        "default.api.timeout.ms": "5000",
        "client.id": str(uuid.uuid4()),
    }
    made = Faulty(ClientSettings.parse(settings))
    made.faults, made.produced = [], []
    yield made
    made.close()


@pytest.fixture
def topic(broker: Broker) -> str:
    name = f"topic-{uuid.uuid4()}"
    broker.create_topic(name, partitions=3)
    return name


def numbered(start: int, stop: int, *, size: int = 0) -> Columns:
    values = [b"%d" % number + b"." * size for number in range(start, stop)]
    return Columns(
        pa.array([b"key-%d" % number for number in range(start, stop)]),
        pa.array(values),
        None,
        np.arange(start, stop) + 1_700_000_000_000,
    )


def one_partition(count: int) -> pa.Array:
    return pa.array([1] * count, pa.int32())


def values(broker: Broker, topic: str, partition: int) -> list[bytes]:
    return [
        record.value.rstrip(b".") for record in broker.records(topic) if record.partition == partition and record.value
    ]


def small(**changes: Any) -> WriteSettings:
    return WriteSettings(**{"batch_bytes": 2_000, "request_bytes": 1, **changes})


def test_keys_find_their_partitions_and_stay_in_order(broker: Broker, cluster: Faulty, topic: str) -> None:
    writer = Writer(cluster, small(request_bytes=10_000))
    for start in range(0, 1_000, 100):
        writer.write(topic, numbered(start, start + 100))
    writer.flush()
    records = broker.records(topic)
    assert sorted(int(record.value) for record in records if record.value) == list(range(1_000))
    assert writer.records == 1_000
    for partition in range(3):
        held = [record for record in records if record.partition == partition]
        assert len(held) > 200
        assert [record.timestamp for record in held] == sorted(record.timestamp for record in held)
        assert all(record.key == b"key-" + record.value for record in held if record.value)


@pytest.mark.parametrize("compression", Compression)
def test_headers_nulls_and_codecs(broker: Broker, cluster: Faulty, topic: str, compression: Compression) -> None:
    columns = Columns(
        pa.array(["a", None, ""]),
        pa.array([None, b"", b"v"]),
        pa.array(
            [[("h", b"1"), ("h", None)], None, []], pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
        ),
        np.array([5, -1, 7]),
    )
    writer = Writer(cluster, WriteSettings(compression=compression))
    writer.write(topic, columns, pa.array([2, 2, 2], pa.int32()))
    writer.flush()
    assert [tuple(record[1:]) for record in broker.records(topic)] == [
        (2, 0, 5, b"a", None, (("h", b"1"), ("h", None))),
        (2, 1, -1, None, b"", ()),
        (2, 2, 7, b"", b"v", ()),
    ]


@pytest.mark.parametrize("seed", range(5))
def test_whatever_is_lost_each_record_is_there_once_and_in_order(
    broker: Broker, cluster: Faulty, topic: str, seed: int
) -> None:
    chance = random.Random(seed)
    faults = [None, None, lost_request, lost_answer, refused(NotLeaderOrFollower)]
    cluster.faults = chance.choices(faults, k=60)
    writer = Writer(cluster, small())
    for start in range(0, 1_000, 250):
        writer.write(topic, numbered(start, start + 250, size=100), one_partition(250))
    writer.flush()
    assert values(broker, topic, 1) == [b"%d" % number for number in range(1_000)]
    assert len(cluster.produced) > 60


def test_a_partition_that_is_held_up_keeps_no_memory_of_the_others(broker: Broker, cluster: Faulty, topic: str) -> None:
    """Its batches are copied from the buffer with the batches of all partitions."""
    cluster.faults = [refused(NotLeaderOrFollower)]
    writer = Writer(cluster, small())
    writer.write(topic, numbered(0, 20), one_partition(20))
    lane = writer._lanes[TopicPartition(topic, 1)]
    while not lane.is_blocked:
        writer._step()
    writer.write(topic, numbered(20, 400, size=100), one_partition(380))
    behind = [batch for batch in lane.waiting if batch.first >= 20]
    assert len(behind) > 10
    assert all(isinstance(batch.data, bytearray) for batch in behind)
    writer.flush()
    assert not lane.is_blocked
    assert values(broker, topic, 1) == [b"%d" % number for number in range(400)]


def test_several_requests_are_under_way_at_a_time(broker: Broker, cluster: Faulty, topic: str) -> None:
    under_way = 0
    most = 0

    async def slow(faulty: Faulty, node: Any, request: Any) -> Any:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        first = len(faulty.produced) == 1
        answer = await Cluster.send(faulty, node, request)
        for _ in range(1_000):  # until there are others, which are not in the first request
            if most >= 4 or first:
                break
            await faulty.pause(0.005)
        under_way -= 1
        return answer

    cluster.faults = [slow] * 100
    writer = Writer(cluster, small(max_in_flight=4))
    writer.write(topic, numbered(0, 400, size=100), one_partition(400))
    writer.flush()
    assert most == 4
    assert values(broker, topic, 1) == [b"%d" % number for number in range(400)]


def test_a_batch_too_large_for_its_topic_is_halved_until_it_fits(broker: Broker, cluster: Faulty) -> None:
    name = f"topic-{uuid.uuid4()}"
    broker.create_topic(name, partitions=2, configs={"max.message.bytes": 3_000})
    for compression in (Compression.NONE, Compression.ZSTD):
        writer = Writer(cluster, WriteSettings(compression=compression))
        noise = pa.array([random.Random(number).randbytes(100) for number in range(300)])
        for _ in range(2):
            writer.write(name, numbered(0, 300)._replace(value=noise), one_partition(300))
        writer.flush()
    keys = [record.key for record in broker.records(name)]
    assert keys == [b"key-%d" % number for number in range(300)] * 4


def test_a_record_too_large_for_its_topic_is_an_error(broker: Broker, cluster: Faulty) -> None:
    name = f"topic-{uuid.uuid4()}"
    broker.create_topic(name, configs={"max.message.bytes": 3_000})
    writer = Writer(cluster, WriteSettings())
    writer.write(name, Columns(None, pa.array([b"a", b"v" * 4_000, b"b"]), None, np.zeros(3, np.int64)))
    with pytest.raises(MessageTooLarge, match=f"{name}-0 rejects a record of 40.. bytes: .*max.message.bytes"):
        writer.flush()
    with pytest.raises(MessageTooLarge):
        writer.write(name, numbered(0, 1))


def test_a_record_larger_than_was_allowed_is_an_error_at_once(cluster: Faulty, topic: str) -> None:
    writer = Writer(cluster, WriteSettings.parse({"max.request.size": "1000"}))
    with pytest.raises(MessageTooLarge, match=r"1006 bytes, kafka.max.request.size is 1000"):
        writer.write(topic, Columns(None, pa.array([b"v" * 999]), None, np.zeros(1, np.int64)))


def test_a_producer_that_the_broker_forgot_begins_anew(broker: Broker, cluster: Faulty, topic: str) -> None:
    writer = Writer(cluster, small())
    writer.write(topic, numbered(0, 20), one_partition(20))
    writer.flush()
    cluster.faults = [refused(UnknownProducerId)]
    writer.write(topic, numbered(20, 400, size=100), one_partition(380))
    writer.flush()
    assert values(broker, topic, 1) == [b"%d" % number for number in range(400)]
    first, last = cluster.produced[0][0], cluster.produced[-1][0]
    assert first.producer_id != last.producer_id
    assert last.base_sequence < 380


def test_a_gap_that_is_not_ours_is_an_error(cluster: Faulty, topic: str) -> None:
    cluster.faults = [refused(OutOfOrderSequenceNumber)]
    writer = Writer(cluster, small())
    writer.write(topic, numbered(0, 5), one_partition(5))
    with pytest.raises(OutOfOrderSequenceNumber, match=f"{topic}-1"):
        writer.flush()


def test_what_the_broker_says_is_said(cluster: Faulty, topic: str) -> None:
    cluster.faults = [refused(InvalidRecord, "a key is needed here")]
    writer = Writer(cluster, small())
    writer.write(topic, numbered(0, 5), one_partition(5))
    with pytest.raises(InvalidRecord, match=f"{topic}-1: a key is needed here"):
        writer.flush()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"delivery_timeout": 0.05}, r"within 0.05 s \(delivery.timeout.ms\)"),
        ({"retries": 2}, r"in 3 attempts \(retries\)"),
    ],
)
def test_what_fails_for_too_long_is_an_error(cluster: Faulty, topic: str, changes: dict[str, Any], words: str) -> None:
    cluster.faults = [lost_request] * 1_000_000 if "retries" in changes else [lost_request] * 10_000
    writer = Writer(cluster, small(**changes))
    writer.write(topic, numbered(0, 5), one_partition(5))
    with pytest.raises(RequestTimedOut, match=f"cannot write a batch to {topic}-1 {words}: .*gone before it was sent"):
        writer.flush()


def test_a_leader_is_waited_for_as_long_as_a_batch_has_time(
    broker: Broker, cluster: Faulty, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each lookup ends after default.api.timeout.ms, which may be sooner."""
    requested = []

    def none_at_first(where: TopicPartition) -> int:
        requested.append(where)
        if len(requested) < 3 or where.partition == 2:
            raise LeaderNotAvailable(f"{where} has no leader")
        return Cluster.leader(cluster, where)

    monkeypatch.setattr(cluster, "leader", none_at_first)
    writer = Writer(cluster, small())
    writer.write(topic, numbered(0, 5), one_partition(5))
    writer.flush()
    assert requested == [TopicPartition(topic, 1)] * 3
    assert values(broker, topic, 1) == [b"%d" % number for number in range(5)]
    hurried = Writer(cluster, small(delivery_timeout=0.0))
    with pytest.raises(LeaderNotAvailable, match=f"{topic}-2 has no leader"):
        hurried.write(topic, numbered(0, 1), pa.array([2], pa.int32()))


def test_nobody_answers_without_acks(broker: Broker, cluster: Faulty, topic: str) -> None:
    writer = Writer(cluster, WriteSettings.parse({"acks": "0"}))
    writer.write(topic, numbered(0, 50), one_partition(50))
    writer.flush()
    assert cluster.produced[0][0].producer_id == -1
    cluster.run(cluster.send_to_any, _metadata())  # on the same connection, so earlier requests are done
    assert values(broker, topic, 1) == [b"%d" % number for number in range(50)]


def _metadata() -> Any:
    from kafka.protocol.metadata import MetadataRequest

    return MetadataRequest(
        topics=[],
        allow_auto_topic_creation=False,
        include_cluster_authorized_operations=False,
        include_topic_authorized_operations=False,
    )


def test_writers_of_a_process_share_a_producer_id(cluster: Faulty, topic: str) -> None:
    for start in (0, 10):
        writer = Writer(cluster, small())
        writer.write(topic, numbered(start, start + 10), one_partition(10))
        writer.flush()
        writer.close()
    failing = Writer(cluster, small())
    cluster.faults = [refused(InvalidRecord)]
    failing.write(topic, numbered(20, 30), one_partition(10))
    with pytest.raises(InvalidRecord):
        failing.flush()
    failing.close()
    after = Writer(cluster, small())
    after.write(topic, numbered(30, 40), one_partition(10))
    after.flush()
    sent = [(batches[0].producer_id, batches[0].base_sequence) for batches in cluster.produced]
    first = sent[0][0]
    assert sent[:3] == [(first, 0), (first, 10), (first, 20)]
    assert sent[3][0] != first


def test_a_topic_is_made_by_writing_to_it_where_brokers_do_that(broker: Broker, cluster: Faulty) -> None:
    name = f"topic-{uuid.uuid4()}"
    writer = Writer(cluster, WriteSettings())
    writer.write(name, numbered(0, 90))
    writer.flush()
    assert len(broker.records(name)) == 90


def test_a_topic_that_is_not_there_is_named() -> None:
    with Broker(auto_create_topics_enable=False) as broker:
        cluster = Cluster(ClientSettings.parse({"bootstrap.servers": broker.bootstrap_servers}))
        with pytest.raises(UnknownTopicOrPartition, match="topic nowhere"):
            Writer(cluster, WriteSettings()).write("nowhere", numbered(0, 1))
        cluster.close()


def test_a_partition_that_is_not_there_is_named(cluster: Faulty, topic: str) -> None:
    writer = Writer(cluster, WriteSettings())
    writer.write(topic, numbered(0, 1))
    with pytest.raises(NoSuchPartition, match=f"partition 3 of topic '{topic}', which has partitions 0 to 2"):
        writer.write(topic, numbered(0, 2), pa.array([0, 3], pa.int32()))


def test_settings_mean_what_java_s_producer_means() -> None:
    assert WriteSettings.parse({}) == WriteSettings()
    assert WriteSettings.parse({"acks": "1"}).idempotent is False
    assert WriteSettings.parse({"enable.idempotence": "false"}).idempotent is False
    assert WriteSettings.parse({"compression.type": "zstd", "compression.zstd.level": "9"}).level == 9
    assert WriteSettings.parse({"compression.type": "lz4", "compression.zstd.level": "9"}).level is None
    assert WriteSettings.parse({"linger.ms": "5", "delivery.timeout.ms": "1500"}).linger == 0.005
    for wrong, words in (
        ({"acks": "2"}, "kafka.acks '2': must be one of all, -1, 0, 1"),
        ({"acks": "1", "enable.idempotence": "true"}, "kafka.acks must be all with kafka.enable.idempotence"),
        (
            {"max.in.flight.requests.per.connection": "6", "enable.idempotence": "true"},
            "kafka.max.in.flight.requests.per.connection must be 5 or less",
        ),
        ({"batch.size": "x"}, "kafka.batch.size 'x'"),
        ({"compression.gzip.level": "10"}, "kafka.compression.gzip.level '10': must be from 1 to 9"),
        ({"transactional.id": "x"}, "kafka.transactional.id cannot be set: delivery=exactly-once creates one"),
    ):
        with pytest.raises(BadSetting, match=words):
            WriteSettings.parse(wrong)

"""A directory with transactions of Apache Kafka, used by Barnabas: consumers read the same from both.

Knows nothing of how Barnabas finds aborted transactions; compares its rebuilt index files with Apache Kafka's.
"""

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests.running import BarnabasProcess

from .apache import CURRENT, ApacheKafka, run_java

TOPIC = "ledger"
LEVELS = ("read_committed", "read_uncommitted")
DEADLINE_SECONDS = 60.0
OPEN_FOR_MS = 900_000  #: longer than these tests take: no coordinator ends open transactions

Seen = list[tuple[int, bytes]]
"""Offsets and values, in log order."""


def by_librdkafka(bootstrap: str, level: str) -> Seen:
    settings = {"bootstrap.servers": bootstrap, "group.id": "g", "isolation.level": level, "enable.partition.eof": True}
    consumer = Consumer(settings)
    consumer.assign([TopicPartition(TOPIC, 0, OFFSET_BEGINNING)])
    seen: Seen = []
    deadline = time.monotonic() + DEADLINE_SECONDS
    while time.monotonic() < deadline:
        message = consumer.poll(1)
        if message is None:
            continue
        error, offset, value = message.error(), message.offset(), message.value()
        if error is None and offset is not None and value is not None:
            seen.append((offset, value))
        elif error is not None and error.code() == KafkaError._PARTITION_EOF:
            break
    consumer.close()
    return seen


def by_kafka_python(bootstrap: str, level: str) -> Seen:
    import kafka

    consumer = kafka.KafkaConsumer(bootstrap_servers=bootstrap, isolation_level=level, enable_auto_commit=False)
    place = kafka.TopicPartition(TOPIC, 0)
    consumer.assign([place])
    consumer.seek_to_beginning(place)
    end = consumer.end_offsets([place])[place]
    seen: Seen = []
    deadline = time.monotonic() + DEADLINE_SECONDS
    while consumer.position(place) < end and time.monotonic() < deadline:
        for messages in consumer.poll(500).values():
            seen += [(message.offset, message.value) for message in messages]
    consumer.close()
    return seen


READERS: dict[str, Callable[[str, str], Seen]] = {"librdkafka": by_librdkafka, "kafka-python": by_kafka_python}


def fill(bootstrap: str) -> None:
    """Writes concurrent and successive transactions, over several segments; the last one stays open."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_topics([NewTopic(TOPIC, 1, config={"segment.bytes": str(1 << 20)})]).values():
        future.result()
    codecs = ["none", "lz4", "gzip"]
    writers = [
        Producer(
            {
                "bootstrap.servers": bootstrap,
                "transactional.id": f"w-{n}",
                "compression.type": codec,
                "linger.ms": 0,
                "transaction.timeout.ms": OPEN_FOR_MS,
            }
        )
        for n, codec in enumerate(codecs)
    ]
    plain = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for writer in writers:
        writer.init_transactions(DEADLINE_SECONDS)

    def write(producer: Producer, text: str) -> None:
        for n in range(3):
            producer.produce(TOPIC, f"{text} {n} ".encode() + b"." * 60_000, partition=0)
        producer.flush(DEADLINE_SECONDS)

    for round_ in range(6):
        for number, writer in enumerate(writers):
            writer.begin_transaction()
            write(writer, f"first of {number} in {round_}")
        write(plain, f"plain in {round_}")
        for number, writer in enumerate(writers):
            write(writer, f"more of {number} in {round_}")
            if round_ == 5 and number == 1:
                continue
            end = writer.abort_transaction if (round_ + number) % 3 == 0 else writer.commit_transaction
            end(DEADLINE_SECONDS)
    write(plain, "plain at last")


class Filled(NamedTuple):
    """The directory of Apache Kafka, and the records that it returned."""

    data: Path
    seen: dict[str, Seen]


@pytest.fixture(scope="module")
def filled(kafka_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Filled:
    home = tmp_path_factory.mktemp("ledger")
    few = {"transaction.state.log.num.partitions": "1", "offsets.topic.num.partitions": "1"}
    with ApacheKafka(home, few) as apache:
        fill(apache.bootstrap)
        seen = {level: by_librdkafka(apache.bootstrap, level) for level in LEVELS}
        apache.stop()
    committed, everything = (seen[level] for level in LEVELS)
    assert 25 < len(committed) < len(everything) == 6 * 21 + 3
    return Filled(home / "data", seen)


def indexes(data: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (data / f"{TOPIC}-0").glob("*.txnindex")}


def copy(source: Path, target: Path, *, damaged: bool) -> None:
    """A data directory after a clean stop, after a kill, and without the indexes of aborted transactions."""
    shutil.copytree(source, target)
    if damaged:
        for name in (".kafka_cleanshutdown", "recovery-point-offset-checkpoint"):
            (target / name).unlink()
        for path in (target / f"{TOPIC}-0").glob("*.txnindex"):
            path.unlink()


@pytest.fixture(scope="module", params=["closed", "killed and without indexes"])
def opened(request: pytest.FixtureRequest, filled: Filled, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yields the address of Barnabas on a copy of it."""
    home = tmp_path_factory.mktemp("opened")
    copy(filled.data, home / "data", damaged=request.param != "closed")
    broker = BarnabasProcess(home, {"node.id": "1"}).start()
    try:
        made = {name: data for name, data in indexes(home / "data").items() if data}
        assert made == {name: data for name, data in indexes(filled.data).items() if data}
        assert len(made) > 2
        yield broker.bootstrap
        assert broker.complaints() == []
    finally:
        broker.stop()


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("reader", READERS)
def test_consumers_see_what_they_saw(opened: str, filled: Filled, reader: str, level: str) -> None:
    assert READERS[reader](opened, level) == filled.seen[level]


@pytest.mark.parametrize("opened", ["killed and without indexes"], indirect=True)
def test_the_java_consumer_does_too(opened: str, filled: Filled) -> None:
    committed = filled.seen["read_committed"]
    arguments = ["--bootstrap-server", opened, "--topic", TOPIC, "--from-beginning", "--timeout-ms", "30000"]
    arguments += ["--isolation-level", "read_committed", "--max-messages", str(len(committed))]
    arguments += ["--formatter-property", "print.offset=true"]
    consumed = run_java(CURRENT, "org.apache.kafka.tools.consumer.ConsoleConsumer", *arguments)
    expected = [f"Offset:{offset}\t{value.decode()}" for offset, value in committed]
    assert consumed.stdout.splitlines() == expected, consumed.stderr


def test_apache_kafka_continues_on_a_recovered_log(filled: Filled, tmp_path: Path) -> None:
    copy(filled.data, tmp_path / "data", damaged=True)
    broker = BarnabasProcess(tmp_path, {"node.id": "1"}).start()
    try:
        producer = Producer({"bootstrap.servers": broker.bootstrap})
        written: list[tuple[int, bytes]] = []
        found = lambda error, message: written.append((message.offset(), message.value()))  # noqa: E731
        producer.produce(TOPIC, b"by Barnabas", partition=0, on_delivery=found)
        assert producer.flush(DEADLINE_SECONDS) == 0
    finally:
        broker.stop()
    assert written[0][0] > filled.seen["read_uncommitted"][-1][0]
    with ApacheKafka(tmp_path) as apache:
        assert by_librdkafka(apache.bootstrap, "read_committed") == filled.seen["read_committed"]
        assert by_librdkafka(apache.bootstrap, "read_uncommitted") == [*filled.seen["read_uncommitted"], *written]


def test_what_apache_kafka_left_open_is_ended_by_its_next_producer(filled: Filled, tmp_path: Path) -> None:
    committed, everything = (filled.seen[level] for level in LEVELS)
    behind = [
        (offset, value) for offset, value in everything if offset > committed[-1][0] and b" of 1 in 5 " not in value
    ]
    assert len(everything) - len(behind) - len(committed) > 6
    copy(filled.data, tmp_path / "data", damaged=False)
    broker = BarnabasProcess(tmp_path, {"node.id": "1"}).start()
    try:
        assert by_librdkafka(broker.bootstrap, "read_committed") == committed
        Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": "w-1"}).init_transactions(DEADLINE_SECONDS)
        assert by_librdkafka(broker.bootstrap, "read_committed") == committed + behind
        broker.stop()
        assert broker.complaints() == []
    finally:
        broker.kill()

"""Compacted topics, read by unmodified clients: they become small, and keep the latest record of each key in order,
also after kill -9 during compaction. So does ``__consumer_offsets``.

Knows the size of the data directory, and nothing else of how the broker works inside.
"""

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import confluent_kafka
import kafka
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests.running import Running

TOPIC = "latest"
KEYS = 100
SEGMENT = 1 << 20  # the minimum that Apache Kafka allows
SECONDS = 60
CLEANING = {"log.cleaner.backoff.ms": "100"}


def create(bootstrap: str, **configs: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    settings = {"cleanup.policy": "compact", "segment.bytes": str(SEGMENT), "min.cleanable.dirty.ratio": "0.01"}
    topic = NewTopic(TOPIC, 1, 1, config=settings | {name.replace("_", "."): text for name, text in configs.items()})
    for future in admin.create_topics([topic]).values():
        future.result(SECONDS)


def write(bootstrap: str, first: int, count: int) -> None:
    """Writes records: the n-th has key n % KEYS and a value that begins with n."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, "batch.num.messages": 100, "acks": "all"})
    for number in range(first, first + count):
        producer.produce(TOPIC, key=b"%d" % (number % KEYS), value=b"%d %s" % (number, b"x" * 90))
        if number % 1000 == 0:
            producer.poll(0)
    assert producer.flush(SECONDS) == 0


def size_of(broker: Running, partition: str) -> int:
    """Returns the bytes in the ``.log`` files of a partition."""
    home: Path = broker.home  # type: ignore[attr-defined]
    total = 0
    for path in (home / "data" / partition).glob("*.log"):
        with contextlib.suppress(FileNotFoundError):  # the cleaner swapped it meanwhile
            total += path.stat().st_size
    return total


def await_small(broker: Running, partition: str, size: int) -> None:
    deadline = time.monotonic() + SECONDS
    while size_of(broker, partition) > size:
        assert time.monotonic() < deadline, f"{partition} still has {size_of(broker, partition)} bytes"
        time.sleep(0.05)


def by_kafka_python(bootstrap: str) -> Iterator[tuple[int, bytes, bytes]]:
    consumer = kafka.KafkaConsumer(bootstrap_servers=bootstrap, enable_auto_commit=False)
    with contextlib.closing(consumer):
        place = kafka.TopicPartition(TOPIC, 0)
        consumer.assign([place])
        end = consumer.end_offsets([place])[place]
        consumer.seek_to_beginning(place)
        while consumer.position(place) < end:
            for records in consumer.poll(200).values():
                yield from ((record.offset, record.key, record.value) for record in records)


def by_confluent_kafka(bootstrap: str) -> Iterator[tuple[int, bytes, bytes]]:
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "reader", "enable.partition.eof": True}
    )
    with contextlib.closing(consumer):
        consumer.assign([TopicPartition(TOPIC, 0, 0)])
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            message = consumer.poll(1)
            if message is None:
                continue
            offset, key, value, error = message.offset(), message.key(), message.value(), message.error()
            if error is not None:
                assert error.code() == confluent_kafka.KafkaError._PARTITION_EOF
                return
            assert offset is not None and key is not None and value is not None
            yield offset, key, value
        raise AssertionError("the end did not come")


READERS = {"kafka-python": by_kafka_python, "confluent-kafka": by_confluent_kafka}


def check(found: list[tuple[int, bytes, bytes]], count: int) -> None:
    """Checks that offsets ascend, that each record is as written, and that the latest of each key is there."""
    offsets = [offset for offset, _, _ in found]
    assert offsets == sorted(set(offsets))
    for offset, key, value in found:
        assert (int(key), int(value.split()[0])) == (offset % KEYS, offset)
    assert set(range(count - KEYS, count)) <= set(offsets)


def test_the_latest_of_each_key_stays(own_broker: Callable[..., Running]) -> None:
    broker, count = own_broker(CLEANING), 50_000
    create(broker.bootstrap)
    write(broker.bootstrap, 0, count)
    await_small(broker, f"{TOPIC}-0", SEGMENT + (SEGMENT >> 2))
    for name, reader in READERS.items():
        found = list(reader(broker.bootstrap))
        assert len(found) < count / 3, name
        assert found[0][0] > 0, "there is no hole"
        check(found, count)


def test_kill_9_while_it_is_compacted(own_broker: Callable[..., Running]) -> None:
    """At two megabytes a second the cleaner is always busy."""
    broker, written = own_broker(CLEANING | {"log.cleaner.io.max.bytes.per.second": "2000000"}), 0
    create(broker.bootstrap)
    for _ in range(3):
        write(broker.bootstrap, written, 25_000)
        written += 25_000
        broker.kill()
        broker.start()
        check(list(by_confluent_kafka(broker.bootstrap)), written)
    write(broker.bootstrap, written, KEYS)
    check(list(by_kafka_python(broker.bootstrap)), written + KEYS)


def test_committed_offsets_are_compacted(own_broker: Callable[..., Running]) -> None:
    """Thousands of commits leave a small log, and a restart finds the last of each partition."""
    offsets = {"offsets.topic.segment.bytes": str(SEGMENT), "offsets.topic.num.partitions": "1"}
    broker, groups, metadata = own_broker(CLEANING | offsets), [f"group-{number}" for number in range(4)], "m" * 1500
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(TOPIC, 2, 1)])[TOPIC].result(SECONDS)
    for group in groups:
        consumer = confluent_kafka.Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group})
        for number in range(600):
            places = [TopicPartition(TOPIC, index, number, metadata) for index in range(2)]
            consumer.commit(offsets=places, asynchronous=False)
        consumer.close()
    await_small(broker, "__consumer_offsets-0", SEGMENT + (SEGMENT >> 2))
    for stop in (broker.stop, broker.kill):
        stop()
        broker.start()
        for group in groups:
            consumer = confluent_kafka.Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group})
            found = consumer.committed([TopicPartition(TOPIC, index) for index in range(2)], timeout=SECONDS)
            assert [(place.offset, place.metadata) for place in found] == [(599, metadata)] * 2
            consumer.close()

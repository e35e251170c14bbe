"""Old segments are deleted: by time, by size, by DeleteRecords, also in compacted topics; seen by clients and on disk.

Knows nothing of how the broker works inside, except the names of files, which are Apache Kafka's.
"""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from compat_tests.running import Running

SECONDS = 60
MIB = 1 << 20
OFTEN = {
    "log.retention.check.interval.ms": "100",
    "log.initial.task.delay.ms": "0",
    "log.cleaner.backoff.ms": "100",
}
POLICY_VIOLATION = 44


@pytest.fixture
def broker(own_broker: Callable[..., Running]) -> Iterator[Running]:
    yield own_broker(OFTEN)


@pytest.fixture
def admin(broker: Running) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap})


def create(admin: AdminClient, topic: str, **configs: str) -> None:
    settings = {name.replace("_", "."): text for name, text in configs.items()}
    admin.create_topics([NewTopic(topic, 1, 1, config=settings)])[topic].result(SECONDS)


def write(
    broker: Running, topic: str, count: int, *, size: int = 1000, ages_ms: Callable[[int], int] = lambda _: 0
) -> None:
    """Writes ``count`` records of ``size`` bytes, in batches of up to 16; ``ages_ms`` has the age of the n-th."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "batch.num.messages": 16, "acks": "all"})
    now_ms = time.time_ns() // 1_000_000
    for number in range(count):
        key = b"%d" % (number % 10)
        producer.produce(topic, b"v" * size, key, timestamp=now_ms - ages_ms(number))
        if number % 16 == 15:
            producer.poll(0)
    assert producer.flush(SECONDS) == 0


def bounds(admin: AdminClient, topic: str) -> tuple[int, int]:
    """Returns the start and the end offset."""
    place = TopicPartition(topic, 0)
    earliest = admin.list_offsets({place: OffsetSpec.earliest()})[place].result(SECONDS).offset
    return earliest, admin.list_offsets({place: OffsetSpec.latest()})[place].result(SECONDS).offset


def names(broker: Running, topic: str) -> list[str]:
    """Returns the names of the partition's files."""
    home: Path = broker.home  # type: ignore[attr-defined]
    return sorted(path.name for path in (home / "data" / f"{topic}-0").iterdir())


def segments(broker: Running, topic: str) -> list[int]:
    return [int(name[:20]) for name in names(broker, topic) if name.endswith(".log")]


def until(reached: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + SECONDS
    while not reached():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def test_retention_by_size(broker: Running, admin: AdminClient) -> None:
    create(admin, "t", segment_bytes=str(MIB), retention_bytes=str(2 * MIB), file_delete_delay_ms="4000")
    write(broker, "t", 6000)
    until(lambda: bounds(admin, "t")[0] > 0, "nothing was deleted")
    until(lambda: any(name.endswith(".log.deleted") for name in names(broker, "t")), "no file was set aside")
    until(lambda: (6000 - bounds(admin, "t")[0]) * 1000 < 3.1 * MIB, "too much is left")
    first, end = bounds(admin, "t")
    assert end == 6000
    assert segments(broker, "t")[0] == first
    assert (end - first) * 1100 > 2 * MIB
    until(lambda: not any(".deleted" in name for name in names(broker, "t")), "files stay that were set aside")


def test_retention_by_time(broker: Running, admin: AdminClient) -> None:
    """All records are deleted, the active segment's too; the next record has the next offset."""
    create(admin, "t", segment_bytes=str(MIB), retention_ms="60000", file_delete_delay_ms="0")
    write(broker, "t", 3000, ages_ms=lambda _: 3_600_000)
    until(lambda: bounds(admin, "t") == (3000, 3000), "old records stay")
    until(lambda: segments(broker, "t") == [3000], "old segments stay")
    write(broker, "t", 1)
    assert bounds(admin, "t") == (3000, 3001)


def test_segments_by_time(broker: Running, admin: AdminClient) -> None:
    """Ten records ten minutes apart, in segments of at most a quarter of an hour, less a random jitter."""
    create(admin, "t", segment_ms="900000", segment_jitter_ms="240000", retention_ms="-1")
    for number in range(10):
        write(broker, "t", 1, ages_ms=lambda _, number=number: (10 - number) * 600_000)  # type: ignore[misc]
    assert segments(broker, "t") == [0, 2, 4, 6, 8]


def test_deleted_records(broker: Running, admin: AdminClient) -> None:
    create(admin, "t", segment_bytes=str(MIB), file_delete_delay_ms="0", retention_ms="-1")
    write(broker, "t", 5000)
    bases = segments(broker, "t")
    place = TopicPartition("t", 0, bases[2] + 100)
    assert admin.delete_records([place])[place].result(SECONDS).low_watermark == bases[2] + 100
    assert bounds(admin, "t") == (bases[2] + 100, 5000)
    until(lambda: segments(broker, "t") == bases[2:], "segments stay that nobody can read")
    broker.stop()
    broker.start()
    again = AdminClient({"bootstrap.servers": broker.bootstrap})
    assert bounds(again, "t") == (bases[2] + 100, 5000)


def test_retention_by_time_of_a_compacted_topic(broker: Running, admin: AdminClient) -> None:
    settings = {"segment_bytes": str(MIB), "retention_ms": "60000", "file_delete_delay_ms": "0"}
    create(admin, "both", cleanup_policy="compact,delete", **settings)
    create(admin, "compacted", cleanup_policy="compact", **settings)
    for topic in ("both", "compacted"):
        write(broker, topic, 3000, ages_ms=lambda _: 3_600_000)
    until(lambda: bounds(admin, "both") == (3000, 3000), "old records stay")
    place = TopicPartition("compacted", 0, 10)
    with pytest.raises(KafkaException) as refused:
        admin.delete_records([place])[place].result(SECONDS)
    assert refused.value.args[0].code() == POLICY_VIOLATION
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "reader"})
    consumer.assign([TopicPartition("compacted", 0, 0)])
    message = consumer.poll(SECONDS)
    assert message is not None and message.error() is None
    consumer.close()


def test_deleted_records_of_a_compacted_topic(broker: Running, admin: AdminClient) -> None:
    create(admin, "t", cleanup_policy="compact,delete", segment_bytes=str(MIB), min_cleanable_dirty_ratio="1",
           file_delete_delay_ms="0")  # fmt: skip
    write(broker, "t", 5000)
    bases = segments(broker, "t")
    place = TopicPartition("t", 0, bases[2])
    assert admin.delete_records([place])[place].result(SECONDS).low_watermark == bases[2]
    until(lambda: segments(broker, "t")[0] >= bases[2], "segments stay that nobody can read")

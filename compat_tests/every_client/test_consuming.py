"""What every consumer can do with assigned partitions."""

import time

import pytest

from compat_tests.adapters import Client, OffsetOutOfRange, Producer
from compat_tests.adapters.base import WAIT_S
from compat_tests.waiting import poll_until, read

NOON = 1_700_000_000_000


def fill(producer: Producer, topic: str, count: int, *, partition: int = 0) -> None:
    for n in range(count):
        producer.send(topic, b"%d" % n, partition=partition, timestamp=NOON + n * 1000)
    producer.flush()


def values(count: int, start: int = 0) -> list[bytes]:
    return [b"%d" % n for n in range(start, count)]


def test_assigned_partitions_are_read_from_their_beginnings(client: Client, topic: str) -> None:
    client.create_topic(topic, 3)
    producer = client.producer()
    fill(producer, topic, 50, partition=0)
    fill(producer, topic, 30, partition=2)
    consumer = client.consumer()
    consumer.assign([(topic, 0), (topic, 2)])
    records = read(consumer, 80)
    for partition, count in ((0, 50), (2, 30)):
        mine = [record for record in records if record.partition == partition]
        assert [record.value for record in mine] == values(count)
        assert [record.offset for record in mine] == list(range(count))
    assert consumer.position((topic, 0)) == 50
    assert consumer.bounds((topic, 0)) == (0, 50)
    assert consumer.bounds((topic, 1)) == (0, 0)


def test_seek_back_and_ahead(client: Client, topic: str) -> None:
    client.create_topic(topic)
    fill(client.producer(), topic, 100)
    consumer = client.consumer()
    consumer.assign([(topic, 0)])
    assert [record.value for record in read(consumer, 100)] == values(100)
    consumer.seek((topic, 0), 0)
    assert [record.value for record in read(consumer, 100)] == values(100)
    consumer.seek((topic, 0), 95)
    assert [record.value for record in read(consumer, 5)] == values(100, 95)
    consumer.seek((topic, 0), 37)
    assert [record.value for record in read(consumer, 63)] == values(100, 37)


def test_offsets_are_found_by_time(client: Client, topic: str) -> None:
    client.create_topic(topic)
    fill(client.producer(), topic, 10)
    consumer = client.consumer()
    consumer.assign([(topic, 0)])
    place = (topic, 0)
    assert consumer.offset_at(place, NOON) == 0
    assert consumer.offset_at(place, NOON - 1) == 0
    assert consumer.offset_at(place, NOON + 1) == 1
    assert consumer.offset_at(place, NOON + 5000) == 5
    assert consumer.offset_at(place, NOON + 9000) == 9
    assert consumer.offset_at(place, NOON + 9001) in (None, 10)  # librdkafka returns the end offset


def test_a_paused_partition_gives_nothing_until_it_is_resumed(client: Client, topic: str) -> None:
    client.create_topic(topic, 2)
    producer = client.producer()
    consumer = client.consumer()
    consumer.assign([(topic, 0), (topic, 1)])
    fill(producer, topic, 5, partition=0)
    fill(producer, topic, 5, partition=1)
    read(consumer, 10)
    consumer.pause((topic, 0))
    fill(producer, topic, 3, partition=0)
    fill(producer, topic, 3, partition=1)
    assert {record.partition for record in read(consumer, 3)} == {1}
    consumer.resume((topic, 0))
    resumed = read(consumer, 3)
    assert {record.partition for record in resumed} == {0}
    assert [record.offset for record in resumed] == [5, 6, 7]


def test_latest_starts_at_the_end(client: Client, topic: str) -> None:
    client.create_topic(topic)
    producer = client.producer()
    producer.send(topic, b"old").result()
    consumer = client.consumer(reset="latest")
    consumer.assign([(topic, 0)])
    heard: list[bytes | None] = []
    deadline = time.monotonic() + WAIT_S
    while not heard:
        assert time.monotonic() < deadline
        producer.send(topic, b"new").result()
        heard += [record.value for record in consumer.poll(0.2)]
    assert set(heard) == {b"new"}


def test_without_a_reset_an_unknown_place_is_an_error(client: Client, topic: str, group: str) -> None:
    client.create_topic(topic)
    client.producer().send(topic, b"value").result()
    consumer = client.consumer(group=group, reset="none")
    consumer.assign([(topic, 0)])
    with pytest.raises(OffsetOutOfRange):
        poll_until([consumer], lambda: False, "an error")


def test_an_offset_out_of_range_is_reset_to_the_earliest(client: Client, topic: str) -> None:
    client.create_topic(topic)
    fill(client.producer(), topic, 10)
    consumer = client.consumer(reset="earliest")
    consumer.assign([(topic, 0)])
    read(consumer, 10)
    consumer.seek((topic, 0), 5000)
    assert [record.value for record in read(consumer, 10)] == values(10)


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_isolation_makes_no_difference_without_transactions(client: Client, topic: str, isolation: str) -> None:
    client.create_topic(topic)
    fill(client.producer(idempotent=True), topic, 30)
    consumer = client.consumer(isolation=isolation)
    consumer.assign([(topic, 0)])
    assert [record.value for record in read(consumer, 30)] == values(30)


def test_a_waiting_fetch_is_answered_at_once(client: Client, topic: str) -> None:
    client.create_topic(topic)
    producer = client.producer()
    consumer = client.consumer()
    consumer.assign([(topic, 0)])
    producer.send(topic, b"0").result()
    read(consumer, 1)
    for n in range(1, 20):
        producer.send(topic, b"%d" % n).result()
        assert [record.value for record in read(consumer, 1)] == [b"%d" % n]


def test_a_deleted_topic_is_gone_and_a_new_one_starts_at_zero(client: Client, topic: str) -> None:
    client.create_topic(topic)
    fill(client.producer(), topic, 10)
    client.delete_topic(topic)
    deadline = time.monotonic() + WAIT_S
    while topic in client.topics():
        assert time.monotonic() < deadline
    client.create_topic(topic)
    assert client.producer().send(topic, b"again").result().offset == 0
    consumer = client.consumer()
    consumer.assign([(topic, 0)])
    assert [record.value for record in read(consumer, 1)] == [b"again"]

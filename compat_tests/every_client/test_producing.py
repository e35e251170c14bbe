"""What every producer can do, read back by a consumer of the same library."""

import time
from typing import Any

import pytest

from compat_tests.adapters import Client, Refused
from compat_tests.adapters.base import CREATE_TIME, LOG_APPEND_TIME
from compat_tests.waiting import read

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
NOON = 1_700_000_000_000
MESSAGE_TOO_LARGE = 10

ODDITIES = [
    (b"key", b"value", ()),
    (None, b"no key", ()),
    (b"", b"an empty key", ()),
    (b"a tombstone", None, ()),
    (b"an empty value", b"", ()),
    (b"\x00\xff\xfe", bytes(range(256)), ()),
    ("schlüssel".encode(), "värde".encode(), (("h", b"1"), ("h", b"2"), ("", b"no name"), ("größe", b"\x00\xff"))),
    (b"long", b"x" * 100_000, (("long", b"y" * 10_000),)),
]
A_NULL_HEADER = (b"header without a value", b"v", (("nothing", None), ("empty", b"")))


def oddities_for(client: Client) -> list[Any]:
    return [*ODDITIES, A_NULL_HEADER] if client.sends_null_headers else ODDITIES


@pytest.mark.parametrize("compression", CODECS)
def test_records_come_back_as_they_were_sent(client: Client, topic: str, compression: str) -> None:
    client.create_topic(topic)
    oddities = oddities_for(client)
    producer = client.producer(compression=compression, linger_ms=20)
    sent = [
        producer.send(topic, value, key=key, headers=headers, timestamp=NOON + n)
        for n, (key, value, headers) in enumerate(oddities)
    ]
    producer.flush()
    consumer = client.consumer()
    consumer.assign([(topic, 0)])
    records = read(consumer, len(oddities))
    assert [(record.key, record.value, record.headers) for record in records] == oddities
    assert [record.timestamp for record in records] == [NOON + n for n in range(len(oddities))]
    assert {record.timestamp_type for record in records} == {CREATE_TIME}
    assert [record.offset for record in records] == [pending.result().offset for pending in sent]


@pytest.mark.parametrize("acks", [0, 1, -1])
def test_acks(client: Client, topic: str, acks: int) -> None:
    client.create_topic(topic)
    producer = client.producer(acks=acks)
    sent = [producer.send(topic, b"%d" % n) for n in range(20)]
    producer.flush()
    consumer = client.consumer()
    consumer.assign([(topic, 0)])
    assert [record.value for record in read(consumer, 20)] == [b"%d" % n for n in range(20)]
    if acks != 0:
        assert [pending.result() for pending in sent] == [(0, n) for n in range(20)]


def test_idempotent_producer_keeps_order_over_partitions(client: Client, topic: str) -> None:
    client.create_topic(topic, 3)
    producer = client.producer(idempotent=True)
    sent = [producer.send(topic, b"%d" % n, partition=n % 3) for n in range(3000)]
    producer.flush()
    assert [pending.result() for pending in sent] == [(n % 3, n // 3) for n in range(3000)]
    consumer = client.consumer()
    consumer.assign([(topic, index) for index in range(3)])
    records = read(consumer, 3000)
    for index in range(3):
        values = [int(record.value or b"") for record in records if record.partition == index]
        assert values == list(range(index, 3000, 3))


def test_two_idempotent_producers_are_independent(client: Client, topic: str) -> None:
    client.create_topic(topic)
    producers = [client.producer(idempotent=True) for _ in range(2)]
    for n in range(40):
        producers[n % 2].send(topic, b"%d" % n).result()
    consumer = client.consumer()
    consumer.assign([(topic, 0)])
    assert [record.value for record in read(consumer, 40)] == [b"%d" % n for n in range(40)]


def test_a_large_record_goes_where_it_is_allowed(client: Client, topic: str) -> None:
    client.create_topic(topic, configs={"max.message.bytes": "4000000"})
    value = bytes(range(256)) * 12_000
    producer = client.producer(max_request_bytes=8_000_000)
    assert producer.send(topic, value).result().offset == 0
    consumer = client.consumer()
    consumer.assign([(topic, 0)])
    assert read(consumer, 1)[0].value == value


def test_a_record_beyond_max_message_bytes_is_refused(client: Client, topic: str) -> None:
    client.create_topic(topic, configs={"max.message.bytes": "20000"})
    producer = client.producer(max_request_bytes=8_000_000)
    with pytest.raises(Refused) as refused:
        producer.send(topic, b"x" * 30_000).result()
    assert refused.value.code == MESSAGE_TOO_LARGE
    assert producer.send(topic, b"x" * 10_000).result().offset == 0


@pytest.mark.parametrize("compression", ["none", "gzip", "zstd"])
def test_log_append_time_replaces_the_producers_own(client: Client, topic: str, compression: str) -> None:
    client.create_topic(topic, configs={"message.timestamp.type": "LogAppendTime"})
    before = int(time.time() * 1000)
    producer = client.producer(compression=compression, linger_ms=20)
    for n in range(3):
        producer.send(topic, b"%d" % n, timestamp=NOON + n)
    producer.flush()
    consumer = client.consumer()
    consumer.assign([(topic, 0)])
    records = read(consumer, 3)
    assert [record.value for record in records] == [b"0", b"1", b"2"]
    assert {record.timestamp_type for record in records} == {LOG_APPEND_TIME}
    assert all(before - 1000 <= record.timestamp <= int(time.time() * 1000) + 1000 for record in records)


@pytest.mark.parametrize("compression", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
def test_a_topic_with_a_codec_of_its_own(client: Client, topic: str, compression: str) -> None:
    client.create_topic(topic, configs={"compression.type": compression})
    producer = client.producer(compression="gzip", linger_ms=20)
    for n, (key, value, headers) in enumerate(ODDITIES):
        producer.send(topic, value, key=key, headers=headers, timestamp=NOON + n)
    producer.flush()
    consumer = client.consumer()
    consumer.assign([(topic, 0)])
    records = read(consumer, len(ODDITIES))
    assert [(record.key, record.value, record.headers) for record in records] == ODDITIES
    assert [record.timestamp for record in records] == [NOON + n for n in range(len(ODDITIES))]


def test_a_topic_is_created_by_its_first_record(client: Client, topic: str) -> None:
    producer = client.producer()
    assert producer.send(topic, b"first").result() == (0, 0)
    assert topic in client.topics()
    consumer = client.consumer()
    consumer.assign([(topic, 0)])
    assert read(consumer, 1)[0].value == b"first"

"""Conversion of message sets to record batches, with the results of Apache Kafka 3.9.1.

``compat_tests/apache_kafka/old_versions.py`` plays the same cases and more on both brokers.
"""

import zlib

import pytest

from barnabas.errors import (
    CorruptMessage,
    InvalidRecord,
    InvalidTimestamp,
    MessageTooLarge,
    RecordListTooLarge,
    UnknownServerError,
)
from barnabas.records.batch import Compression
from barnabas.records.builder import build_batch
from barnabas.records.message_set import build_message, build_messages, build_wrapper
from barnabas.records.record import Record, records_of
from barnabas.records.up_conversion import validate_message_set
from barnabas.records.validation import ProducePolicy

NOW = 1_700_000_000_000
RECORDS = [Record(0, NOW - 5, b"k", b"a"), Record(1, NOW - 9, None, b"b"), Record(2, NOW, b"gone", None)]
COMPACTED = ProducePolicy(compacted=True)
APPEND_TIME = ProducePolicy(log_append_time=True)


def plain(magic, records=RECORDS):
    return b"".join(build_messages(records, magic))


def up(data, policy=None):
    return validate_message_set(bytearray(data), policy or ProducePolicy(), NOW)


def seen(batch):
    batch.check_crc()
    return [(record.offset, record.timestamp, record.key, record.value) for record in records_of(batch)]


def expected(magic):
    return [(each.offset, each.timestamp if magic else -1, each.key, each.value) for each in RECORDS]


@pytest.mark.parametrize("magic", [0, 1])
def test_plain_messages_are_one_batch(magic):
    batch = up(plain(magic))
    assert seen(batch) == expected(magic)
    assert (batch.count, batch.last_offset_delta, batch.compression) == (3, 2, Compression.NONE)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (-1, -1, -1)
    assert batch.max_timestamp == (NOW if magic else -1)
    assert not batch.is_log_append_time


@pytest.mark.parametrize("codec", [Compression.GZIP, Compression.SNAPPY, Compression.LZ4])
@pytest.mark.parametrize("magic", [0, 1])
def test_a_wrapper_keeps_its_codec(magic, codec):
    batch = up(build_wrapper(RECORDS, magic, codec))
    assert batch.compression is codec
    assert seen(batch) == expected(magic)


@pytest.mark.parametrize("codec", list(Compression))
def test_unless_the_topic_has_another(codec):
    policy = ProducePolicy(compression=codec)
    for data in (plain(1), build_wrapper(RECORDS, 1, Compression.GZIP)):
        batch = up(data, policy)
        assert batch.compression is codec
        assert seen(batch) == expected(1)


@pytest.mark.parametrize("magic", [0, 1])
def test_the_logs_time(magic):
    for data in (plain(magic), build_wrapper(RECORDS, magic, Compression.GZIP)):
        batch = up(data, APPEND_TIME)
        assert batch.is_log_append_time and batch.max_timestamp == NOW
        assert {record.timestamp for record in records_of(batch)} == {NOW}


def test_offsets_are_the_brokers():
    records = [Record(70, NOW, None, b"a"), Record(3, NOW, None, b"b")]
    assert [each[0] for each in seen(up(plain(0, records)))] == [0, 1]


def test_what_is_cut_off_is_left_out():
    assert up(plain(1)[:-1]).count == 2
    for data in (b"", b"\0" * 11, plain(1, RECORDS[:1])[:-1]):
        assert up(data) is None


def test_a_record_batch_is_taken_too():
    data = build_batch([(b"k", b"v", NOW)])
    batch = validate_message_set(data, ProducePolicy(), NOW)
    assert bytes(batch.buffer) == data
    with pytest.raises(InvalidRecord):
        up(data + data)


def wrapped(inside, magic=1, **fields):
    return build_message(magic, 0, NOW, None, zlib.compress(inside, wbits=31), **{"attributes": 1} | fields)


def broken(data):
    return data[:-1] + bytes([data[-1] ^ 1])


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (broken(plain(1)), CorruptMessage),
        (wrapped(broken(plain(1))), CorruptMessage),
        (plain(1)[:16] + b"\3" + plain(1)[17:], CorruptMessage),
        (wrapped(plain(1)) + plain(1), InvalidRecord),
        (plain(1) + wrapped(plain(1)), InvalidRecord),
        (wrapped(plain(1)) * 2, InvalidRecord),
        (plain(0) + plain(1), InvalidRecord),
        (plain(0) + build_batch([(None, b"v", NOW)]), InvalidRecord),
        (build_batch([(None, b"v", NOW)]) + plain(0), InvalidRecord),
        (wrapped(plain(0)), InvalidRecord),
        (wrapped(wrapped(plain(1))), InvalidRecord),
        (wrapped(b""), InvalidRecord),
        (build_message(1, 0, NOW, None, b"abcdefgh", 1), UnknownServerError),
        (build_message(1, 0, NOW, None, b"abcdefgh", 4), InvalidRecord),
        (build_message(1, 0, NOW, None, b"abcdefgh", 7), UnknownServerError),
        (build_message(1, 0, NOW + 3_600_001, None, b"a"), InvalidTimestamp),
        (build_message(1, 0, -2, None, b"a"), InvalidTimestamp),
        (wrapped(build_message(1, 0, -2, None, b"a")), InvalidTimestamp),
        (build_message(1, 0, -1, None, b"a", 8), InvalidTimestamp),
    ],
)
def test_refused(data, error):
    with pytest.raises(error) as caught:
        up(data)
    assert type(caught.value) is error


def test_the_client_may_not_say_the_logs_time():
    for data in (build_message(1, 0, NOW, None, b"a", 8), wrapped(plain(1), attributes=9)):
        with pytest.raises(InvalidTimestamp):
            up(data, APPEND_TIME)
        assert up(data).count  # with a timestamp of its own it is like the client's


def test_those_at_fault_are_named():
    for data in (plain(1), build_wrapper(RECORDS, 1, Compression.GZIP)):
        with pytest.raises(InvalidRecord) as caught:
            up(data, COMPACTED)
        assert [index for index, _ in caught.value.record_errors] == [1]
    with pytest.raises(InvalidTimestamp) as late:
        up(plain(1), ProducePolicy(timestamp_before_max_ms=5))
    assert [index for index, _ in late.value.record_errors] == [1]


def test_sizes():
    with pytest.raises(MessageTooLarge):
        up(plain(1, [Record(0, NOW, None, bytes(500))]), ProducePolicy(max_message_bytes=500))
    six = [Record(n, NOW, None, bytes(100)) for n in range(6)]
    with pytest.raises(MessageTooLarge):
        up(plain(1, six), ProducePolicy(max_message_bytes=500))
    with pytest.raises(RecordListTooLarge):
        up(plain(1, six), ProducePolicy(segment_bytes=500))
    bomb = wrapped(build_message(1, 0, NOW, None, bytes(1 << 20)))
    with pytest.raises(MessageTooLarge):
        up(bomb, ProducePolicy(max_message_bytes=2000))

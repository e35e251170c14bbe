"""Message sets of formats v0 and v1: round trips, those of other libraries, and invalid ones."""

import struct
import zlib

import pytest
from aiokafka.record.legacy_records import LegacyRecordBatch as TheirBatch
from aiokafka.record.legacy_records import LegacyRecordBatchBuilder as TheirBuilder
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.legacy_records import LegacyRecordBatch, LegacyRecordBatchBuilder

from barnabas.errors import CorruptMessage, InvalidRecord, MessageTooLarge, UnsupportedCompressionType
from barnabas.records.batch import Compression
from barnabas.records.message_set import (
    Unreadable,
    build_message,
    build_messages,
    build_wrapper,
    messages_in,
    records_of_message,
    unwrapped,
)
from barnabas.records.record import Record

CODECS = [Compression.GZIP, Compression.SNAPPY, Compression.LZ4]
MAGICS = [0, 1]
T0 = 1_600_000_000_000

CONTENTS = st.lists(
    st.tuples(st.none() | st.binary(max_size=50), st.none() | st.binary(max_size=300), st.integers(0, 2**48)),
    min_size=1,
    max_size=8,
)


def as_records(contents, first=0, *, magic=1):
    return [
        Record(first + at, timestamp if magic else -1, key, value)
        for at, (key, value, timestamp) in enumerate(contents)
    ]


def read(data):
    return [record for message in messages_in(data) for record in records_of_message(message)]


@given(CONTENTS, st.sampled_from(MAGICS), st.sampled_from([Compression.NONE, *CODECS]), st.integers(0, 2**60))
def test_round_trip(contents, magic, codec, first) -> None:
    records = as_records(contents, first, magic=magic)
    if codec:
        data = build_wrapper(records, magic, codec)
        (wrapper,) = messages_in(data)
        assert (wrapper.offset, wrapper.magic, wrapper.codec) == (records[-1].offset, magic, codec)
        assert wrapper.timestamp == max(record.timestamp for record in records)
        inside = [message.offset for message in unwrapped(wrapper)]
        assert inside == [record.offset - (first if magic else 0) for record in records]
    else:
        data = b"".join(build_messages(records, magic))
    assert all(message.is_intact for message in messages_in(data))
    assert sum(message.size_in_bytes for message in messages_in(data)) == len(data)
    if codec and magic and len(records) > 1 and not first:
        assert [record.value for record in read(data)] == [record.value for record in records]
    assert read(data) == records


@pytest.mark.parametrize(
    ("builder", "reader"),
    [(LegacyRecordBatchBuilder, LegacyRecordBatch), (TheirBuilder, TheirBatch)],
    ids=["kafka-python", "aiokafka"],
)
@given(contents=CONTENTS, magic=st.sampled_from(MAGICS), codec=st.sampled_from([Compression.NONE, *CODECS]))
def test_other_libraries_both_ways(builder, reader, contents, magic, codec) -> None:
    if codec is Compression.LZ4 and not magic:
        return  # they refuse it, or need another library for it
    theirs = builder(magic, int(codec), 1 << 30)
    for at, (key, value, timestamp) in enumerate(contents):
        theirs.append(at, timestamp=timestamp, key=key, value=value)
    records = as_records(contents, magic=magic)
    assert read(bytes(theirs.build())) == records

    ours = [build_wrapper(records, magic, codec)] if codec else build_messages(records, magic)
    found = [record for message in ours for record in reader(bytearray(message), magic)]
    assert [(each.offset, each.key, each.value) for each in found] == [each[:1] + each[2:4] for each in records]
    if magic:
        assert [each.timestamp for each in found] == [each.timestamp for each in records]


def test_the_layout() -> None:
    content = struct.pack(">BBqi1si5s", 1, 8, T0, 1, b"k", 5, b"value")
    built = build_message(1, 7, T0, b"k", b"value", 8)
    assert built == struct.pack(">qiI", 7, len(content) + 4, zlib.crc32(content)) + content
    content = struct.pack(">BBii", 0, 0, -1, -1)
    assert build_message(0, 7, T0, None, None) == struct.pack(">qiI", 7, 14, zlib.crc32(content)) + content


def test_the_logs_time_is_every_records() -> None:
    records = [Record(5, T0, None, b"a"), Record(6, T0, None, b"b")]
    (wrapper,) = messages_in(build_wrapper(records, 1, Compression.GZIP, log_append_time=True))
    assert wrapper.is_log_append_time
    assert [record.timestamp for record in records_of_message(wrapper)] == [T0, T0]
    inside = build_messages([record._replace(offset=0, timestamp=1) for record in records], 1)
    from barnabas.records.compression import compress

    packed = compress(Compression.GZIP, b"".join(inside))
    (wrapper,) = messages_in(build_message(1, 0, T0, None, packed, 8 | 1))
    assert [record.timestamp for record in records_of_message(wrapper)] == [T0, T0]


def test_what_is_cut_off_is_left_out() -> None:
    data = b"".join(build_messages(as_records([(None, b"a", 1), (None, b"b", 2)]), 1))
    for size in range(len(data)):
        assert len(list(messages_in(data[:size]))) == (size >= len(data) // 2)


@pytest.mark.parametrize("length", [-(2**31), -1, 0, 13])
def test_a_length_that_no_message_has(length) -> None:
    with pytest.raises(CorruptMessage):
        list(messages_in(struct.pack(">qi", 0, length) + bytes(50)))


def with_content(magic, attributes, content):
    covered = bytes([magic, attributes]) + content
    return next(messages_in(struct.pack(">qiI", 0, len(covered) + 4, zlib.crc32(covered)) + covered))


@pytest.mark.parametrize(
    ("magic", "content"),
    [
        (1, bytes(8)),
        (1, bytes(15)),
        (0, struct.pack(">ii", 2**31 - 1, 0)),
        (0, struct.pack(">ii", 0, 2**31 - 1)),
        (0, struct.pack(">ii", 1, 0)),
        (0, struct.pack(">ii", 5, 0)),
        (1, struct.pack(">qii", T0, 4, -1)),
        (1, struct.pack(">qii", T0, 0, 1)),
    ],
)
def test_lengths_that_lie(magic, content) -> None:
    with pytest.raises(Unreadable):
        with_content(magic, 0, content).key_and_value()


@pytest.mark.parametrize(
    ("wrapper", "error"),
    [
        (build_message(0, 0, -1, None, b"not packed at all", 1), Unreadable),
        (build_message(0, 0, -1, None, b"not packed at all", 2), Unreadable),
        (build_message(0, 0, -1, None, b"not packed at all", 3), Unreadable),
        (build_message(1, 0, -1, None, b"not packed at all", 3), Unreadable),
        (build_message(0, 0, -1, None, b"not packed at all", 4), InvalidRecord),
        (build_message(0, 0, -1, None, b"not packed at all", 5), Unreadable),
        (build_message(0, 0, -1, None, None, 1), InvalidRecord),
        (build_message(0, 0, -1, None, zlib.compress(b"", wbits=31), 1), InvalidRecord),
        (build_message(0, 0, -1, None, zlib.compress(bytes(20), wbits=31), 1), CorruptMessage),
        (build_message(0, 0, -1, None, zlib.compress(bytes(300_000_000), 1, wbits=31), 1), MessageTooLarge),
    ],
)
def test_wrappers_that_are_none(wrapper, error) -> None:
    (message,) = messages_in(wrapper)
    with pytest.raises(error) as caught:
        unwrapped(message, 1 << 20)
    assert type(caught.value) is error


def test_a_wrapper_whose_offset_is_below_those_inside() -> None:
    wrapper = bytearray(build_wrapper(as_records([(None, b"a", 1), (None, b"b", 2)], 10), 1, Compression.GZIP))
    wrapper[7] = 0
    assert [record.offset for record in read(bytes(wrapper[:8]) + bytes(wrapper[8:]))] == [
        0,
        1,
    ]  # as librdkafka did once
    inside = build_messages([Record(3, T0, None, b"a"), Record(9, T0, None, b"b")], 1)
    packed = zlib.compress(b"".join(inside), wbits=31)
    with pytest.raises(InvalidRecord):
        read(build_message(1, 8, T0, None, packed, 1))
    assert [record.offset for record in read(build_message(1, 29, T0, None, packed, 1))] == [23, 29]


def test_zstd_is_not_written() -> None:
    with pytest.raises(UnsupportedCompressionType):
        build_wrapper([Record(0, T0, None, b"a")], 1, Compression.ZSTD)


@given(st.binary(max_size=200))
def test_any_bytes(data) -> None:
    try:
        for message in messages_in(data):
            records_of_message(message, 1 << 16)
    except (CorruptMessage, InvalidRecord, MessageTooLarge):
        pass

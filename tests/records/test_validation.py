"""Valid and invalid batches of producers: results as of Apache Kafka 4.3.1, except where noted."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.config.topic import TopicConfig
from barnabas.errors import (
    NONE,
    CorruptMessage,
    InvalidRecord,
    InvalidTimestamp,
    KafkaError,
    MessageTooLarge,
    RecordListTooLarge,
    UnknownServerError,
    UnsupportedCompressionType,
)
from barnabas.records.batch import HEADER, HEADER_SIZE, Compression, RecordBatch
from barnabas.records.builder import build_batch, sign
from barnabas.records.compression import compress
from barnabas.records.record import records_of
from barnabas.records.validation import NAMED_ERRORS, SMALL_COUNT, NotOneBatch, ProducePolicy, validate_produced
from barnabas.records.varint import write_varint

NOW = 1_700_000_000_000
LATE = NOW + 7_200_000
PLAIN = ProducePolicy()


def record(delta=0, offset=0, *, key=b"k", value=b"v", attributes=0, headers=0, rest=b"", size=None) -> bytes:
    out = bytearray([attributes])
    write_varint(delta, out)
    write_varint(offset, out)
    for part in (key, value):
        write_varint(-1 if part is None else len(part), out)
        out += part or b""
    write_varint(headers, out)
    out += rest
    length = bytearray()
    write_varint(len(out) if size is None else size, length)
    return bytes(length + out)


TWO = record() + record(offset=1)


def batch(
    body=TWO, count=2, *, last=None, codec=0, attributes=0, base=NOW, latest=NOW,
    producer=(-1, -1, -1), offset=0, magic=2, packed=False,
) -> bytearray:  # fmt: skip
    """Returns a batch with any values of its fields; length and CRC are right."""
    if codec and not packed:
        body = compress(Compression(codec), body)
    out = bytearray(HEADER_SIZE) + body
    last = count - 1 if last is None else last
    HEADER.pack_into(
        out, 0, offset, len(out) - 12, -1, magic, 0, attributes | codec, last, base, latest, *producer, count
    )
    sign(out)
    return out


def poked(at: int, layout: str, value: int, *, resign: bool = False, data: bytes | None = None) -> bytearray:
    out = bytearray(batch() if data is None else data)
    struct.pack_into(layout, out, at, value)
    if resign:
        sign(out)
    return out


def code_of(data: bytes, policy: ProducePolicy = PLAIN, **options: bool) -> int:
    try:
        validate_produced(bytearray(data), policy, NOW, **options).check_crc()
    except KafkaError as error:
        return error.code
    return NONE


GOOD = bytes(batch())
NOT_ONE = NotOneBatch

FRAMES = {
    "nothing": (b"", NOT_ONE),
    "three bytes": (b"abc", NOT_ONE),
    "fifteen bytes": (struct.pack(">qi", 0, 50) + b"abc", NOT_ONE),
    "twelve bytes with a bad length": (struct.pack(">qi", 0, 5), CorruptMessage),
    "two batches": (GOOD + GOOD, NOT_ONE),
    "a batch and a piece": (GOOD + GOOD[:40], None),
    "three stray bytes": (GOOD + b"abc", None),
    "sixteen stray bytes": (GOOD + struct.pack(">qi", 0, 50) + bytes(4), None),
    "twelve zeros": (GOOD + bytes(12), CorruptMessage),
    "seventeen zeros": (GOOD + bytes(17), CorruptMessage),
    "a stray magic of 3": (GOOD + struct.pack(">qiib", 0, 50, 0, 3), CorruptMessage),
    "a piece behind that would be a batch": (GOOD + struct.pack(">qiib", 0, 50, 0, 2), None),
    "cut off": (GOOD[:-1], NOT_ONE),
    "a header cut off": (GOOD[:60], NOT_ONE),
    "twenty bytes": (GOOD[:20], NOT_ONE),
    "magic 0": (poked(16, ">b", 0), NOT_ONE),
    "magic 1": (poked(16, ">b", 1), NOT_ONE),
    "magic 3": (poked(16, ">b", 3), CorruptMessage),
    "magic -1": (poked(16, ">b", -1), CorruptMessage),
    "length -1": (poked(8, ">i", -1), CorruptMessage),
    "length 0": (poked(8, ">i", 0), CorruptMessage),
    "length 13": (poked(8, ">i", 13), CorruptMessage),
    "length 48": (poked(8, ">i", 48), CorruptMessage),
    "length 49": (poked(8, ">i", 49), CorruptMessage),
    "one byte too long": (poked(8, ">i", len(GOOD) - 11), NOT_ONE),
    "one byte too short": (poked(8, ">i", len(GOOD) - 13), CorruptMessage),
}

HEADERS = {
    "a good one": (batch(), None),
    "a base offset": (poked(0, ">q", 5), InvalidRecord),
    "a leader epoch": (poked(12, ">i", 7), None),
    "a wrong CRC": (poked(17, ">I", 1), CorruptMessage),
    "a flipped byte": (poked(70, ">b", 1), CorruptMessage),
    "a base offset before a wrong CRC": (poked(17, ">I", 1, data=batch(offset=5)), InvalidRecord),
    "no records": (batch(b"", 0), InvalidRecord),
    "no records, last delta 0": (batch(b"", 0, last=0), InvalidRecord),
    "records, of which none are counted": (batch(count=0), InvalidRecord),
    "a count below zero": (batch(count=-1, last=0), InvalidRecord),
    "a header that counts two": (batch(b""), InvalidRecord),
    "three counted": (batch(count=3), InvalidRecord),
    "three counted, last delta 1": (batch(count=3, last=1), InvalidRecord),
    "one counted": (batch(count=1), InvalidRecord),
    "one counted, last delta 1": (batch(count=1, last=1), InvalidRecord),
    "last delta 2": (batch(last=2), InvalidRecord),
    "last delta -1": (batch(last=-1), InvalidRecord),
    "the highest last delta": (batch(last=2**31 - 1), InvalidRecord),
    "the highest count": (batch(count=2**31 - 1), InvalidRecord),
    "a hole": (batch(record() + record(offset=2), last=2), InvalidRecord),
    "codec 5": (batch(codec=5, packed=True), UnknownServerError),
    "codec 7": (batch(codec=7, packed=True), UnknownServerError),
    "codec 5, a control batch": (batch(codec=5, packed=True, attributes=0x20), UnknownServerError),
    "codec 5, a wrong CRC": (poked(17, ">I", 1, data=batch(codec=5, packed=True)), CorruptMessage),
    "a control batch": (batch(attributes=0x20), InvalidRecord),
    "a bit without a meaning": (batch(attributes=0x80), None),
    "the highest bit": (poked(21, ">h", -32768, resign=True), None),
    "a delete horizon": (batch(attributes=0x40), None),
    "a producer without a sequence": (batch(producer=(9, 0, -1)), InvalidRecord),
    "a producer with sequence -5": (batch(producer=(9, 0, -5)), InvalidRecord),
    "a producer with epoch -1": (batch(producer=(9, -1, 0)), None),
    "a producer id below zero": (batch(producer=(-5, 0, -1)), None),
    "a sequence without a producer": (batch(producer=(-1, -1, 5)), None),
    "an epoch without a producer": (batch(producer=(-1, 3, -1)), None),
}

RECORDS = {
    "deltas 0, 2": (batch(record() + record(offset=2)), None),
    "deltas 1, 0": (batch(record(offset=1) + record()), None),
    "deltas 5, 5": (batch(record(offset=5) * 2), None),
    "deltas -1, 0": (batch(record(offset=-1) + record()), None),
    "a byte left over": (batch(TWO + b"\0"), InvalidRecord),
    "eight bytes left over": (batch(TWO + b"abcdefgh"), InvalidRecord),
    "a size too big": (batch(record(size=100), 1), InvalidRecord),
    "a size too small": (batch(record(size=3), 1), InvalidRecord),
    "size -1": (batch(record(size=-1), 1), InvalidRecord),
    "size 0": (batch(record(size=0), 1), InvalidRecord),
    "headers -1": (batch(record(headers=-1), 1), InvalidRecord),
    "a hundred headers that are not there": (batch(record(headers=100), 1), InvalidRecord),
    "a null header key": (batch(record(headers=1, rest=b"\x01\0"), 1), InvalidRecord),
    "a null header value": (batch(record(headers=1, rest=b"\x02a\x01"), 1), None),
    "a header key that is not UTF-8": (batch(record(headers=1, rest=b"\x04\xff\xfe\0"), 1), None),
    "attributes of a record": (batch(record(attributes=0x55), 1), None),
    "a key size of -5": (batch(b"\x0c\0\0\x09\x01\0\0", 1), None),
    "a varint without an end": (batch(b"\x18\0" + b"\xff" * 11, 1), InvalidRecord),
    "no timestamps": (batch(base=-1, latest=-1), None),
    "timestamps below zero": (batch(base=-100, latest=-100), None),
    "too far ahead": (batch(base=LATE, latest=LATE), InvalidTimestamp),
    "one too far ahead": (batch(record() + record(LATE - NOW, 1)), InvalidTimestamp),
    "one too far ahead, gzip": (batch(record() + record(LATE - NOW, 1), codec=1), InvalidTimestamp),
    "LogAppendTime, too far ahead": (batch(attributes=8, latest=LATE), InvalidTimestamp),
    "LogAppendTime without a time": (batch(attributes=8, latest=-1), InvalidTimestamp),
    "LogAppendTime without a time, gzip": (batch(attributes=8, latest=-1, codec=1), InvalidTimestamp),
    "a timestamp beyond 64 bits": (
        batch(record(-(2**63)), 1, base=-5, latest=-5),
        InvalidRecord,
    ),  # Apache Kafka: wraps
    "a size that a compressed record does not have": (
        batch(record(size=3), 1, codec=1),
        InvalidRecord,
    ),  # Apache Kafka: NONE
}

PACKED = {
    "good": (TWO, 2, False, None),
    "deltas 0, 2": (record() + record(offset=2), 2, False, UnknownServerError),
    "deltas 1, 0": (record(offset=1) + record(), 2, False, UnknownServerError),
    "bytes left over": (TWO + b"a", 2, False, InvalidRecord),
    "three counted": (TWO, 3, False, InvalidRecord),
    "one counted": (TWO, 1, False, InvalidRecord),
    "no records": (b"", 2, False, InvalidRecord),
    "none counted": (b"", 0, False, InvalidRecord),
    "rubbish": (b"junkjunkjunk" * 4, 2, True, UnknownServerError),
}


def expect(data: bytes, expected: type[KafkaError] | None) -> None:
    assert code_of(data) == (NONE if expected is None else expected.code)
    if expected is NOT_ONE:
        with pytest.raises(NotOneBatch):
            validate_produced(bytearray(data), PLAIN, NOW)


@pytest.mark.parametrize("case", FRAMES)
def test_frames(case) -> None:
    expect(*FRAMES[case])


@pytest.mark.parametrize("case", HEADERS)
def test_headers(case) -> None:
    expect(*HEADERS[case])


@pytest.mark.parametrize("case", RECORDS)
def test_records(case) -> None:
    expect(*RECORDS[case])


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
@pytest.mark.parametrize("case", PACKED)
def test_compressed(case, codec) -> None:
    body, count, packed, expected = PACKED[case]
    expect(batch(body, count, codec=codec, packed=packed), expected)


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_a_body_that_is_cut_off(codec) -> None:
    body = compress(Compression(codec), TWO)
    expect(batch(body[:-2], codec=codec, packed=True), UnknownServerError)


def test_zstd_is_for_newer_clients() -> None:
    assert code_of(batch(codec=4), allows_zstd=False) == UnsupportedCompressionType.code
    assert code_of(batch(codec=4)) == NONE
    assert code_of(batch(codec=5, packed=True), allows_zstd=False) == UnknownServerError.code
    assert code_of(batch(codec=3), allows_zstd=False) == NONE
    assert code_of(batch(), ProducePolicy(compression=Compression.ZSTD), allows_zstd=False) == NONE


def test_what_is_taken_is_the_buffer_itself() -> None:
    buffer = bytearray(GOOD)
    taken = validate_produced(memoryview(buffer), PLAIN, NOW)
    assert taken.buffer.obj is buffer
    assert buffer == GOOD


# ---------------------------------------------------------------- sizes


@pytest.mark.parametrize(("limit", "expected"), [(len(GOOD), NONE), (len(GOOD) - 1, MessageTooLarge.code)])
def test_max_message_bytes(limit, expected) -> None:
    assert code_of(GOOD, ProducePolicy(max_message_bytes=limit)) == expected
    assert code_of(GOOD + b"stray", ProducePolicy(max_message_bytes=limit)) == expected


def test_too_large_comes_after_the_base_offset_and_before_the_crc() -> None:
    policy = ProducePolicy(max_message_bytes=70)
    assert code_of(poked(17, ">I", 1), policy) == MessageTooLarge.code
    assert code_of(batch(offset=1), policy) == InvalidRecord.code


def test_a_batch_that_is_larger_than_a_segment() -> None:
    assert code_of(GOOD, ProducePolicy(segment_bytes=len(GOOD))) == NONE
    assert code_of(GOOD, ProducePolicy(segment_bytes=len(GOOD) - 1)) == RecordListTooLarge.code


# ---------------------------------------------------------------- time


@pytest.mark.parametrize("codec", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("times", [1, 40])
def test_log_append_time(codec, times) -> None:
    body = b"".join(record(10**10 + at, at) for at in range(times))
    data = batch(body, times, codec=codec)
    taken = validate_produced(data, ProducePolicy(log_append_time=True), NOW + 9)
    taken.check_crc()
    assert (taken.is_log_append_time, taken.base_timestamp, taken.max_timestamp) == (True, NOW, NOW + 9)
    assert {found.timestamp for found in records_of(RecordBatch.parse(data))} == {NOW + 9}


@pytest.mark.parametrize("times", [2, 40])
def test_log_append_time_is_not_the_producers_to_set(times) -> None:
    body = b"".join(record(offset=at) for at in range(times))
    with pytest.raises(InvalidTimestamp) as refused:
        validate_produced(batch(body, times, attributes=8), ProducePolicy(log_append_time=True), NOW)
    assert [index for index, _ in refused.value.record_errors] == list(range(times))


@pytest.mark.parametrize("times", [2, 40])
def test_the_producers_log_append_time_becomes_create_time(times) -> None:
    body = b"".join(record(offset=at) for at in range(times))
    taken = validate_produced(batch(body, times, attributes=8, latest=NOW + 77), PLAIN, NOW)
    taken.check_crc()
    assert (taken.attributes, taken.max_timestamp) == (0, NOW + 77)


@pytest.mark.parametrize(
    ("base", "deltas", "claimed", "true"),
    [(NOW, [0, 50], 5, NOW + 50), (NOW, [9, 3], NOW + 10**12, NOW + 9), (-3, [5], -100, 2), (-100, [0], -100, -1)],
)
def test_a_wrong_max_timestamp_is_put_right(base, deltas, claimed, true) -> None:
    body = b"".join(record(delta, at) for at, delta in enumerate(deltas))
    for codec in (0, 1):
        taken = validate_produced(batch(body, len(deltas), base=base, latest=claimed, codec=codec), PLAIN, NOW)
        taken.check_crc()
        assert taken.max_timestamp == true


def test_the_records_out_of_bounds_are_named() -> None:
    body = b"".join(record(LATE - NOW if at % 2 else 0, at) for at in range(50))
    for count, data in ((50, batch(body, 50, latest=LATE)), (2, batch(record() + record(LATE - NOW, 1)))):
        with pytest.raises(InvalidTimestamp) as refused:
            validate_produced(data, PLAIN, NOW)
        assert [index for index, _ in refused.value.record_errors] == list(range(1, count, 2))
        assert str(LATE) in refused.value.record_errors[0][1]


def test_bounds_are_inclusive_and_no_timestamp_is_within_them() -> None:
    policy = ProducePolicy(timestamp_before_max_ms=1000, timestamp_after_max_ms=500)
    for timestamp, expected in ((-1000, NONE), (-1001, 32), (500, NONE), (501, 32)):
        body = record(timestamp)
        assert code_of(batch(body, 1, latest=NOW + timestamp), policy) == expected
    assert code_of(batch(base=-1, latest=-1), policy) == NONE
    forty = b"".join(record(offset=at) for at in range(40))
    assert code_of(batch(forty, 40, base=-1, latest=-1), policy) == NONE
    assert code_of(batch(forty, 40, base=NOW - 1001), policy) == InvalidTimestamp.code


def test_not_too_many_records_are_named() -> None:
    body = b"".join(record(offset=at) for at in range(NAMED_ERRORS + 5))
    with pytest.raises(InvalidTimestamp) as refused:
        validate_produced(batch(body, NAMED_ERRORS + 5, base=LATE, latest=LATE), PLAIN, NOW)
    assert len(refused.value.record_errors) == NAMED_ERRORS


# ---------------------------------------------------------------- compacted topics


@pytest.mark.parametrize("codec", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("times", [3, 60])
def test_a_compacted_topic_wants_keys(codec, times) -> None:
    policy = ProducePolicy(compacted=True)
    keyed = b"".join(record(offset=at) for at in range(times))
    assert code_of(batch(keyed, times, codec=codec), policy) == NONE
    some = b"".join(record(offset=at, key=None if at % 2 == 0 else b"k") for at in range(times))
    with pytest.raises(InvalidRecord) as refused:
        validate_produced(batch(some, times, codec=codec), policy, NOW)
    assert [index for index, _ in refused.value.record_errors] == list(range(0, times, 2))


def test_a_bad_timestamp_outweighs_a_missing_key() -> None:
    data = batch(record(key=None) + record(LATE - NOW, 1))
    with pytest.raises(InvalidTimestamp) as refused:
        validate_produced(data, ProducePolicy(compacted=True), NOW)
    assert [index for index, _ in refused.value.record_errors] == [0, 1]


# ---------------------------------------------------------------- another codec


@pytest.mark.parametrize("target", Compression)
@pytest.mark.parametrize("source", Compression)
@pytest.mark.parametrize("times", [2, 60])
def test_the_topics_codec(source, target, times) -> None:
    new = [(b"key", b"value" * at, NOW + at, [("h", b"x")]) for at in range(times)]
    data = build_batch(new, compression=source, producer_id=5, producer_epoch=1, base_sequence=7, is_transactional=True)
    taken = validate_produced(data, ProducePolicy(compression=target), NOW)
    taken.check_crc()
    assert (taken.compression, taken.count, taken.max_timestamp) == (target, times, NOW + times - 1)
    assert (taken.producer_id, taken.producer_epoch, taken.base_sequence, taken.is_transactional) == (5, 1, 7, True)
    assert list(records_of(taken)) == list(records_of(RecordBatch.parse(build_batch(new))))
    assert (taken.buffer.obj is data) == (source == target)


def test_recompression_numbers_the_records_anew() -> None:
    data = batch(record(offset=5, value=b"a") + record(60, offset=5, value=b"b"))
    taken = validate_produced(data, ProducePolicy(compression=Compression.GZIP), NOW)
    found = [(kept.offset, kept.timestamp - NOW, kept.value) for kept in records_of(taken)]
    assert found == [(0, 0, b"a"), (1, 60, b"b")]


def test_recompression_starts_at_the_first_timestamp() -> None:
    data = batch(record(3, value=b"a") + record(0, 1, value=b"b"), latest=NOW + 3)
    taken = validate_produced(data, ProducePolicy(compression=Compression.ZSTD), NOW)
    assert (taken.base_timestamp, taken.max_timestamp) == (NOW + 3, NOW + 3)
    assert [kept.timestamp - NOW for kept in records_of(taken)] == [3, 0]


def test_recompression_and_time() -> None:
    policy = ProducePolicy(compression=Compression.LZ4)
    taken = validate_produced(batch(attributes=0xC8, latest=NOW + 77), policy, NOW)
    assert (taken.attributes, taken.max_timestamp) == (3, NOW + 77)
    assert [kept.timestamp for kept in records_of(taken)] == [NOW + 77] * 2
    taken = validate_produced(batch(attributes=0xC0, latest=5), policy, NOW)
    assert (taken.attributes, taken.max_timestamp) == (3, NOW)
    taken = validate_produced(batch(), policy._replace(log_append_time=True), NOW + 5)
    assert (taken.attributes, taken.max_timestamp) == (3 | 8, NOW + 5)
    taken.check_crc()


def test_a_batch_may_grow_too_large() -> None:
    data = batch(record(value=bytes(100_000)), 1, codec=1)
    assert code_of(data, ProducePolicy(max_message_bytes=5000)) == NONE
    policy = ProducePolicy(max_message_bytes=50_000, compression=Compression.NONE)
    assert code_of(data, policy) == MessageTooLarge.code


def test_bombs() -> None:
    data = bytes(batch(record(value=bytes(50 << 20)), 1, codec=4))
    assert len(data) < 16 << 10
    assert code_of(data) == NONE  # large inside, but not decompressed
    assert code_of(data, ProducePolicy(log_append_time=True)) == NONE
    assert code_of(data, ProducePolicy(compression=Compression.NONE)) == MessageTooLarge.code
    assert (
        code_of(data, ProducePolicy(compacted=True)) == MessageTooLarge.code
    )  # Apache Kafka decompresses and accepts it


def test_a_count_that_lies_by_far_is_found_in_large_batches_too() -> None:
    body = b"".join(record(offset=at) for at in range(SMALL_COUNT + 1))
    assert code_of(batch(body, 2**31 - 1)) == InvalidRecord.code
    assert code_of(batch(body, 2**31 - 1, codec=1)) == InvalidRecord.code


# ---------------------------------------------------------------- all at once


def test_a_policy_is_what_the_topic_says() -> None:
    assert ProducePolicy.of(TopicConfig()) == ProducePolicy()
    config = TopicConfig(
        compression_type="zstd",
        compression_zstd_level=7,
        cleanup_policy=frozenset({"compact", "delete"}),
        message_timestamp_type="LogAppendTime",
        max_message_bytes=5,
        segment_bytes=6,
        message_timestamp_before_max_ms=7,
        message_timestamp_after_max_ms=8,
    )
    assert ProducePolicy.of(config) == ProducePolicy(5, 6, True, 7, 8, Compression.ZSTD, 7, True)
    assert ProducePolicy.of(TopicConfig(compression_type="uncompressed")).compression is Compression.NONE
    assert ProducePolicy.of(TopicConfig(compression_type="snappy")).compression_level is None


POLICIES = st.builds(
    ProducePolicy,
    log_append_time=st.booleans(),
    compression=st.none() | st.sampled_from(Compression),
    compacted=st.booleans(),
    timestamp_before_max_ms=st.sampled_from([2**63 - 1, 1000]),
    timestamp_after_max_ms=st.sampled_from([2**63 - 1, 1000]),
    compression_level=st.none(),
    max_message_bytes=st.just(1_048_588),
    segment_bytes=st.just(1 << 30),
)


@given(st.data(), st.sampled_from([0, 1, 2, 3, 4]), POLICIES, st.booleans())
def test_mutations_are_refused_or_make_a_batch(data, codec, policy, large) -> None:
    times = 40 if large else 3
    buffer = batch(b"".join(record(at, at) for at in range(times)), times, codec=codec)
    for _ in range(data.draw(st.integers(1, 3))):
        buffer[data.draw(st.integers(8, len(buffer) - 1))] = data.draw(st.integers(0, 255))
    sign(buffer)
    try:
        taken = validate_produced(buffer, policy, NOW)
    except KafkaError:
        return
    taken.check_crc()
    assert taken.count == taken.last_offset_delta + 1 > 0
    taken.stamp(100, 3)
    if not large:
        list(records_of(taken))

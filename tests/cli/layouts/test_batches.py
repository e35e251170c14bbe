"""Batches and message sets: construct's decoding, compared with the broker's, and with batches of other libraries."""

import struct
import zlib
from pathlib import Path

import lz4.frame
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kafka.record.legacy_records import LegacyRecordBatchBuilder

from barnabas.records.batch import Compression, RecordBatch, batches
from barnabas.records.builder import build_batch
from barnabas.records.record import records_of

GOLDEN = Path(__file__).parents[2] / "records/golden"

INT64 = st.integers(-(2**63), 2**63 - 1)
TIMESTAMPS = st.integers(0, 2**44) | st.integers(2**62 - 2**40, 2**62)
BYTES = st.none() | st.binary(max_size=40) | st.binary(min_size=127, max_size=130)
RECORDS = st.lists(
    st.tuples(BYTES, BYTES, TIMESTAMPS, st.lists(st.tuples(st.text(max_size=8), BYTES), max_size=3)),
    min_size=1,
    max_size=5,
)
FIELDS = st.fixed_dictionaries({
    "base_offset": st.integers(0, 2**62),
    "producer_id": st.integers(-1, 2**63 - 1),
    "producer_epoch": st.integers(-1, 2**15 - 1),
    "base_sequence": st.integers(-1, 2**31 - 1),
    "leader_epoch": st.integers(-1, 2**31 - 1),
    "compression": st.sampled_from(list(Compression)),
    "is_transactional": st.booleans(),
})  # fmt: skip
OURS = settings(
    max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def check_equal(rows, data):
    """Compares every field of every batch and record with the broker's decoding."""
    assert not [row for row in rows if row.is_damage]
    position = 0
    found = iter(rows)
    for batch in batches(data):
        row = next(found)
        assert row.kind == "batch"
        assert row.fields == {
            "position": position,
            "size": batch.size_in_bytes,
            "base_offset": batch.base_offset,
            "last_offset": batch.last_offset,
            "count": batch.count,
            "partition_leader_epoch": batch.partition_leader_epoch,
            "magic": batch.magic,
            "codec": batch.compression.name.lower(),
            "timestamp_type": "LogAppendTime" if batch.is_log_append_time else "CreateTime",
            "base_timestamp": batch.base_timestamp,
            "max_timestamp": batch.max_timestamp,
            "producer_id": batch.producer_id,
            "producer_epoch": batch.producer_epoch,
            "base_sequence": batch.base_sequence,
            "last_sequence": batch.last_sequence,
            "is_transactional": batch.is_transactional,
            "is_control": batch.is_control,
            "delete_horizon_ms": batch.base_timestamp if batch.has_delete_horizon else None,
            "crc": batch.crc,
            "crc_ok": batch.is_intact(),
        }
        for record in records_of(batch):
            fields = next(found).fields
            assert (fields["offset"], fields["timestamp"]) == (record.offset, record.timestamp)
            if not batch.is_control:
                assert (fields["key"], fields["value"]) == (record.key, record.value)
                headers = [(key.decode("utf-8", "replace"), value) for key, value in fields["headers"]]
                assert tuple(headers) == record.headers
        position += batch.size_in_bytes
    assert position == len(data)
    assert next(found, None) is None


@OURS
@given(RECORDS, FIELDS)
def test_batches_of_all_kinds(dumped, records, fields):
    data = bytes(build_batch(records, **fields))
    check_equal(dumped("0.log", data), data)


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.hex")), ids=lambda path: path.stem)
def test_batches_of_other_writers(dumped, path):
    lines = path.read_text().splitlines()
    data = bytes.fromhex("".join(line for line in lines if not line.startswith("#")))
    check_equal(dumped("0.log", data), data)


def test_a_flipped_bit_anywhere_in_a_batch_shows_or_stands_before_the_crc(dumped):
    data = bytes(build_batch([(b"key", b"value", 1000)] * 3, base_offset=7, leader_epoch=1))
    for position in range(len(data)):
        for bit in range(8):
            torn = bytearray(data)
            torn[position] ^= 1 << bit
            is_damaged = any(row.is_damage for row in dumped("0.log", bytes(torn)))
            assert is_damaged or position < 8 or 12 <= position < 16, (position, bit)


def test_a_batch_that_is_cut_off_says_where_and_how_much(dumped):
    data = bytes(build_batch([(None, b"value", 1000)], base_offset=7))
    *_, last = dumped("0.log", data + data[:-1])
    assert last.fields == {
        "position": len(data),
        "offset": 7,
        "what": f"{len(data) - 1} bytes are left of a batch of {len(data)}",
    }
    *_, last = dumped("0.log", data + data[:10])
    assert last.fields["what"] == "10 bytes are left, too few for a batch"


def test_room_that_was_made_ahead_is_no_damage(dumped):
    data = bytes(build_batch([(None, b"value", 1000)]))
    *_, last = dumped("0.log", data + bytes(5000))
    assert (last.kind, last.fields) == ("zeros", {"position": len(data), "size": 5000})


def test_bytes_left_within_a_batch(dumped):
    batch = RecordBatch.parse(build_batch([(None, b"value", 1000)] * 2))
    batch.buffer[60] = 1
    batch.sign()
    *_, last = dumped("0.log", bytes(batch.buffer))
    assert last.is_damage
    assert last.fields["what"].endswith("bytes are left behind the last record")


OLD = [
    (magic, codec) for magic in (0, 1) for codec in ("none", "gzip", "snappy", "lz4") if (magic, codec) != (0, "lz4")
]


@pytest.mark.parametrize(("magic", "codec"), OLD)
def test_message_sets_of_kafka_python(dumped, magic, codec):
    number = ["none", "gzip", "snappy", "lz4"].index(codec)
    builder = LegacyRecordBatchBuilder(magic=magic, compression_type=number, batch_size=100_000)
    for offset in range(3):
        builder.append(offset, timestamp=1000 + offset, key=None if offset else b"k", value=b"value %d" % offset)
    data = bytearray(builder.build())
    if number:
        data[0:8] = (2).to_bytes(8)  # a broker gives the wrapper the offset of its last message
    rows = dumped("0.log", bytes(data))
    assert not [row for row in rows if row.is_damage]
    assert {row.fields["codec"] for row in rows if row.kind == "message"} == {codec}
    assert all(row.fields["crc_ok"] for row in rows if row.kind == "message")
    records = [row.fields for row in rows if row.kind == "record"]
    assert [each["offset"] for each in records] == [0, 1, 2]
    assert [each["timestamp"] for each in records] == ([1000, 1001, 1002] if magic else [-1] * 3)
    assert [each["key"] for each in records] == [b"k", None, None]
    assert [each["value"] for each in records] == [b"value 0", b"value 1", b"value 2"]


def test_lz4_whose_header_has_the_checksum_of_kafka_0_8(dumped):
    inner = LegacyRecordBatchBuilder(magic=0, compression_type=0, batch_size=100_000)
    inner.append(5, timestamp=None, key=None, value=b"value" * 100)
    frame = bytearray(lz4.frame.compress(bytes(inner.build()), block_linked=False, store_size=False))
    frame[6] ^= 0xFF
    body = struct.pack(">bbiI", 0, 3, -1, len(frame)) + frame
    data = struct.pack(">qiI", 5, len(body) + 4, zlib.crc32(body)) + body
    _, record = dumped("0.log", data)
    assert (record.fields["offset"], record.fields["value"]) == (5, b"value" * 100)


@pytest.mark.parametrize("magic", [0, 1])
def test_a_flipped_bit_in_a_message_shows(dumped, magic):
    builder = LegacyRecordBatchBuilder(magic=magic, compression_type=0, batch_size=100_000)
    builder.append(0, timestamp=1000, key=b"k", value=b"value")
    data = bytes(builder.build())
    for position in range(8, len(data)):
        torn = bytearray(data)
        torn[position] ^= 4
        assert any(row.is_damage for row in dumped("0.log", bytes(torn))), position


def test_the_number_of_records_is_limited(dumped):
    one = build_batch([(None, b"value", 1000)] * 3)
    data = bytes(one * 4)
    assert sum(row.kind == "record" for row in dumped("0.log", data, max_messages=4)) == 4
    assert sum(row.kind == "batch" for row in dumped("0.log", data, deep=False, max_messages=4)) == 2
    assert sum(row.kind == "batch" for row in dumped("0.log", data, deep=False, max_bytes=len(one) + 1)) == 2

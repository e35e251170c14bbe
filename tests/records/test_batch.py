"""The header of a batch: parsed, stamped and signed; and all ways in which it can be malformed."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.errors import CorruptMessage, InvalidRecord
from barnabas.records.batch import HEADER_SIZE, Compression, RecordBatch, batches
from barnabas.records.builder import build_batch, sign

TWO = [(b"k", b"one", 1000), (None, b"two", 1007)]

int8, int16, int32, int64 = (st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (8, 16, 32, 64))


@given(
    base_offset=int64,
    leader_epoch=int32,
    producer_id=int64,
    producer_epoch=int16,
    base_sequence=int32,
    compression=st.sampled_from(Compression),
    is_control=st.booleans(),
    is_transactional=st.booleans(),
    log_append_time_ms=st.none() | int64,
)
def test_the_header_as_construct_reads_it(layout, **header) -> None:
    buffer = build_batch(TWO, **header)
    batch, theirs = RecordBatch.parse(buffer), layout.parse(buffer)
    for name in (
        "base_offset", "batch_length", "partition_leader_epoch", "crc", "last_offset_delta", "base_timestamp",
        "max_timestamp", "producer_id", "producer_epoch", "base_sequence", "count",
    ):  # fmt: skip
        assert getattr(batch, name) == theirs[name], name
    for name in ("is_control", "is_transactional", "is_log_append_time", "has_delete_horizon"):
        assert getattr(batch, name) == theirs.attributes[name], name
    assert batch.compression == theirs.attributes.codec
    assert batch.body == theirs.body
    batch.check_crc()


def test_where_it_is_and_how_far_it_goes() -> None:
    buffer = bytearray(b"before") + build_batch(TWO, base_offset=40) + b"after"
    batch = RecordBatch.parse(buffer, 6)
    assert (batch.base_offset, batch.last_offset, batch.next_offset) == (40, 41, 42)
    assert batch.size_in_bytes == len(batch.buffer) == len(buffer) - len(b"beforeafter")
    assert batch.buffer.obj is buffer
    assert "40..41" in repr(batch)


@pytest.mark.parametrize(
    ("base", "last"), [(0, 1), (2**31 - 2, 2**31 - 1), (2**31 - 1, 0), (-1, -1)]
)  # DefaultRecordBatch.incrementSequence
def test_sequences_wrap(base: int, last: int) -> None:
    assert RecordBatch.parse(build_batch(TWO, base_sequence=base)).last_sequence == last


def test_no_producer_id_below_zero() -> None:
    assert RecordBatch.parse(build_batch(TWO, producer_id=0)).has_producer_id
    assert not RecordBatch.parse(build_batch(TWO)).has_producer_id


def test_a_stamp_changes_twelve_bytes_and_no_checksum() -> None:
    buffer = build_batch(TWO)
    before = bytes(buffer)
    batch = RecordBatch.parse(memoryview(buffer))
    batch.stamp(1 << 40, 7)
    assert (batch.base_offset, batch.partition_leader_epoch) == (1 << 40, 7)
    assert buffer == struct.pack(">qii", 1 << 40, len(before) - 12, 7) + before[16:]
    batch.check_crc()
    assert RecordBatch.parse(buffer).base_offset == 1 << 40


def test_another_time_is_signed_anew() -> None:
    buffer = build_batch(TWO, compression=Compression.GZIP, is_transactional=True)
    buffer[21:23] = b"\xff\x91"  # unknown bits are cleared, as in Apache Kafka
    sign(buffer)
    batch = RecordBatch.parse(buffer)
    batch.retime(5000, log_append_time=True)
    again = RecordBatch.parse(buffer)
    again.check_crc()
    assert (again.attributes, again.base_timestamp, again.max_timestamp) == (0x19, 1000, 5000)
    assert (batch.attributes, batch.max_timestamp, batch.crc) == (0x19, 5000, again.crc)
    batch.retime(1007, log_append_time=False)
    assert buffer == build_batch(TWO, compression=Compression.GZIP, is_transactional=True)


def test_the_checksum_covers_all_but_the_leaders_fields() -> None:
    buffer = build_batch(TWO)
    for at in range(len(buffer)):
        for bit in range(8):
            buffer[at] ^= 1 << bit
            if at < 8 or 12 <= at < 16:
                RecordBatch.parse(buffer).check_crc()
            else:
                with pytest.raises((CorruptMessage, InvalidRecord)):
                    RecordBatch.parse(buffer).check_crc()
            buffer[at] ^= 1 << bit


def test_every_prefix_is_refused() -> None:
    buffer = build_batch(TWO)
    for size in range(len(buffer)):
        with pytest.raises(CorruptMessage):
            RecordBatch.parse(buffer[:size])


@pytest.mark.parametrize(
    ("at", "layout_", "value", "error"),
    [
        (8, ">i", -1, CorruptMessage),
        (8, ">i", 0, CorruptMessage),
        (8, ">i", HEADER_SIZE - 13, CorruptMessage),
        (8, ">i", 2**31 - 1, CorruptMessage),
        (16, ">b", -1, CorruptMessage),
        (16, ">b", 3, CorruptMessage),
        (16, ">b", 0, InvalidRecord),
        (16, ">b", 1, InvalidRecord),
    ],
)
def test_lies(at: int, layout_: str, value: int, error: type[Exception]) -> None:
    buffer = build_batch(TWO)
    struct.pack_into(layout_, buffer, at, value)
    with pytest.raises(error):
        RecordBatch.parse(buffer)


@pytest.mark.parametrize("number", [5, 6, 7])
def test_a_codec_that_nobody_knows(number: int) -> None:
    buffer = build_batch(TWO)
    buffer[22] = number
    with pytest.raises(CorruptMessage):
        RecordBatch.parse(buffer).compression  # noqa: B018


def test_batches_one_behind_the_other() -> None:
    pieces = [build_batch(TWO, base_offset=offset) for offset in (0, 2, 4)]
    whole = b"".join(pieces)
    assert [batch.base_offset for batch in batches(whole)] == [0, 2, 4]
    assert [bytes(batch.buffer) for batch in batches(whole)] == pieces
    assert list(batches(b"")) == []


def test_the_last_one_may_be_cut_off_anywhere() -> None:
    one = build_batch(TWO)
    for size in range(len(one)):
        assert len(list(batches(one + one[:size]))) == 1


def test_rubbish_behind_a_batch_is_not_passed_over() -> None:
    one = build_batch(TWO)
    found = batches(one + bytes(100))
    assert next(found).count == 2
    with pytest.raises((CorruptMessage, InvalidRecord)):
        next(found)

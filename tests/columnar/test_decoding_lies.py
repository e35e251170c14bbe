"""Invalid bytes, which are refused as by reading record by record, at a low cost."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.columnar.decoding import Aborted
from barnabas.errors import CorruptMessage, KafkaError
from barnabas.records.batch import CONTROL_BIT, HEADER_SIZE, Compression
from barnabas.records.builder import sign
from barnabas.records.message_set import build_message
from barnabas.records.varint import write_varint
from tests.columnar.batches import Raw, batch_bytes, decode, record_bytes, records
from tests.columnar.test_decoding import WAYS, found, in_small, one_by_one

GOOD = [Raw(at, at, b"key", b"v" * (at * 7 % 90), (("h", b"x"),) if at % 3 == 0 else ()) for at in range(20)]


@WAYS
@given(made=records(), codec=st.sampled_from([Compression.NONE, Compression.LZ4]), inside=st.data())
def test_any_body_is_read_or_refused_as_it_is_record_by_record(few, made, codec, inside) -> None:
    body = bytearray().join(map(record_bytes, made))
    for _ in range(inside.draw(st.integers(1, 3))):
        if body:
            body[inside.draw(st.integers(0, len(body) - 1))] = inside.draw(st.integers(0, 255))
    count = len(made) + inside.draw(st.sampled_from([0, 0, 0, 1, -1]))
    before = batch_bytes(GOOD[:3])
    data = before + batch_bytes(made, body=bytes(body), codec=codec, count=max(count, 0), base_offset=100)
    with in_small(few):
        try:
            expected = one_by_one(data)
        except KafkaError:
            with pytest.raises(CorruptMessage, match="t-3 is corrupt at offset 100: "):
                found(data)
        else:
            assert found(data) == expected


@given(at=st.integers(17, len(batch_bytes(GOOD)) - 1), bit=st.integers(0, 7))
def test_a_flipped_bit_behind_the_checksum(at, bit) -> None:
    data = bytearray(batch_bytes(GOOD, base_offset=40))
    data[at] ^= 1 << bit
    with pytest.raises(CorruptMessage, match="t-3 is corrupt at offset 40: the checksum is not"):
        found(bytes(data))


@given(at=st.integers(8, 16), bit=st.integers(0, 7))
def test_a_flipped_bit_before_the_checksum(at, bit) -> None:
    """Length, leader epoch (which is not read), magic."""
    first, second = batch_bytes(GOOD), batch_bytes(GOOD, base_offset=20)
    data = bytearray(second)
    data[at] ^= 1 << bit
    try:
        shown = found(first + bytes(data))
    except CorruptMessage as error:
        assert "t-3 is corrupt at offset 20" in str(error)
    else:
        expected = one_by_one(first) if at < 12 else one_by_one(first + second)
        assert shown == expected


def test_checksums_may_be_trusted_unread() -> None:
    data = bytearray(batch_bytes(GOOD))
    data[18] ^= 1
    assert found(bytes(data), check_crcs=False) == one_by_one(bytes(data))


@pytest.mark.parametrize("count", [-1, 0, 19, 21, 2**31 - 1])
def test_counts_that_lie(count) -> None:
    with pytest.raises(CorruptMessage, match="t-3 is corrupt at offset 9: "):
        found(batch_bytes(GOOD, base_offset=9, count=count))


@pytest.mark.parametrize("last_delta", [-1, -(2**31)])
def test_batches_that_end_before_they_begin(last_delta) -> None:
    with pytest.raises(CorruptMessage, match="offset 9: a batch has base offset 9"):
        found(batch_bytes(GOOD, base_offset=9, last_delta=last_delta))


def test_an_unknown_codec() -> None:
    data = bytearray(batch_bytes(GOOD))
    data[22] |= 7
    sign(data)
    with pytest.raises(CorruptMessage, match="Unknown compression type 7"):
        found(bytes(data))


def test_a_body_that_does_not_unpack() -> None:
    data = bytearray(batch_bytes(GOOD, codec=Compression.LZ4))
    data[HEADER_SIZE + 4 :] = b"\xff" * (len(data) - HEADER_SIZE - 4)
    sign(data)
    with pytest.raises(CorruptMessage, match="lz4 body cannot be unpacked"):
        found(bytes(data))


def lying(number: int, after: bytes, rest: bytes = b"") -> bytes:
    """Returns a record with ``number`` as the length or count ``after`` those bytes."""
    body = bytearray(after)
    write_varint(number, body)
    body += rest
    whole = bytearray()
    write_varint(len(body), whole)
    return bytes(whole + body)


@WAYS
@pytest.mark.parametrize("number", [2**31 - 1, 10_000_000, 300])
@pytest.mark.parametrize(
    "after", [b"\0\0\0", b"\0\0\0\x01", b"\0\0\0\x01\x01", b"\0\0\0\x01\x01\x02", b"\0\0\0\x01\x01\x02\x00"]
)
def test_lengths_and_counts_that_lie_cost_nothing(few, after, number) -> None:
    data = batch_bytes([Raw(0, 0, None, None)], body=lying(number, after, b"\x01" * 40))
    with in_small(few):
        found(batch_bytes(GOOD))  # imports and caches
        tracemalloc.start()
        with pytest.raises(CorruptMessage):
            found(data)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < 200_000


def test_a_record_of_headers_alone() -> None:
    """As many headers as possible, which numpy must not read one step at a time."""
    many = Raw(0, 0, None, None, (("", None),) * 60_000)
    data = batch_bytes([many, GOOD[1]])
    assert found(data) == one_by_one(data)


@pytest.mark.parametrize("delta", [2**63 - 1, -(2**63), 2**54])
def test_times_that_no_microseconds_can_tell(delta) -> None:
    with pytest.raises(CorruptMessage, match=r"t-3 is corrupt at offset 0: .*timestamp"):
        found(batch_bytes([Raw(0, delta, None, None)], max_timestamp=0))


def test_a_marker_without_a_kind() -> None:
    data = batch_bytes([Raw(0, 0, b"?", None)], attributes=CONTROL_BIT, producer_id=1)
    with pytest.raises(CorruptMessage, match="control record"):
        found(data, aborted=[Aborted(1, 0)])


def test_a_message_whose_checksum_is_not_right() -> None:
    message = bytearray(build_message(1, 5, 0, b"k", b"v"))
    message[-1] ^= 1
    with pytest.raises(CorruptMessage, match="t-3 is corrupt at offset 5"):
        found(bytes(message))


@given(st.binary(max_size=200))
def test_noise(data) -> None:
    for check_crcs in (True, False):
        try:
            decode(data, topic="t", partition=3, start=0, headers=True, check_crcs=check_crcs)
        except CorruptMessage as error:
            assert "t-3 is corrupt at offset" in str(error)

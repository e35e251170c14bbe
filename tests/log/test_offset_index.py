"""The offset index: Kafka's bytes, and the right position for every offset."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.log.offset_index import CorruptIndex, OffsetIndex

ENTRIES = st.lists(st.tuples(st.integers(1, 50), st.integers(1, 5000)), max_size=40)


def index_of(steps, base_offset=1000):
    index = OffsetIndex(base_offset)
    offset, position, entries = base_offset - 1, 0, []
    for offset_step, position_step in steps:
        offset, position = offset + offset_step, position + position_step
        index.append(offset, position)
        entries.append((offset, position))
    return index, entries


def test_the_bytes():
    index, _ = index_of([(10, 4200), (1, 300)])
    assert index.encode().hex(" ", 4) == "00000009 00001068 0000000a 00001194"
    assert index.encode(1).hex(" ", 4) == "0000000a 00001194"
    assert (len(index), index.size, index.last_offset) == (2, 16, 1010)


def test_an_empty_index():
    index = OffsetIndex(7)
    assert index.encode() == b""
    assert (index.last_offset, index.position_before(100), index.boundary_before(100)) == (7, 0, 0)


@given(ENTRIES)
def test_decode_reverses_encode(steps):
    index, _ = index_of(steps)
    again = OffsetIndex.decode(index.encode(), 1000)
    assert (again.relative_offsets, again.positions) == (index.relative_offsets, index.positions)


@given(ENTRIES, st.integers(990, 3000), st.integers(0, 200_000))
def test_searches_equal_a_scan(steps, offset, position):
    index, entries = index_of(steps)
    assert index.position_before(offset) == max((at for known, at in entries if known <= offset), default=0)
    assert index.boundary_before(position) == max((at for _, at in entries if at <= position), default=0)


@given(ENTRIES, st.integers(990, 3000))
def test_truncation(steps, offset):
    index, entries = index_of(steps)
    index.truncate(offset)
    assert [1000 + known for known in index.relative_offsets] == [known for known, _ in entries if known < offset]
    assert len(index.positions) == len(index.relative_offsets)


@pytest.mark.parametrize(
    "data",
    [
        b"\0" * 7,
        bytes.fromhex("00000009 00001068 0000"),
        bytes.fromhex("00000009 00001068 00000009 00001069"),
        bytes.fromhex("00000009 00001068 0000000a 00001068"),
        bytes.fromhex("00000009 00001068 00000000 00000000"),
        bytes.fromhex("ffffffff 00000001"),
        bytes(80),
    ],
)
def test_an_invalid_index_is_refused(data):
    with pytest.raises(CorruptIndex):
        OffsetIndex.decode(data, 0)

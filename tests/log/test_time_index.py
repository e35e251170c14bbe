"""The time index: Kafka's bytes, and never a position after the record that is searched."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.log.time_index import CorruptIndex, TimeIndex

ENTRIES = st.lists(st.tuples(st.integers(1, 50), st.integers(0, 50)), max_size=40)


def index_of(steps, base_offset=1000):
    index = TimeIndex(base_offset)
    timestamp, offset, entries = 0, base_offset, []
    for time_step, offset_step in steps:
        timestamp, offset = timestamp + time_step, offset + offset_step
        index.maybe_append(timestamp, offset)
        entries.append((timestamp, offset))
    return index, entries


def test_the_bytes():
    index = TimeIndex(5)
    index.maybe_append(1_700_000_000_000, 25)
    index.maybe_append(1_700_000_000_001, 25)
    assert index.encode().hex(" ", 4) == "0000018b cfe56800 00000014 0000018b cfe56801 00000014"
    assert index.encode(1).hex(" ", 4) == "0000018b cfe56801 00000014"
    assert (index.size, index.last) == (24, (1_700_000_000_001, 25))


def test_only_later_timestamps_are_added():
    index = TimeIndex(0)
    for timestamp, offset in [(-1, 3), (50, 4), (50, 9), (49, 12), (51, 13)]:
        index.maybe_append(timestamp, offset)
    assert list(index.timestamps) == [50, 51]
    assert list(index.relative_offsets) == [4, 13]


def test_an_empty_index():
    index = TimeIndex(7)
    assert (index.last, index.offset_before(5), index.offset_after(5)) == ((-1, 7), 7, None)


@given(ENTRIES)
def test_decode_reverses_encode(steps):
    index, _ = index_of(steps)
    again = TimeIndex.decode(index.encode(), 1000)
    assert (again.timestamps, again.relative_offsets) == (index.timestamps, index.relative_offsets)


@given(ENTRIES, st.integers(0, 2500))
def test_searches_equal_a_scan(steps, timestamp):
    index, entries = index_of(steps)
    before = [(time, offset) for time, offset in entries if time <= timestamp]
    after = [offset for time, offset in entries if time > timestamp]
    assert index.offset_before(timestamp) == (before[-1][1] if before else 1000)
    assert index.timestamp_before(timestamp) == (before[-1][0] if before else -1)
    assert index.offset_after(timestamp) == (after[0] if after else None)


@given(ENTRIES, st.integers(990, 3500))
def test_truncation(steps, offset):
    index, entries = index_of(steps)
    index.truncate(offset)
    assert list(zip(index.timestamps, [1000 + known for known in index.relative_offsets], strict=True)) == [
        entry for entry in entries if entry[1] < offset
    ]


@pytest.mark.parametrize(
    "data",
    [
        b"\0" * 11,
        bytes(24),
        bytes.fromhex("0000018bcfe56800 00000014 0000018bcfe56800 00000015"),
        bytes.fromhex("0000018bcfe56800 00000014 0000018bcfe56801 00000013"),
        bytes.fromhex("ffffffffffffffff 00000000"),
        bytes.fromhex("0000018bcfe56800 ffffffff"),
    ],
)
def test_an_invalid_index_is_refused(data):
    with pytest.raises(CorruptIndex):
        TimeIndex.decode(data, 0)

"""Recovery's check of a segment: independent of the size of a read, and equal to a check of one batch at a time."""

import random

import hypothesis
import pytest
from hypothesis import strategies as st

from barnabas.log import checking
from barnabas.log.checking import Expectations, SegmentCheck
from barnabas.log.leader_epochs import LeaderEpochs
from barnabas.log.producer_state import ProducerState
from barnabas.log.segment import Segment
from barnabas.records.batch import batches
from tests.log.conftest import NOW_MS, Tool, make_batch, make_marker, memory_place

STRIDES = [61, 62, 100, 200, 333, 1000, 4 << 20]


def put(tool, made, *, interval=200, base_offset=0):
    """Returns a closed segment of these batches, with consecutive offsets, and its bytes."""
    data, offset = bytearray(), base_offset
    for number, batch in enumerate(made):
        batch.stamp(offset, number // 7)
        offset = batch.next_offset
        data += batch.buffer
    segment = segment_of(tool, bytes(data), base_offset)
    segment.index_interval = interval
    return segment, bytes(data)


def segment_of(tool, data, base_offset=0, interval=200):
    tool.files.makedirs(tool.directory)
    tool.overwrite(f"{base_offset:020d}.log", data)
    segment = Segment(tool.files, tool.directory, base_offset, len(data), tool.services.index_cache)
    segment.index_interval = interval
    return segment


LAST = Expectations(None, False)


def check(tool, segment, expectations=LAST, expected=0):
    epochs = LeaderEpochs(tool.files, tool.path("leader-epoch-checkpoint"))
    made = SegmentCheck(segment, expected, expectations, epochs, ProducerState(tool.files, tool.directory))
    damage = made.run()
    return damage, made


def all_of(made):
    """Returns everything that the check has collected."""
    return (
        made.expected,
        made.index.encode(),
        made.time_index.encode(),
        (made.latest, made.latest_offset),
        made.epochs.entries,
        made.aborted,
        sorted(state_of(made.producers)),
    )


def state_of(producers):
    for entry in producers.entries.values():
        yield (
            entry.producer_id,
            entry.producer_epoch,
            list(entry.batches),
            entry.last_timestamp,
            entry.coordinator_epoch,
            entry.current_txn_first_offset,
        )


def some_batches(count=40):
    chance, sequences, made = random.Random(1), {}, []
    for number in range(count):
        producer_id = chance.choice([-1, 4, 5])
        size = chance.choice([1, 1, 2, 5])
        keywords = {}
        if producer_id >= 0:
            keywords = {
                "producer_id": producer_id,
                "producer_epoch": 0,
                "base_sequence": sequences.get(producer_id, 0),
                "is_transactional": producer_id == 5,
            }
            sequences[producer_id] = sequences.get(producer_id, 0) + size
        made.append(make_batch(size, timestamp=NOW_MS + chance.randrange(1000), **keywords))
        if number % 9 == 8:
            made.append(make_marker(5, abort=number % 2 == 0))
    return made


def test_the_size_of_a_read_does_not_matter(memory_tool, monkeypatch):
    segment, _ = put(memory_tool, some_batches())
    _, whole = check(memory_tool, segment)
    assert len(whole.index) > 10 and len(whole.epochs.entries) > 3 and whole.aborted
    for stride in STRIDES:
        monkeypatch.setattr(checking, "STRIDE", stride)
        damage, made = check(memory_tool, segment)
        assert damage is None
        assert all_of(made) == all_of(whole)


@pytest.mark.parametrize("stride", STRIDES)
def test_a_segment_that_ends_at_any_byte(memory_tool, monkeypatch, stride):
    monkeypatch.setattr(checking, "STRIDE", stride)
    _, data = put(memory_tool, some_batches(4))
    ends = [0]
    for batch in batches(data):
        ends.append(ends[-1] + batch.size_in_bytes)
    for size in range(len(data)):
        damage, made = check(memory_tool, segment_of(memory_tool, data[:size]))
        whole = max(end for end in ends if end <= size)
        if size == whole:
            assert damage is None
        else:
            assert (damage.position, damage.offset) == (whole, made.expected)
            assert f"{size - whole} bytes are left" in damage.reason


@pytest.mark.parametrize("stride", [100, 4 << 20])
def test_every_flipped_bit_is_found(memory_tool, monkeypatch, stride):
    """Except in the leader epoch, which no CRC covers."""
    monkeypatch.setattr(checking, "STRIDE", stride)
    _, data = put(memory_tool, some_batches(6))
    starts, at = [], 0
    for batch in batches(data):
        starts.append((at, batch.base_offset))
        at += batch.size_in_bytes
    for position in range(len(data)):
        start, offset = max(each for each in starts if each[0] <= position)
        if 12 <= position - start < 16:
            continue
        flipped = bytearray(data)
        flipped[position] ^= 1 << position % 8
        damage, _ = check(memory_tool, segment_of(memory_tool, bytes(flipped)))
        assert damage is not None and (damage.position, damage.offset) == (start, offset)


@pytest.mark.parametrize("stride", [100, 4 << 20])
def test_gaps_where_compaction_may_have_made_them(memory_tool, monkeypatch, stride):
    monkeypatch.setattr(checking, "STRIDE", stride)
    _, data = put(memory_tool, [make_batch(2) for _ in range(6)])
    size = len(data) // 6
    holed = data[:size] + data[2 * size : 3 * size] + data[4 * size :]
    segment = segment_of(memory_tool, holed)
    damage, made = check(memory_tool, segment, Expectations(None, True))
    assert (damage, made.expected) == (None, 12)
    damage, made = check(memory_tool, segment, Expectations(12, False))
    assert (damage, made.expected) == (None, 12)
    damage, _ = check(memory_tool, segment, Expectations(None, False))
    assert (damage.position, damage.offset) == (size, 2)
    damage, _ = check(memory_tool, segment, Expectations(11, True))
    assert damage is None, "no hole before the last batch: where the next segment begins is judged elsewhere"
    damage, _ = check(memory_tool, segment_of(memory_tool, holed[:size] + holed[2 * size :]), Expectations(11, True))
    assert damage is None
    backwards = holed[:size] + holed[2 * size : 3 * size] + holed[size : 2 * size]
    damage, _ = check(memory_tool, segment_of(memory_tool, backwards), Expectations(None, True))
    assert (damage.position, damage.offset) == (size, 2)
    assert "leaves a gap, and 4 follows" in damage.reason


def test_a_batch_larger_than_a_read(memory_tool, monkeypatch):
    monkeypatch.setattr(checking, "STRIDE", 500)
    segment, data = put(memory_tool, [make_batch(1), make_batch(1, size=3000), make_batch(2)])
    damage, made = check(memory_tool, segment)
    assert (damage, made.expected) == (None, 4)
    damage, _ = check(memory_tool, segment_of(memory_tool, data[:2000]))
    assert damage.offset == 1


WRITES = st.lists(
    st.tuples(
        st.sampled_from(["plain", "idempotent", "transactional", "commit", "abort"]),
        st.integers(1, 3),
        st.sampled_from([0, 0, 0, 1]),
    ),
    max_size=40,
)


@hypothesis.given(writes=WRITES, stride=st.sampled_from([150, 700, 4 << 20]))
@hypothesis.settings(
    max_examples=100, deadline=None, derandomize=True, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
def test_producer_state_equals_that_of_one_batch_at_a_time(writes, stride):
    tool, made, sequences, epochs = Tool(memory_place()), [], {}, {}
    for kind, producer_id, newer in writes:
        if kind in ("commit", "abort"):
            made.append(make_marker(producer_id, abort=kind == "abort"))
            continue
        if kind == "plain":
            made.append(make_batch(1))
            continue
        if newer:
            epochs[producer_id] = epochs.get(producer_id, 0) + 1
            sequences[producer_id] = 0
        sequence = sequences.get(producer_id, 2**31 - 3)
        made.append(
            make_batch(
                2,
                producer_id=producer_id,
                producer_epoch=epochs.get(producer_id, 0),
                base_sequence=sequence,
                is_transactional=kind == "transactional",
            )
        )
        sequences[producer_id] = sequence + 2 & 0x7FFFFFFF
    segment, data = put(tool, made)
    before, checking.STRIDE = checking.STRIDE, stride
    try:
        damage, checked = check(tool, segment)
    finally:
        checking.STRIDE = before
    one_by_one = ProducerState(tool.files, tool.directory)
    aborted = [entry for batch in batches(data) if (entry := one_by_one.replay(batch)) is not None]
    assert (damage, checked.aborted) == (None, aborted)
    assert sorted(state_of(checked.producers)) == sorted(state_of(one_by_one))
    assert checked.producers.transactions.open == one_by_one.transactions.open
    assert checked.producers.transactions.ended == one_by_one.transactions.ended

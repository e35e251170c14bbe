"""Idempotent producers: accepted batches, duplicates, refused batches; and Kafka's snapshot files."""

import pytest
from construct import Array, Int16sb, Int32sb, Int32ub, Int64sb, Struct

from barnabas.errors import InvalidProducerEpoch, InvalidRecord, OutOfOrderSequenceNumber
from barnabas.log.producer_state import KnownBatch, ProducerState
from barnabas.records.batch import RecordBatch
from barnabas.records.builder import build_batch
from barnabas.records.control import ControlRecordType, control_key

LAYOUT = Struct(
    "version" / Int16sb,
    "crc" / Int32ub,
    "count" / Int32sb,
    "entries"
    / Array(
        lambda this: this.count,
        Struct(
            "producer_id" / Int64sb,
            "epoch" / Int16sb,
            "last_sequence" / Int32sb,
            "last_offset" / Int64sb,
            "offset_delta" / Int32sb,
            "timestamp" / Int64sb,
            "coordinator_epoch" / Int32sb,
            "current_txn_first_offset" / Int64sb,
        ),
    ),
)


class Producers:
    """A producer state and a log end offset."""

    def __init__(self, state, batch):
        self.state, self.batch, self.end = state, batch, 0

    def append(self, sequence, count=1, epoch=0, producer_id=9, **keywords):
        """Appends a batch. Returns None, the first offset of a duplicate, or the error."""
        batch = self.batch(
            count,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            base_offset=self.end,
            **keywords,
        )
        known = self.state.check(batch)
        if known is None:
            self.state.update(batch, self.end)
            self.end += count
            return None
        return known.first_offset


@pytest.fixture
def state(memory):
    return ProducerState(memory.files, memory.path)


@pytest.fixture
def producers(state, batch):
    return Producers(state, batch)


def test_consecutive_sequences(producers):
    assert [producers.append(0, 3), producers.append(3, 2), producers.append(5)] == [None] * 3


def test_an_unknown_producer_may_start_anywhere(producers):
    assert producers.append(4711) is None
    assert producers.append(4712) is None
    assert producers.append(17, producer_id=10) is None


@pytest.mark.parametrize("sequence", [2, 4, 100, 2**31 - 1])
def test_a_gap_is_refused(producers, sequence):
    producers.append(0, 1)
    with pytest.raises(OutOfOrderSequenceNumber):
        producers.append(sequence)
    assert producers.append(1) is None


def test_a_duplicate_returns_its_first_offset(producers):
    for number in range(5):
        producers.append(number * 10, 10, timestamp=1000 + number)
    assert [producers.append(number * 10, 10) for number in range(5)] == [0, 10, 20, 30, 40]
    assert producers.append(50, 10) is None


def test_only_five_batches_are_known(producers):
    for number in range(6):
        producers.append(number * 10, 10)
    assert producers.append(10, 10) == 10
    with pytest.raises(OutOfOrderSequenceNumber):
        producers.append(0, 10)


@pytest.mark.parametrize("count", [9, 11])
def test_a_duplicate_of_another_length_is_refused(producers, count):
    producers.append(0, 10)
    producers.append(10, 10)
    with pytest.raises(OutOfOrderSequenceNumber):
        producers.append(10, count)


def test_sequences_wrap_to_zero(producers):
    last = 2**31 - 1
    assert producers.append(last - 4, 4) is None
    assert producers.append(last, 1) is None
    assert producers.append(0, 2) is None
    assert producers.append(last, 1) == 4
    assert producers.append(2) is None


def test_sequences_wrap_within_a_batch(producers):
    last = 2**31 - 1
    assert producers.append(last - 1, 5) is None
    assert producers.append(3, 1) is None
    assert producers.append(last - 1, 5) == 0


def test_an_older_epoch_is_fenced(producers):
    producers.append(0, epoch=3)
    with pytest.raises(InvalidProducerEpoch):
        producers.append(1, epoch=2)
    assert producers.append(1, epoch=3) is None


def test_a_newer_epoch_starts_at_zero(producers):
    producers.append(0, 5, epoch=3)
    with pytest.raises(OutOfOrderSequenceNumber):
        producers.append(5, epoch=4)
    assert producers.append(0, 5, epoch=4) is None
    with pytest.raises(InvalidProducerEpoch):
        producers.append(5, epoch=3)


def test_duplicates_are_of_the_same_epoch(producers):
    producers.append(0, 5, epoch=3)
    producers.append(0, 5, epoch=4)
    assert producers.append(0, 5, epoch=4) == 5


def test_an_id_without_a_sequence_is_refused(producers):
    with pytest.raises(InvalidRecord):
        producers.append(-1)
    assert producers.state.entries == {}


def test_without_an_epoch_any_sequence_is_accepted(producers):
    assert [producers.append(7, epoch=-1), producers.append(3, epoch=-1), producers.append(99, epoch=-1)] == [None] * 3


def test_a_producer_expires_by_its_last_batch(producers):
    producers.append(0, producer_id=1, timestamp=1000)
    producers.append(0, producer_id=2, timestamp=2000)
    producers.append(0, producer_id=3, timestamp=1000, is_transactional=True)
    assert producers.state.expire(now_ms=10_999, expiration_ms=10_000) == 0
    assert producers.state.expire(now_ms=11_000, expiration_ms=10_000) == 1
    assert sorted(producers.state.entries) == [2, 3]
    assert producers.append(5, producer_id=1) is None


def test_a_transaction_is_open_until_its_marker(producers, state):
    producers.append(0, 2, is_transactional=True)
    producers.append(2, 2, is_transactional=True)
    assert state.entries[9].current_txn_first_offset == 0
    value = bytes.fromhex("0000 0000000c")  # version, coordinator epoch
    records = [(control_key(ControlRecordType.COMMIT), value, 5)]
    marker = RecordBatch.parse(
        build_batch(
            records,
            base_offset=4,
            producer_id=9,
            producer_epoch=0,
            base_sequence=-1,
            is_control=True,
            is_transactional=True,
        )
    )
    assert state.check(marker) is None
    state.replay(marker)
    entry = state.entries[9]
    assert (entry.current_txn_first_offset, entry.coordinator_epoch, entry.last_timestamp) == (-1, 12, 5)
    assert entry.last_sequence == 3


# ------------------------------------------------------------ snapshots


def test_snapshots_of_apache_kafka(golden):
    for offset in (54, 171, 185, 205):
        data = golden.files.read(golden.path(f"{offset:020d}.snapshot"))
        state = ProducerState(golden.files, golden.directory, [offset])
        assert state.load_snapshot(0, 300) == offset
        assert state.encode() == data


def test_a_snapshot_read_by_kio(producers, state):
    producers.append(0, 3, timestamp=1111)
    producers.append(3, 4, timestamp=2222)
    found = LAYOUT.parse(state.encode())
    assert (found.version, found.count) == (1, 1)
    entry = dict(found.entries[0])
    entry.pop("_io")
    assert entry == {
        "producer_id": 9,
        "epoch": 0,
        "last_sequence": 6,
        "last_offset": 6,
        "offset_delta": 3,
        "timestamp": 2222,
        "coordinator_epoch": -1,
        "current_txn_first_offset": -1,
    }


def test_a_snapshot_keeps_the_last_batch(producers, state, memory):
    producers.append(0, 3, timestamp=1111)
    producers.append(3, 4, timestamp=2222)
    assert state.take_snapshot(7) == f"{memory.path}/00000000000000000007.snapshot"
    assert state.take_snapshot(7) is None
    again = ProducerState(memory.files, memory.path, [7])
    assert again.load_snapshot(0, 7) == 7
    assert again.entries[9].batches == [KnownBatch(6, 6, 3, 2222)]
    assert Producers(again, producers.batch).append(3, 4) == 3


def test_the_latest_valid_snapshot_is_loaded(producers, state, memory, caplog):
    for offset in (10, 20, 30):
        producers.append(producers.end)
        state.take_snapshot(offset)
    path = state.snapshot_path(30)
    memory.files.create(path).write(memory.files.read(path)[:-1])
    again = ProducerState(memory.files, memory.path, [30, 10, 20])
    assert again.load_snapshot(0, 40) == 20
    assert again.entries[9].last_sequence == 1
    assert path in caplog.text
    assert again.snapshots == [10, 20]
    assert again.load_snapshot(0, 19) == 10
    assert again.load_snapshot(11, 19) is None
    assert again.entries == {}


@pytest.mark.parametrize("position", range(56))
def test_every_flipped_byte_is_found(producers, state, memory, position):
    producers.append(0)
    state.take_snapshot(1)
    data = bytearray(memory.files.read(state.snapshot_path(1)))
    data[position] ^= 0x10
    memory.files.create(state.snapshot_path(1)).write(data)
    assert ProducerState(memory.files, memory.path, [1]).load_snapshot(0, 1) is None


def test_strays_are_removed_except_the_latest(state, memory):
    for offset in (5, 10, 15, 20):
        state.take_snapshot(offset)
    state.remove_strays([0, 10])
    assert sorted(memory.files.sizes(memory.path)) == ["00000000000000000010.snapshot", "00000000000000000020.snapshot"]

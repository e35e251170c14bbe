"""The log of one partition: appends, reads, truncation, flushes."""

import errno
import itertools

import pytest

from barnabas.errors import (
    CorruptMessage,
    KafkaStorageError,
    OffsetOutOfRange,
    OutOfOrderSequenceNumber,
)
from barnabas.log import segment
from barnabas.log.files import MemoryFile, NotCached
from barnabas.log.partition_log import Appended, LogServices
from barnabas.records.batch import RecordBatch, batches

NOW_MS = 1_700_000_000_000


def test_offsets_are_dense(tool):
    log = tool.create()
    assert tool.append(log, 3) == Appended(0, 2, -1, False)
    assert tool.append(log, 1) == Appended(3, 3, -1, False)
    assert tool.append(log, 5) == Appended(4, 8, -1, False)
    assert log.log_end_offset == log.high_watermark == log.last_stable_offset == 9
    assert [record.offset for record in tool.records(log)] == list(range(9))


def test_the_batch_is_stamped_in_place(tool, batch):
    log = tool.create()
    tool.append(log, 3)
    made = batch(2)
    log.append_as_leader(made, leader_epoch=7, now_ms=NOW_MS)
    again = RecordBatch.parse(made.buffer)
    assert (again.base_offset, again.partition_leader_epoch) == (3, 7)
    assert log.read(3, 1000, up_to=5, minimum_one=True) == bytes(made.buffer)


def test_log_append_time_is_returned(tool, batch):
    log = tool.create(message_timestamp_type="LogAppendTime")
    made = batch(1, timestamp=NOW_MS)
    made.retime(NOW_MS + 5, log_append_time=True)
    assert log.append_as_leader(made, leader_epoch=0, now_ms=NOW_MS + 5).log_append_time_ms == NOW_MS + 5


def test_the_high_watermark_is_only_raised(tool):
    log = tool.create()
    for _ in range(5):
        tool.append(log, 1)
    assert not log.maybe_set_high_watermark(3)
    assert log.high_watermark == 5


def test_the_high_watermark_is_not_above_the_log_end_offset(tool):
    log = tool.create()
    tool.append(log, 1)
    with pytest.raises(AssertionError, match="high watermark 2"):
        log.maybe_set_high_watermark(2)


# ------------------------------------------------------------ reading


@pytest.mark.parametrize("max_bytes", [0, 1, 100, 500, 1 << 20])
def test_consecutive_reads_return_everything_once(tool, max_bytes):
    log = tool.create(segment_bytes=2000, index_interval_bytes=300)
    for count in (1, 5, 2, 30, 1, 1, 1, 8, 3, 3) * 3:
        tool.append(log, count)
    assert len(log.segments) > 3
    assert [record.offset for record in tool.records(log, max_bytes)] == list(range(log.log_end_offset))


def test_an_offset_within_a_batch(tool):
    log = tool.create()
    tool.append(log, 2)
    tool.append(log, 10)
    found = next(batches(log.read(7, 10, up_to=12, minimum_one=True)))
    assert (found.base_offset, found.last_offset) == (2, 11)


def test_nothing_is_read_from_the_limit_on(tool):
    log = tool.create()
    for _ in range(4):
        tool.append(log, 2)
    assert log.read(8, 1000, up_to=8, minimum_one=True) == b""
    assert log.read(4, 1000, up_to=4, minimum_one=True) == b""
    assert log.read(6, 1000, up_to=4, minimum_one=True) == b""
    assert [batch.last_offset for batch in batches(log.read(0, 1000, up_to=5, minimum_one=True))] == [1, 3]


def test_a_negative_size_returns_nothing(tool):
    log = tool.create()
    tool.append(log, 2)
    assert log.read(0, -1, up_to=2, minimum_one=True) == b""


@pytest.mark.parametrize("offset", [-1, 4, 11])
def test_an_offset_out_of_range(tool, offset):
    log = tool.create()
    tool.append(log, 10)
    log.delete_records_before(5)
    with pytest.raises(OffsetOutOfRange, match=f"offset {offset} "):
        log.read(offset, 1000, up_to=10, minimum_one=True)


def test_max_bytes_without_minimum_one(tool, batch):
    log = tool.create(segment_bytes=batch(10).size_in_bytes)
    tool.append(log, 10)
    tool.append(log, 1)
    assert log.read(0, 100, up_to=11, minimum_one=False) == b""
    assert log.read(10, 100, up_to=11, minimum_one=False) != b""


def test_a_search_by_timestamp(tool):
    log = tool.create(segment_bytes=600, index_interval_bytes=100)
    timestamps = [100, 90, 120, 110, 120, 130, 95, 125, 140, 140, 139, 150, 20, 160, 150]
    for timestamp in timestamps:
        tool.append(log, 3, timestamp=[timestamp - 1, timestamp, timestamp - 2])
    flat = [at for timestamp in timestamps for at in (timestamp - 1, timestamp, timestamp - 2)]
    assert len(log.segments) > 3
    for wanted in range(165):
        first = next((offset for offset, at in enumerate(flat) if at >= wanted), None)
        expected = None if first is None else (flat[first], first, 0)
        assert log.offset_for_timestamp(wanted, up_to=45) == expected
    assert log.max_timestamp_offset(45) == (160, 13 * 3 + 1, 0)


def test_a_search_by_timestamp_below_the_limit(tool):
    log = tool.create()
    for timestamp in (100, 200, 300):
        tool.append(log, 2, timestamp=timestamp)
    assert log.offset_for_timestamp(200, up_to=3) == (200, 2, 0)
    assert log.offset_for_timestamp(200, up_to=2) is None
    assert log.max_timestamp_offset(4) is None
    log.delete_records_before(3)
    assert log.offset_for_timestamp(0, up_to=6) == (200, 3, 0)


def test_records_without_a_timestamp_are_not_found(tool):
    log = tool.create()
    tool.append(log, 2, timestamp=-1)
    assert log.offset_for_timestamp(0, up_to=2) is None
    assert log.max_timestamp_offset(2) == (-1, 0, 0)  # the first record, as in Apache Kafka


def test_the_latest_record_may_be_deleted(tool):
    """As in Apache Kafka records before the log start offset count while they are on the disk."""
    log = tool.create()
    tool.append(log, 1, timestamp=9)
    tool.append(log, 1, timestamp=5)
    log.maybe_set_high_watermark(2)
    log.delete_records_before(1)
    assert log.max_timestamp_offset(2) == (9, 0, 0)


def test_an_empty_log_has_no_timestamps(tool):
    log = tool.create()
    assert log.offset_for_timestamp(0, up_to=0) is None
    assert log.max_timestamp_offset(0) is None


def test_records_that_are_not_cached(memory_tool, monkeypatch):
    log = memory_tool.create(segment_bytes=200)
    for _ in range(8):
        memory_tool.append(log, 1)
    monkeypatch.setattr(MemoryFile, "is_cached", lambda file, size, at: False)
    first, active = log.segments[0], log.segments.active
    with pytest.raises(NotCached) as raised:
        log.read(1, 1 << 20, up_to=8, minimum_one=True, cached_only=True)
    at = first.locate(1)
    assert (raised.value.path, raised.value.at, raised.value.size) == (first.path(".log"), at, first.size - at)
    assert log.read(1, 1 << 20, up_to=8, minimum_one=True)
    assert log.read(7, 1 << 20, up_to=8, minimum_one=True, cached_only=True), "the end of the log was just written"
    monkeypatch.setattr(segment, "_RECENT_BYTES", 0)
    assert log.read(7, 1 << 20, up_to=8, minimum_one=True, cached_only=True)
    with pytest.raises(NotCached):
        log.read(active.base_offset, active.size // 2, up_to=8, minimum_one=True, cached_only=True)


# ------------------------------------------------------------ epochs and producers


def test_an_epoch_starts_at_its_first_append(tool):
    log = tool.create()
    tool.append(log, 3, epoch=2)
    tool.append(log, 3, epoch=2)
    tool.append(log, 3, epoch=5)
    log.assign_leader_epoch(6)
    assert log.leader_epochs.entries == [(2, 0), (5, 6), (6, 9)]
    assert log.latest_epoch == 6
    assert [log.end_offset_for_epoch(epoch) for epoch in (2, 4, 5, 6, 7)] == [(2, 6), (2, 6), (5, 9), (6, 9), (-1, -1)]


def test_a_duplicate_is_not_appended(tool):
    log = tool.create()
    tool.append(log, 3, producer_id=1, producer_epoch=0, base_sequence=0, timestamp=77)
    tool.append(log, 2, producer_id=1, producer_epoch=0, base_sequence=3)
    size = log.size
    again = tool.append(log, 3, producer_id=1, producer_epoch=0, base_sequence=0)
    assert again == Appended(0, 2, 77, True)
    assert (log.size, log.log_end_offset) == (size, 5)
    with pytest.raises(OutOfOrderSequenceNumber):
        tool.append(log, 3, producer_id=1, producer_epoch=0, base_sequence=9)
    assert log.log_end_offset == 5
    assert [entry.last_sequence for entry in log.active_producers()] == [4]


# ------------------------------------------------------------ appends as a follower


def test_a_follower_appends_the_batches_of_the_leader(tool, memory_tool, batch):
    leader = memory_tool.create()
    for count, epoch in ((3, 1), (1, 1), (4, 2), (2, 4)):
        memory_tool.append(
            leader, count, epoch=epoch, producer_id=8, producer_epoch=0, base_sequence=leader.log_end_offset
        )
    follower = tool.create(segment_bytes=2 * batch(4).size_in_bytes)
    data = leader.read(0, 1 << 20, up_to=10, minimum_one=True)
    assert follower.append_as_follower(data, now_ms=NOW_MS) == Appended(0, 9, -1, False)
    assert b"".join(segment.file.pread(1 << 20, 0) for segment in follower.segments) == data
    assert len(follower.segments) > 1
    assert follower.leader_epochs.entries == leader.leader_epochs.entries
    assert follower.active_producers()[0].batches == leader.active_producers()[0].batches
    assert follower.high_watermark == 0


@pytest.mark.parametrize("damage", ["crc", "offset", "none"])
def test_a_follower_appends_all_batches_or_none(tool, batch, damage):
    first, second = batch(3, base_offset=0), batch(3, base_offset=2 if damage == "offset" else 3)
    data = bytearray(bytes(first.buffer) + bytes(second.buffer))
    if damage == "crc":
        data[-1] ^= 1
    if damage == "none":
        data.clear()
    log = tool.create()
    with pytest.raises(OffsetOutOfRange if damage == "offset" else CorruptMessage):
        log.append_as_follower(data, now_ms=NOW_MS)
    assert (log.log_end_offset, log.size) == (0, 0)


def test_a_follower_leaves_a_last_batch_out_that_is_cut_off(tool, batch):
    """A fetch may end within a batch; the next one begins with it."""
    first, second = batch(3, base_offset=0), batch(3, base_offset=3)
    log = tool.create()
    log.append_as_follower(bytes(first.buffer) + bytes(second.buffer)[:-1], now_ms=NOW_MS)
    assert (log.log_end_offset, log.size) == (3, first.size_in_bytes)


def test_a_follower_may_have_gaps(tool, batch):
    log = tool.create()
    for offset in (5, 9, 4_000_000_000):
        log.append_as_follower(batch(2, base_offset=offset).buffer, now_ms=NOW_MS)
    assert log.log_end_offset == 4_000_000_002
    assert len(log.segments) == 2
    found = []
    offset = 0
    while data := log.read(offset, 100, up_to=log.log_end_offset, minimum_one=True):
        found += [made.base_offset for made in batches(data)]
        offset = found[-1] + 2
    assert found == [5, 9, 4_000_000_000]


# ------------------------------------------------------------ truncation and deletion


def test_truncating_anywhere(tool):
    log = tool.create(segment_bytes=600, index_interval_bytes=100)
    starts = []
    for number, count in enumerate((1, 4, 2, 6, 1, 3, 5, 1, 2)):
        starts.append(log.log_end_offset)
        tool.append(log, count, epoch=number // 2, producer_id=1, producer_epoch=0, base_sequence=log.log_end_offset)
    for offset in range(log.log_end_offset, -1, -1):
        log.truncate_to(offset, NOW_MS)
        end = max((start for start in [*starts, log.log_end_offset] if start <= offset), default=0)
        assert log.log_end_offset == end <= offset
        assert log.high_watermark <= end
        assert [record.offset for record in tool.records(log)] == list(range(end))
        assert all(start < end for _, start in log.leader_epochs.entries)
        assert sum(entry.last_sequence + 1 for entry in log.active_producers()) == end
        again = tool.open(segment_bytes=600)
        assert (again.log_end_offset, again.leader_epochs.entries) == (end, log.leader_epochs.entries)


def test_truncating_at_the_end_removes_an_epoch_without_records(tool):
    """A broker that has led an epoch without an append follows the leader of another one."""
    log = tool.create()
    tool.append(log, 2, epoch=1)
    log.assign_leader_epoch(5)
    log.truncate_to(2)
    assert log.latest_epoch == 1
    tool.append(log, 1, epoch=3)
    assert log.leader_epochs.entries == [(1, 0), (3, 2)]


def test_appending_after_truncating(tool):
    log = tool.create(segment_bytes=600)
    for _ in range(10):
        tool.append(log, 4)
    log.truncate_to(12, NOW_MS)
    for _ in range(10):
        tool.append(log, 3, epoch=1)
    assert [record.offset for record in tool.records(log)] == list(range(42))
    assert log.leader_epochs.entries == [(0, 0), (1, 12)]


def test_truncating_fully(tool):
    log = tool.create(segment_bytes=600)
    for _ in range(10):
        tool.append(log, 4, producer_id=1, producer_epoch=0, base_sequence=log.log_end_offset)
    log.truncate_fully_and_start_at(1000, NOW_MS)
    assert (log.log_start_offset, log.high_watermark, log.log_end_offset) == (1000, 1000, 1000)
    assert log.active_producers() == []
    assert tool.append(log, 2).base_offset == 1000
    again = tool.open()
    assert (again.log_start_offset, again.log_end_offset) == (1000, 1002)


def test_deleting_records(tool):
    log = tool.create(segment_bytes=600)
    for epoch in range(10):
        tool.append(log, 4, epoch=epoch)
    log.delete_records_before(21)
    assert (log.log_start_offset, log.log_end_offset) == (21, 40)
    assert log.leader_epochs.entries[0] == (5, 21)
    assert tool.records(log)[0].offset == 21
    log.delete_records_before(3)
    assert log.log_start_offset == 21
    with pytest.raises(OffsetOutOfRange, match="high watermark 40"):
        log.delete_records_before(41)
    log.delete_records_before(40)
    assert tool.records(log) == []
    before = len(log.segments)
    assert log.enforce_retention(NOW_MS) == before - 1
    assert len(log.segments) == 1
    assert tool.append(log, 1).base_offset == 40


# ------------------------------------------------------------ flushing


def test_a_flush_moves_the_recovery_point(tool):
    log = tool.create()
    tool.append(log, 5)
    assert log.recovery_point == 0
    log.flush()
    assert log.recovery_point == 5
    assert log.begin_flush() is None


def test_a_flush_calls_the_waiters(tool):
    log = tool.create()
    tool.append(log, 5)
    results = []
    log.when_flushed(3, lambda: results.append(3))
    log.when_flushed(9, lambda: results.append(9))
    log.flush()
    assert results == [3]
    log.when_flushed(5, lambda: results.append(5))
    assert results == [3, 5]


def test_a_flush_that_began_before_a_truncation(tool):
    log = tool.create()
    tool.append(log, 5)
    tool.append(log, 5)
    flush = log.begin_flush()
    log.truncate_to(5, NOW_MS)
    tool.append(log, 7)
    flush.run()
    log.finish_flush(flush)
    assert log.recovery_point == 0


def test_flush_messages_requests_a_flush(tool):
    due = []
    tool.services.request_flush = lambda log, up_to: due.append(up_to)
    log = tool.create(flush_messages=3)
    for _ in range(4):
        tool.append(log, 2)
        if due:
            log.recovery_point = due[-1]
    assert due == [4, 8]


def test_a_roll_requests_a_flush(tool, batch):
    due = []
    tool.services.request_flush = lambda log, up_to: due.append(up_to)
    log = tool.create(segment_bytes=2 * batch(1).size_in_bytes)
    for _ in range(5):
        tool.append(log, 1)
    assert due == [2, 4]


def test_flush_ms(tool):
    log = tool.create(flush_ms=1000)
    assert not log.is_flush_due(NOW_MS + 5000)
    tool.append(log, 1)
    assert not log.is_flush_due(NOW_MS + 999)
    assert log.is_flush_due(NOW_MS + 1000)
    log.finish_flush(log.begin_flush(), NOW_MS + 1000)
    tool.append(log, 1)
    assert not log.is_flush_due(NOW_MS + 1999)


# ------------------------------------------------------------ the disk


class RecordingServices(LogServices):
    """Records the failure."""

    def storage_failed(self, log, error):
        self.failure = (log, error.errno)


@pytest.mark.parametrize("short", [0, 1, 50])
def test_a_failed_write_is_cut_back(tool, monkeypatch, short):
    tool.services = RecordingServices(tool.services.log_directory)
    log = tool.create()
    tool.append(log, 3)
    before = log.size
    active = log.segments.active
    write = active.file.write

    def fail(data):
        write(memoryview(data)[:short])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(type(active.file), "write", lambda file, data: fail(data))
    with pytest.raises(KafkaStorageError, match="No space"):
        tool.append(log, 3)
    assert tool.services.failure == (log, errno.ENOSPC)
    assert tool.files.sizes(tool.directory)["00000000000000000000.log"] == before
    assert log.log_end_offset == 3


def test_an_offline_log_raises(tool):
    log = tool.create()
    tool.append(log, 3)
    log.go_offline("the disk is on fire")
    calls = [
        lambda: tool.append(log, 1),
        lambda: log.read(0, 100, up_to=3, minimum_one=True),
        lambda: log.offset_for_timestamp(0, 3),
        lambda: log.delete_records_before(2),
        lambda: log.truncate_to(1),
        lambda: log.flush(),
        lambda: log.enforce_retention(NOW_MS),
    ]
    for call in calls:
        with pytest.raises(KafkaStorageError, match="on fire"):
            call()
    assert log.is_offline
    log.close()


# ------------------------------------------------------------ costs


def operations(tool, log, monkeypatch, kinds=("pread", "write")):
    """Counts the calls of the methods of files."""
    counts = dict.fromkeys(kinds, 0)
    for kind in kinds:
        method = getattr(type(log.segments.active.file), kind)

        def counted(file, *arguments, method=method, kind=kind):
            counts[kind] += 1
            return method(file, *arguments)

        monkeypatch.setattr(type(log.segments.active.file), kind, counted)
    return counts


def test_an_append_is_one_write_at_any_size_of_the_log(tool, monkeypatch):
    log = tool.create(index_interval_bytes=300)
    counts = operations(tool, log, monkeypatch)
    for length in range(1, 400):
        tool.append(log, 2)
        assert counts == {"pread": 0, "write": length}


@pytest.mark.parametrize("batches_in_log", [20, 200, 2000])
def test_a_read_costs_the_same_at_any_size_of_the_log(memory_tool, monkeypatch, batches_in_log):
    log = memory_tool.create(segment_bytes=40_000, index_interval_bytes=300)
    for _ in range(batches_in_log):
        memory_tool.append(log, 2)
    counts = operations(memory_tool, log, monkeypatch)
    offset = log.log_end_offset // 2
    for number in itertools.count(1):
        data = log.read(offset, 3000, up_to=log.log_end_offset, minimum_one=True)
        if not data:
            break
        offset = list(batches(data))[-1].next_offset
        assert counts["pread"] <= 3 * number + 1


def test_a_reader_at_the_end_needs_one_pread(memory_tool, monkeypatch):
    log = memory_tool.create(index_interval_bytes=300)
    memory_tool.append(log, 2)
    log.read(0, 3000, up_to=2, minimum_one=True)
    counts = operations(memory_tool, log, monkeypatch)
    for number in range(1, 200):
        offset = log.log_end_offset
        memory_tool.append(log, 2)
        assert log.read(offset, 3000, up_to=offset + 2, minimum_one=True)
        assert counts["pread"] == number

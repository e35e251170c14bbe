"""A pass over a log, compared with a model of what is retained, and single cases."""

import errno
import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.clock import ManualClock
from barnabas.errors import CorruptMessage
from barnabas.log.cleaning.cleaning import clean
from barnabas.log.files import MemoryFiles
from barnabas.log.index_cache import IndexCache
from barnabas.log.segment import Segment
from barnabas.log.transaction_index import decode_transactions
from barnabas.records.batch import HEADER_SIZE, Compression, RecordBatch
from barnabas.records.record import Record, records_of
from barnabas.testing.faults import FaultyFiles
from tests.log.cleaning.building import (
    DAY_MS,
    DIRECTORY,
    NOW_MS,
    LogBuilder,
    batches_in,
    clean_in_place,
    cleaned,
    records_in_all,
    run,
)

TOMBSTONE = None
CODECS = pytest.mark.parametrize("codec", list(Compression), ids=lambda codec: codec.name.lower())


@pytest.fixture
def log() -> LogBuilder:
    return LogBuilder(MemoryFiles())


def kept(log: LogBuilder, **changes: object) -> list[RecordBatch]:
    job = log.job(**changes)
    groups, _ = run(log.files, job)
    return cleaned(log.files, job, groups)


def offsets(found: list[RecordBatch]) -> list[int]:
    return [record.offset for record in records_in_all(found)]


# ---------------------------------------------------------------- the model

keys = st.sampled_from([None, b"", b"a", b"b", b"c", b"k" * 39, b"k" * 40, b"k" * 41, b"long" * 1000])
values = st.one_of(st.none(), st.binary(max_size=40))
headers = st.lists(st.tuples(st.text(max_size=3), st.one_of(st.none(), st.binary(max_size=3))), max_size=2)
times = st.integers(-2000, 2000).map(lambda delta: NOW_MS + delta)
batch_of_records = st.lists(st.tuples(keys, values, times, headers), min_size=1, max_size=6)
steps = st.one_of(
    st.tuples(st.just("data"), batch_of_records, st.sampled_from(Compression), st.booleans()),
    st.tuples(st.just("horizon"), batch_of_records, st.sampled_from([-1000, 0, 1000])),
    st.tuples(st.just("producer"), batch_of_records, st.integers(1, 3)),
    st.tuples(st.just("transaction"), batch_of_records, st.integers(10, 12)),
    st.tuples(st.just("end"), st.booleans(), st.integers(10, 12)),
    st.tuples(st.just("roll")),
)


def build(log: LogBuilder, story: list[tuple]) -> set[int]:
    """Writes the log of these steps. Returns the offsets of records of aborted transactions."""
    aborted: set[int] = set()
    open_offsets: dict[int, list[int]] = {}

    def end(producer: int, commits: bool) -> None:
        if producer in log.open:
            log.marker(producer, commits=commits)
            if not commits:
                aborted.update(open_offsets[producer])
            open_offsets[producer] = []

    for kind, *rest in story:
        if kind == "data":
            records, codec, append_time = rest
            log.data(*records, compression=codec, log_append_time_ms=NOW_MS - 5 if append_time else None)
        elif kind == "horizon":
            log.data(*rest[0], horizon=NOW_MS + rest[1])
        elif kind == "producer":
            log.data(*rest[0], producer=rest[1])
        elif kind == "transaction":
            batch = log.data(*rest[0], producer=rest[1], is_transactional=True)
            open_offsets.setdefault(rest[1], []).extend(range(batch.base_offset, batch.next_offset))
        elif kind == "end":
            end(rest[1], rest[0])
        else:
            log.roll()
    for producer in list(log.open):
        end(producer, False)
    return aborted


def expected(original: list[RecordBatch], aborted: set[int], first_dirty: int) -> list[Record]:
    """Returns the records of data that must be retained, found by a simple search."""
    everything = [(batch, record) for batch in original if not batch.is_control for record in records_of(batch)]
    latest = {
        record.key: record.offset
        for _, record in everything
        if record.offset >= first_dirty and record.offset not in aborted
    }
    return [
        record
        for batch, record in everything
        if record.offset not in aborted
        and record.key is not None
        and record.offset >= latest.get(record.key, -1)
        and not (record.value is None and batch.has_delete_horizon and batch.base_timestamp <= NOW_MS)
    ]


@settings(max_examples=150, deadline=None)
@given(st.lists(steps, max_size=20), st.data())
def test_a_pass_retains_what_the_model_retains(story, data):
    log = LogBuilder(MemoryFiles())
    aborted = build(log, story)
    original = [batch for segment in log.segments for batch in segment]
    first_dirty = data.draw(st.integers(0, log.offset))
    transactions = [each for entries in log.aborted.values() for each in entries]
    if any(each.first_offset <= first_dirty <= each.last_offset for each in transactions):
        first_dirty = 0  # a pass ends before an open transaction
    job = log.job(
        first_dirty_offset=first_dirty, producers=log.producers, segment_bytes=data.draw(st.integers(1, 9999))
    )
    groups, result = run(log.files, job)
    found = cleaned(log.files, job, groups)

    assert result.next_dirty_offset == log.offset
    assert [base for group in groups for base in group.replaces] == [segment.base_offset for segment in job.segments]
    assert records_in_all([batch for batch in found if not batch.is_control]) == expected(
        original, aborted, first_dirty
    )

    before = {batch.base_offset: batch for batch in original}
    for batch in found:
        was = before[batch.base_offset]
        for name in ("last_offset", "producer_id", "producer_epoch", "base_sequence", "partition_leader_epoch"):
            assert getattr(batch, name) == getattr(was, name)
        for name in ("is_control", "is_transactional", "is_log_append_time"):
            assert getattr(batch, name) == getattr(was, name)
        if batch.count == was.count and batch.attributes == was.attributes:
            assert bytes(batch.buffer) == bytes(was.buffer)
        if batch.count:
            assert batch.compression == was.compression
            assert batch.max_timestamp == max(record.timestamp for record in records_of(batch))
    ends = {batch.last_offset for batch in found}
    assert not original or log.offset - 1 in ends
    for producer in log.producers.values():
        assert producer.last_data_offset < 0 or producer.last_data_offset in ends


@settings(max_examples=60, deadline=None)
@given(st.lists(steps, min_size=1, max_size=15), st.integers(1, 6))
def test_a_full_map_takes_more_passes(story, entries):
    log = LogBuilder(MemoryFiles())
    aborted = build(log, story)
    original = [batch for segment in log.segments for batch in segment]
    segments, first_dirty, passes = log.save(), 0, 0
    while first_dirty < log.offset:
        job = log.job(segments, first_dirty_offset=first_dirty, map_entries=entries, producers=log.producers)
        segments, result = clean_in_place(log.files, job)
        assert result.next_dirty_offset > first_dirty
        assert result.statistics.map_is_full == (result.next_dirty_offset < log.offset)
        assert result.statistics.map_entries <= entries
        first_dirty, passes = result.next_dirty_offset, passes + 1
    found = batches_in(log.files, DIRECTORY, [segment.base_offset for segment in segments])
    values = {record.key: record for record in records_in_all([batch for batch in found if not batch.is_control])}
    wanted = {record.key: record for record in expected(original, aborted, 0)}
    assert {key: record for key, record in values.items() if record.value is not None} == {
        key: record for key, record in wanted.items() if record.value is not None
    }


@settings(max_examples=40, deadline=None)
@given(st.lists(steps, max_size=15))
def test_a_second_pass_changes_nothing(story):
    log = LogBuilder(MemoryFiles())
    build(log, story)
    segments, _ = clean_in_place(log.files, log.job(producers=log.producers))
    bases = [segment.base_offset for segment in segments]
    once = [bytes(batch.buffer) for batch in batches_in(log.files, DIRECTORY, bases)]
    job = log.job(segments, producers=log.producers)
    groups, _ = run(log.files, job)
    again = [bytes(batch.buffer) for batch in cleaned(log.files, job, groups)]
    gone = [data for data in once if data not in again]
    # The data of a transaction may be removed by the first pass, so that its marker gets a delete horizon.
    assert all(RecordBatch.parse(data).is_control for data in gone)


# ---------------------------------------------------------------- batches


def one(key: bytes, value: bytes | None = b"v", timestamp: int = NOW_MS) -> tuple[bytes, bytes | None, int]:
    return key, value, timestamp


@CODECS
def test_a_batch_is_compressed_with_its_own_codec(log, codec):
    was = log.data(
        one(b"a", b"1" * 200, 5), one(b"b", b"2" * 200, 7), one(b"c", b"3" * 200, 6), compression=codec, producer=4
    )
    log.data(one(b"a"), one(b"b"))
    first, _ = kept(log)
    assert (first.compression, first.count, first.base_offset, first.last_offset) == (codec, 1, 0, 2)
    assert (first.base_timestamp, first.max_timestamp, first.base_sequence) == (6, 6, was.base_sequence)
    assert list(records_of(first)) == [Record(2, 6, b"c", b"3" * 200)]


@CODECS
def test_an_unchanged_batch_is_not_compressed_again(log, codec):
    level = None if codec in (Compression.NONE, Compression.SNAPPY) else 1  # not the level of the cleaner
    was = log.data(
        *(one(b"%d" % n, b"value %d" % n * 10) for n in range(50)), compression=codec, compression_level=level
    )
    (found,) = kept(log)
    assert bytes(found.buffer) == bytes(was.buffer)


def test_the_base_timestamp_is_that_of_the_first_retained_record(log):
    log.data(one(b"a", b"", 1000), one(b"b", b"", 1000 - 2**40), one(b"c", b"", 1000 + 2**40))
    log.data(one(b"a"))
    first, _ = kept(log)
    assert (first.base_timestamp, first.max_timestamp) == (1000 - 2**40, 1000 + 2**40)
    assert [record.timestamp for record in records_of(first)] == [1000 - 2**40, 1000 + 2**40]


def test_log_append_time_is_kept(log):
    log.data(one(b"a", b"", 5), one(b"b", None, 9), log_append_time_ms=NOW_MS - 3)
    log.data(one(b"a"))
    first, _ = kept(log)
    assert first.is_log_append_time and first.has_delete_horizon
    assert [record.timestamp for record in records_of(first)] == [NOW_MS - 3]


def test_records_without_timestamps(log):
    log.data(one(b"a", b"", -1), one(b"b", b"", -1))
    log.data(one(b"a", b"", -1))
    first, _ = kept(log)
    assert (first.base_timestamp, first.max_timestamp) == (-1, -1)


def test_offsets_in_a_batch_that_descend(log):
    batch = log.data(one(b"a", b"1"), one(b"a", b"2"))
    data = bytearray(batch.buffer)
    at = data.index(b"\x02a\x02")  # key and value, after the offset delta
    data[at - 1], data[data.index(b"\x02a\x02", at + 1) - 1] = 2, 0
    swapped = RecordBatch.parse(data)
    swapped.sign()
    log.segments[-1][0] = swapped
    assert offsets(kept(log)) == [1, 0]  # the last record read counts, and earlier ones are kept


def test_a_batch_larger_than_a_read(log):
    log.data(one(b"a", bytes(3 << 20)), one(b"b", bytes(1 << 20)))
    log.data(one(b"c", b"x"))
    log.data(one(b"a", bytes(2 << 20)))
    assert offsets(kept(log)) == [1, 2, 3]


def test_the_last_batch_is_retained_without_records(log):
    log.data(one(b"a"))
    log.data((None, b"no key", NOW_MS))
    log.data((None, b"no key", NOW_MS - 9), producer=5, compression=Compression.ZSTD)
    _, last = kept(log)
    assert (last.base_offset, last.last_offset, last.count, last.size_in_bytes) == (2, 2, 0, HEADER_SIZE)
    assert (last.compression, last.base_timestamp, last.max_timestamp) == (Compression.NONE, -1, NOW_MS - 9)


def test_a_producer_keeps_its_last_sequence(log):
    log.data(one(b"a"), producer=5)
    was = log.data(one(b"a"), producer=5)
    log.data(one(b"a"))
    assert offsets(kept(log)) == [2]
    first, _ = kept(log, producers=log.producers)
    assert (first.count, first.last_sequence, first.producer_id, first.last_offset) == (0, was.last_sequence, 5, 1)


# ---------------------------------------------------------------- tombstones, markers, transactions


def passes(log: LogBuilder, *times_ms: int, **changes: object) -> list[list[RecordBatch]]:
    """Runs a pass at each of these times. Returns the batches after each."""
    segments, found = log.save(), []
    for now_ms in times_ms:
        job = log.job(segments, now_ms=now_ms, **changes)
        segments, _ = clean_in_place(log.files, job)
        found.append(batches_in(log.files, DIRECTORY, [segment.base_offset for segment in segments]))
    return found


def test_a_tombstone_is_removed_after_delete_retention_ms(log):
    log.data(one(b"a", b"old"), one(b"b", b"x"))
    log.data(one(b"b", b"y", NOW_MS - 5), one(b"a", TOMBSTONE, NOW_MS - 3))
    log.data(one(b"end"))
    first, before, after = passes(log, NOW_MS, NOW_MS + DAY_MS - 1, NOW_MS + DAY_MS)
    dated = first[0]
    assert (dated.has_delete_horizon, dated.base_timestamp) == (True, NOW_MS + DAY_MS)
    assert [record[:4] for record in records_of(dated)] == [
        (2, NOW_MS - 5, b"b", b"y"),
        (3, NOW_MS - 3, b"a", TOMBSTONE),
    ]
    assert [bytes(batch.buffer) for batch in before] == [bytes(batch.buffer) for batch in first]
    assert offsets(after) == [2, 4]
    assert (after[0].has_delete_horizon, after[0].base_timestamp, after[0].max_timestamp) == (
        True,
        NOW_MS + DAY_MS,
        NOW_MS - 5,
    )


def test_tombstones_beyond_a_full_map_get_a_horizon(log):
    log.data(one(b"a"), one(b"b"))
    log.data(one(b"a", TOMBSTONE))
    log.data((None, TOMBSTONE, NOW_MS))
    _, dated, keyless = kept(log, map_entries=1)
    assert dated.has_delete_horizon and keyless.has_delete_horizon


def test_a_marker_is_removed_after_the_data_of_its_transaction(log):
    log.data(one(b"a", b"1"), producer=7, is_transactional=True)
    log.data(one(b"b", b"1"), producer=7, is_transactional=True)
    log.marker(7, commits=True)
    log.data(one(b"a", b"2"))
    log.data(one(b"end"))
    held, same = passes(log, NOW_MS, NOW_MS + 3 * DAY_MS)
    assert offsets(held) == offsets(same) == [1, 2, 3, 4]
    assert not any(batch.has_delete_horizon for batch in same)


def test_a_marker_without_data_gets_a_horizon_and_is_removed(log):
    log.data(one(b"a", b"1"), producer=7, is_transactional=True)
    marker = log.marker(7, commits=True)
    log.data(one(b"a", b"2"))
    still, dated, kept_on, gone = passes(log, NOW_MS, NOW_MS + 5, NOW_MS + 4 + DAY_MS, NOW_MS + 5 + DAY_MS)
    assert bytes(still[0].buffer) == bytes(marker.buffer)  # its data was removed in this pass
    assert (dated[0].is_control, dated[0].has_delete_horizon, dated[0].base_timestamp) == (
        True,
        True,
        NOW_MS + 5 + DAY_MS,
    )
    assert dated[0].max_timestamp == marker.max_timestamp
    assert [len(each) for each in (still, dated, kept_on, gone)] == [2, 2, 2, 1]


def test_the_marker_with_the_last_epoch_of_a_producer_is_retained(log):
    log.marker(7, commits=False, epoch=3, horizon=NOW_MS - 1)
    log.marker(7, commits=False, epoch=4, horizon=NOW_MS - 1)
    log.data(one(b"a"))
    assert offsets(kept(log)) == [2]
    (marker, _) = kept(log, producers=log.producers)
    assert (marker.base_offset, marker.count, marker.producer_epoch, marker.is_control) == (1, 0, 4, True)


def test_aborted_records_are_removed_and_do_not_count(log):
    log.data(one(b"a", b"good"), one(b"b", b"old"))
    log.data(one(b"a", b"aborted"), producer=7, is_transactional=True)
    log.data(one(b"b", b"committed"), producer=8, is_transactional=True)
    log.marker(7, commits=False)
    log.marker(8, commits=True)
    log.data(one(b"c"))
    job = log.job()
    groups, _ = run(log.files, job)
    assert offsets(cleaned(log.files, job, groups)) == [0, 3, 4, 5, 6]
    assert groups[0].has_txn_index
    index = decode_transactions(log.files.read(f"{DIRECTORY}/{0:020d}.txnindex.cleaned"), 0)
    assert index == log.aborted[0]
    first, second = passes(log, NOW_MS, NOW_MS)
    assert offsets(first) == offsets(second) == [0, 3, 4, 5, 6]
    assert not log.files.exists(f"{DIRECTORY}/{0:020d}.txnindex"), "nothing of the transaction is left to leave out"


@pytest.mark.parametrize("tail", [b"", b"\0\0torn"])
def test_an_abort_marker_in_a_segment_that_is_not_cleaned(log, tail):
    log.data(one(b"a", b"good"))
    log.data(one(b"a", b"aborted"), producer=7, is_transactional=True)
    log.data(one(b"end"))
    log.roll()
    log.marker(7, commits=False)
    segments = log.save()
    log.files.open(f"{DIRECTORY}/{3:020d}.txnindex").write(tail)
    job = log.job(segments[:1], end_offset=3)
    groups, _ = run(log.files, job)
    assert offsets(cleaned(log.files, job, groups)) == [0, 2]
    assert not groups[0].has_txn_index


def test_an_invalid_transaction_index_ends_the_pass(log):
    log.data(one(b"a", b"aborted"), producer=7, is_transactional=True)
    log.marker(7, commits=False)
    job = log.job()
    log.files.open(f"{DIRECTORY}/{0:020d}.txnindex").write(b"torn")
    with pytest.raises(CorruptMessage, match="txnindex"):
        run(log.files, job)


# ---------------------------------------------------------------- segments


def test_a_pass_starts_at_the_first_dirty_offset(log):
    log.data(one(b"a"), one(b"b"), one(b"a"), one(b"c"))
    log.data(one(b"c"))
    job = log.job(first_dirty_offset=3)
    groups, result = run(log.files, job)
    # The offset map has only records from the first dirty offset on.
    assert offsets(cleaned(log.files, job, groups)) == [0, 1, 2, 4]
    assert (result.statistics.records_mapped, result.statistics.records_read) == (5, 5)
    assert (result.statistics.map_entries, result.statistics.records_kept) == (1, 4)


def test_the_offset_index_is_used_to_find_the_first_dirty_offset(log):
    for number in range(300):
        log.data(one(b"%d" % number, bytes(100)))
    segments = log.save()
    Segment(log.files, DIRECTORY, 0, segments[0].size, IndexCache()).rebuild_indexes()
    _, result = run(log.files, log.job(segments, first_dirty_offset=290))
    assert result.statistics.records_mapped == 10
    log.files.open(f"{DIRECTORY}/{0:020d}.index").write(b"torn")
    _, result = run(log.files, log.job(segments, first_dirty_offset=290))
    assert result.statistics.records_mapped == 10


def test_a_gap_at_the_end_of_a_segment(log):
    log.data(one(b"a"))
    _, result = run(log.files, log.job(end_offset=10))
    assert result.next_dirty_offset == 10


def test_nothing_to_clean(log):
    groups, result = run(log.files, log.job([], first_dirty_offset=5, end_offset=5))
    assert (groups, result.next_dirty_offset) == ([], 5)


def test_segments_after_a_full_map_are_not_cleaned(log):
    for number in range(3):
        log.data(one(b"%d" % number), one(b"other"))
        log.roll()
    groups, result = run(log.files, log.job(map_entries=2, segment_bytes=1))
    assert (result.next_dirty_offset, result.statistics.map_is_full) == (2, True)
    assert [group.base_offset for group in groups] == [0]


def test_a_group_equals_an_appended_segment(log):
    for number in range(200):
        log.data(one(b"%d" % (number % 50), bytes(50), NOW_MS + number * 7 % 31))
        if number % 40 == 39:
            log.roll()
    segments = log.save()
    groups, result = run(log.files, log.job(segments, index_interval_bytes=500))
    (group,) = groups
    assert group.replaces == [segment.base_offset for segment in segments]
    assert group.modified_ms == segments[-1].modified_ms == log.files.modified_ms(f"{DIRECTORY}/{0:020d}.log.cleaned")
    assert group.size == result.statistics.bytes_kept
    written = {suffix: log.files.read(f"{DIRECTORY}/{0:020d}{suffix}.cleaned") for suffix in (".index", ".timeindex")}
    log.files.rename(f"{DIRECTORY}/{0:020d}.log.cleaned", f"{DIRECTORY}/{0:020d}.log")
    segment = Segment(log.files, DIRECTORY, 0, group.size, IndexCache())
    segment.index_interval = 500
    segment.rebuild_indexes()
    assert (group.max_timestamp, group.max_timestamp_offset) == segment.largest_timestamp()
    for suffix, data in written.items():
        assert len(data) >= 24
        assert data == log.files.read(segment.path(suffix))


def test_a_group_may_be_empty(log):
    log.data(one(b"a"))
    log.roll()
    log.data(one(b"a"))
    groups, _ = run(log.files, log.job(segment_bytes=1))
    assert [(group.size, group.max_timestamp, group.max_timestamp_offset) for group in groups] == [
        (0, -1, 0),
        (70, NOW_MS, 1),
    ]


# ---------------------------------------------------------------- errors and limits


@pytest.mark.parametrize("codec", [Compression.NONE, Compression.GZIP])
def test_a_flipped_bit_ends_the_pass(log, codec):
    log.data(one(b"a"))
    second = log.data(one(b"a", b"value" * 50), compression=codec)
    job = log.job()
    position = 70
    content = log.files.open(f"{DIRECTORY}/{0:020d}.log").content
    content[position + second.size_in_bytes - 5] ^= 4
    with pytest.raises(CorruptMessage, match=rf"{0:020d}\.log at position {position}: .*crc"):
        run(log.files, job)
    assert [name for name in log.files.sizes(DIRECTORY) if name.endswith(".cleaned")] == []


@pytest.mark.parametrize("left", [70 + 61, 70 + 30, 70 + 3])
def test_a_truncated_file_ends_the_pass(log, left):
    log.data(one(b"a"))
    log.data(one(b"b", b"value" * 50))
    job = log.job()
    log.files.open(f"{DIRECTORY}/{0:020d}.log").truncate(left)
    job = job._replace(segments=[job.segments[0]._replace(size=left)])
    with pytest.raises(CorruptMessage, match=r"log at position 70"):
        run(log.files, job)


def test_records_that_do_not_fill_their_batch(log):
    batch = log.data(one(b"a"), one(b"b"))
    data = bytearray(batch.buffer)
    data[60] = 1  # a count of 1
    lying = RecordBatch.parse(data)
    lying.sign()
    log.segments[-1] = [lying]
    with pytest.raises(CorruptMessage, match="position 0"):
        run(log.files, log.job())


def test_a_failure_leaves_no_incomplete_group():
    for fail_at in itertools.count(1):
        files = FaultyFiles(clock=ManualClock(), lasting="once", code=errno.ENOSPC)
        log = LogBuilder(files)
        for number in range(4):
            log.data(one(b"a", b"%d" % number * 100), producer=7, is_transactional=True)
            log.roll()
        log.marker(7, commits=False)
        job = log.job(segment_bytes=1)
        before = files.sizes(DIRECTORY)
        files.fail_at = len(files.changes) + fail_at
        passing = clean(files, job, ManualClock())
        finished: list[str] = []
        try:
            for group in passing:
                finished += [name for name in files.sizes(DIRECTORY) if name.startswith(f"{group.base_offset:020d}")]
        except OSError as error:
            assert error.errno == errno.ENOSPC
        if not files.has_failed:
            break
        if files.changes[files.fail_at - 1][0] == "delete":
            continue  # nothing was written yet
        assert set(files.sizes(DIRECTORY)) == set(before) | set(finished)
    assert fail_at > 40


def test_the_limit_of_bytes_per_second(log):
    log.data(*(one(b"%d" % number, bytes(1000)) for number in range(100)))
    clock = ManualClock()
    _, result = run(log.files, log.job(max_bytes_per_second=10_000), clock, sleep=clock.advance)
    moved = result.statistics.bytes_mapped + result.statistics.bytes_read
    assert result.statistics.seconds == pytest.approx(moved / 10_000, rel=0.1)
    _, result = run(log.files, log.job(), clock, sleep=pytest.fail)
    assert result.statistics.seconds == 0


def test_a_pass_can_be_aborted(log):
    log.data(one(b"a"))

    def enough() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(log.files, log.job(), check_aborted=enough)
    assert [name for name in log.files.sizes(DIRECTORY) if name.endswith(".cleaned")] == []

"""A pass over a log, against a model of what has to stay and against cases that are told one by one."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.clock import ManualClock
from barnabas.errors import CorruptMessage
from barnabas.log.files import DiskFiles, MemoryFiles
from barnabas.log.index_cache import IndexCache
from barnabas.log.segment import Segment
from barnabas.log.transaction_index import decode_transactions
from barnabas.records.batch import HEADER_SIZE, Compression, RecordBatch
from barnabas.records.record import Record, records_of

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
    """Write the log that the steps tell; gives the offsets of records of aborted transactions."""
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
    """The records of data that have to stay, found the slow way."""
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
def test_what_stays_is_what_a_simple_model_keeps(story, data):
    log = LogBuilder(MemoryFiles())
    aborted = build(log, story)
    original = [batch for segment in log.segments for batch in segment]
    first_dirty = data.draw(st.integers(0, log.offset))
    if any(first <= first_dirty <= last for _, first, last, _ in sum(log.aborted.values(), [])):
        first_dirty = 0  # an open transaction is never passed
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
def test_a_full_map_only_takes_more_passes(story, entries):
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
def test_a_second_pass_finds_nothing_to_do(story):
    log = LogBuilder(MemoryFiles())
    build(log, story)
    segments, _ = clean_in_place(log.files, log.job(producers=log.producers))
    bases = [segment.base_offset for segment in segments]
    once = [bytes(batch.buffer) for batch in batches_in(log.files, DIRECTORY, bases)]
    job = log.job(segments, producers=log.producers)
    groups, _ = run(log.files, job)
    again = [bytes(batch.buffer) for batch in cleaned(log.files, job, groups)]
    gone = [data for data in once if data not in again]
    # What was a transaction's data is away now, so that its marker may be on its way too.
    assert all(RecordBatch.parse(data).is_control for data in gone)

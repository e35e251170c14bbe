"""A follower becomes a copy of its source, wherever the two logs diverge, also after deletions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.config.topic import TopicConfig
from barnabas.errors import CorruptMessage, OffsetOutOfRange
from barnabas.log.files import MemoryFiles
from barnabas.log.follower import EpochEnd, Fetched, Follower, LogSource, Position
from barnabas.log.log_directory import LogDirectory
from barnabas.log.partition_log import LogServices
from barnabas.log.recovery import create_log
from barnabas.records.batch import RecordBatch, batches
from barnabas.records.builder import build_batch
from barnabas.records.record import records_of
from tests.log.conftest import make_batch

ID = bytes(range(16))


def new_log(name, **config):
    files = MemoryFiles()
    files.makedirs("/data")
    services = LogServices(LogDirectory(files, "/data"))
    return create_log(services, f"/data/{name}-0", name, 0, ID, TopicConfig(**config), now_ms=0)


def append(log, *epochs, count=1):
    """Appends a batch of ``count`` records in each of these epochs. The value names epoch and offset."""
    for epoch in epochs:
        end = log.log_end_offset
        log.append_as_leader(
            make_batch([b"%d at %d" % (epoch, end + number) for number in range(count)]), leader_epoch=epoch, now_ms=0
        )
    log.maybe_set_high_watermark(log.log_end_offset)


def content(log):
    found, offset = [], log.log_start_offset
    while data := log.read(offset, 1 << 20, up_to=log.log_end_offset, minimum_one=True):
        for batch in batches(data):
            found += [(each.offset, each.value, batch.partition_leader_epoch) for each in records_of(batch)]
            offset = batch.next_offset
    return [each for each in found if each[0] >= log.log_start_offset]


def copy(follower, source, *, max_bytes=1 << 20):
    """Fetches until the follower has caught up, as a fetcher does. Returns the responses."""
    answers = []
    for _ in range(100):
        try:
            fetched = source.fetch(follower.position, max_bytes)
        except OffsetOutOfRange:
            start = source.log.log_start_offset
            if not follower.handle_out_of_range(start, source.log.log_end_offset, 0):
                follower.log.truncate_fully_and_start_at(start, 0)
            continue
        answers.append(fetched)
        follower.apply(fetched, 0)
        if fetched.diverging_epoch is None and follower.log.log_end_offset == source.log.log_end_offset:
            return answers
    raise AssertionError("the follower does not catch up")


def check_equal(follower, source):
    copied, original = follower.log, source.log
    assert content(copied) == content(original)
    assert copied.leader_epochs.entries == original.leader_epochs.entries
    assert (copied.log_start_offset, copied.high_watermark, copied.log_end_offset) == (
        original.log_start_offset,
        original.high_watermark,
        original.log_end_offset,
    )


@pytest.fixture
def source():
    return LogSource(new_log("source", segment_bytes=400))


@pytest.fixture
def follower():
    return Follower(new_log("follower", segment_bytes=400))


@pytest.mark.parametrize("max_bytes", [1, 100, 1 << 20])
def test_everything_is_copied(source, follower, max_bytes):
    append(source.log, 0, 0, 3, 3, 7, count=2)
    copy(follower, source, max_bytes=max_bytes)
    check_equal(follower, source)
    append(source.log, 7, 8)
    copy(follower, source, max_bytes=max_bytes)
    check_equal(follower, source)


def test_the_position(source, follower):
    assert follower.position == Position(0, -1)
    append(source.log, 0, 2, 2)
    copy(follower, source)
    assert follower.position == Position(3, 2)


def test_a_source_without_new_records(source, follower):
    append(source.log, 0)
    copy(follower, source)
    (answer,) = copy(follower, source)
    assert answer == Fetched(b"", 1, 0)


def test_the_high_watermark_is_not_above_the_copied_records(source, follower):
    append(source.log, 0, 0, 0)
    follower.apply(source.fetch(follower.position, 1), 0)
    assert (follower.log.log_end_offset, follower.log.high_watermark) == (1, 1)


def test_uncommitted_records_are_copied(source, follower):
    append(source.log, 0)
    source.log.append_as_leader(make_batch(1), leader_epoch=0, now_ms=0)
    copy(follower, source)
    assert (follower.log.log_end_offset, follower.log.high_watermark) == (2, 1)


# ------------------------------------------------------------ diverging logs


@pytest.mark.parametrize(
    ("of_source", "of_follower", "common"),
    [
        ([0, 0, 0], [0, 0, 0, 0, 0], 3),
        ([0, 0, 2, 2], [0, 0, 1, 1, 1], 2),
        ([0, 0, 2, 2], [0, 0, 0, 1], 2),
        ([0, 3, 3], [0, 1, 2], 1),
        ([0, 1, 1, 4], [0, 1, 2, 3], 2),
        ([2, 2], [1, 1, 1], 0),
        ([1, 3, 5, 5], [1, 2, 4, 4], 1),
        ([0], [0, 5], 1),
    ],
)
def test_diverging_epochs(source, follower, of_source, of_follower, common):
    append(source.log, *of_source)
    append(follower.log, *of_follower)
    truncated = []
    follower.log._services.log_truncated = lambda log, end: truncated.append(end)
    copy(follower, source)
    check_equal(follower, source)
    assert min(truncated) in (common, 0)  # 0 where the source does not know the epoch


def test_a_diverging_epoch_is_that_of_a_leader(source, follower):
    append(source.log, 0, 0, 2)
    append(follower.log, 0, 0, 0, 1)
    fetched = source.fetch(follower.position, 100)
    assert fetched.diverging_epoch == EpochEnd(0, 2)
    assert not fetched.data
    assert follower.apply(fetched, 0) == 0
    assert follower.position == Position(2, 0)


def test_an_epoch_of_the_source_that_the_follower_does_not_know(source, follower):
    """The follower truncates its log to the end of its own epoch below, and the next fetch diverges again."""
    append(source.log, 0, 0, 2, 2, 4)
    append(follower.log, 0, 0, 0, 1, 1, 3)
    answers = copy(follower, source)
    assert [answer.diverging_epoch for answer in answers] == [EpochEnd(2, 4), EpochEnd(0, 2), None]
    check_equal(follower, source)


def test_a_follower_that_led_an_epoch_without_records(source, follower):
    append(source.log, 0, 0, 2)
    append(follower.log, 0, 0)
    follower.log.assign_leader_epoch(1)
    assert follower.position == Position(2, 1)
    copy(follower, source)
    check_equal(follower, source)


def test_a_follower_whose_last_epoch_has_no_records_left(source, follower):
    append(source.log, 0, 0, 2, 2)
    append(follower.log, 0, 0, 1)
    follower.log.delete_records_before(3)
    copy(follower, source)
    assert content(follower.log) == content(source.log)[2:]


# ------------------------------------------------------------ offsets out of range


def test_a_follower_that_ends_before_the_source_starts(source, follower):
    append(source.log, 0, 0, 0, 1, 1)
    copy(follower, source)
    append(source.log, 1, 1, 1)
    source.log.delete_records_before(7)
    copy(follower, source)
    check_equal(follower, source)


def test_a_follower_beyond_the_end_of_a_source_without_epochs(source, follower):
    append(source.log, -1, -1)
    append(follower.log, -1, -1, -1, -1)
    copy(follower, source)
    check_equal(follower, source)


def test_a_follower_with_a_later_epoch_than_the_source(source, follower):
    append(source.log, 1, 1, 1)
    append(follower.log, 0, 4)
    with pytest.raises(OffsetOutOfRange):
        source.fetch(follower.position, 100)
    copy(follower, source)
    check_equal(follower, source)


def test_a_log_start_offset_within_a_batch(source, follower):
    append(source.log, 0, count=5)
    append(source.log, 0)
    source.log.delete_records_before(3)
    copy(follower, source)
    check_equal(follower, source)
    assert follower.log.segments.start == 0


def test_records_are_deleted_at_the_source(source, follower):
    append(source.log, 0, 0, 1)
    copy(follower, source)
    source.log.delete_records_before(2)
    copy(follower, source)
    check_equal(follower, source)


def produced(log, sequence, epoch, *, count=2, **batch):
    """Appends a batch of a producer, which nobody knows to be committed."""
    values = [(None, b"%d" % number, 0) for number in range(count)]
    data = build_batch(values, producer_id=7, producer_epoch=0, base_sequence=sequence, **batch)
    log.append_as_leader(RecordBatch.parse(data), leader_epoch=epoch, now_ms=0)


def known(log):
    """Returns the sequences and offsets of the batches of the producer."""
    entry = log.producers.entries.get(7)
    return [] if entry is None else [(each.first_sequence, each.first_offset) for each in entry.batches]


def test_what_may_never_have_been_committed_is_removed(source, follower):
    """A leader that was cut off has records that the next one has deleted at their offsets, others than these."""
    for log in (source.log, follower.log):
        produced(log, 0, 0)
        log.maybe_set_high_watermark(2)
    produced(follower.log, 2, 0)
    follower.log.producers.take_snapshot(4)
    source.log.assign_leader_epoch(1)
    append(source.log, 1, count=2)
    source.log.delete_records_before(4)
    append(source.log, 1)
    fetched = source.fetch(follower.position, 1 << 20)
    assert fetched.diverging_epoch is None
    follower.apply(fetched, 0, leader_epoch=1)
    assert follower.log.segments.start == 4
    follower.log.load_producers()
    assert known(follower.log) == []
    produced(source.log, 2, 1)
    copy(follower, source)
    check_equal(follower, source)
    assert known(follower.log) == [(2, 5)]


def test_a_transaction_that_may_never_have_been_committed_holds_nothing_back(source, follower):
    produced(follower.log, 0, 0, is_transactional=True)
    assert follower.log.last_stable_offset == 0
    append(source.log, 1, count=2)
    source.log.delete_records_before(2)
    follower.apply(source.fetch(follower.position, 1 << 20), 0, leader_epoch=1)
    assert (follower.log.log_start_offset, follower.log.last_stable_offset, follower.log.log_end_offset) == (2, 2, 2)
    append(source.log, 1)
    copy(follower, source)
    check_equal(follower, source)


def test_records_of_the_leaders_epoch_are_its_own(source, follower):
    """They are committed before the follower hears of it, and deleted at once."""
    produced(source.log, 0, 1)
    follower.apply(source.fetch(follower.position, 1 << 20), 0, leader_epoch=1)
    source.log.maybe_set_high_watermark(2)
    source.log.delete_records_before(2)
    follower.apply(source.fetch(follower.position, 1 << 20), 0, leader_epoch=1)
    assert follower.log.log_start_offset == 2
    assert known(follower.log) == [(0, 0)]


def test_batches_with_other_boundaries_are_copied_again(source, follower, caplog):
    append(source.log, -1, count=4)
    append(follower.log, -1, -1)
    copy(follower, source)
    check_equal(follower, source)
    assert "inside of a batch" in caplog.text


def test_a_source_without_the_batch(source, follower, monkeypatch):
    append(source.log, 0)
    monkeypatch.setattr(type(source.log.segments), "read", lambda *arguments: b"")
    with pytest.raises(CorruptMessage, match="no batch at offset 0"):
        source.fetch(follower.position, 100)


# ------------------------------------------------------------ any history


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("lead"), st.booleans()),
            st.tuples(st.just("append"), st.integers(1, 3)),
            st.tuples(st.just("copy"), st.integers(1, 200)),
            st.tuples(st.just("delete"), st.integers(0, 5)),
        ),
        max_size=30,
    )
)
def test_two_replicas_that_lead_in_turns(steps):
    """One replica leads at a time, also one that has not caught up. The other one becomes equal to it in the end."""
    logs = [new_log("a", segment_bytes=300), new_log("b", segment_bytes=300)]
    leader, epoch = 0, 0
    for step, value in steps:
        log, other = logs[leader], logs[1 - leader]
        if step == "lead":
            leader, epoch = int(value), epoch + 1
            logs[leader].assign_leader_epoch(epoch)
        elif step == "append":
            append(log, epoch, count=value)
        elif step == "delete":
            log.delete_records_before(min(log.log_start_offset + value, log.high_watermark))
        else:
            follower, source = Follower(other), LogSource(log)
            try:
                follower.apply(source.fetch(follower.position, value), 0)
            except OffsetOutOfRange:
                follower.handle_out_of_range(log.log_start_offset, log.log_end_offset, 0)
    follower, source = Follower(logs[1 - leader]), LogSource(logs[leader])
    copy(follower, source)
    start = follower.log.log_start_offset  # a deletion that the new leader did not know
    assert content(follower.log) == [each for each in content(source.log) if each[0] >= start]
    assert follower.log.log_end_offset == source.log.log_end_offset

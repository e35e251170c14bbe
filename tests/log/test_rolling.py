"""When a partition log begins a new segment: by size, by time, and by full indexes."""

import pytest

from barnabas.errors import RecordListTooLarge

NOW_MS = 1_700_000_000_000
DAY_MS = 86_400_000


def test_a_roll_by_size(tool, batch):
    size = batch(1).size_in_bytes
    log = tool.create(segment_bytes=3 * size)
    for _ in range(7):
        tool.append(log, 1)
    assert [(segment.base_offset, segment.size) for segment in log.segments] == [
        (0, 3 * size),
        (3, 3 * size),
        (6, size),
    ]
    assert [record.offset for record in tool.records(log)] == list(range(7))


def test_a_batch_larger_than_a_segment_is_refused(tool, batch):
    log = tool.create(segment_bytes=batch(10).size_in_bytes - 1)
    with pytest.raises(RecordListTooLarge, match="orders-3"):
        tool.append(log, 10)
    assert log.log_end_offset == 0


def test_a_roll_by_the_timestamps(tool):
    log = tool.create(segment_ms=1000)
    for timestamp in (5000, 5900, 6000, 6001, 7001, 7002):
        tool.append(log, 1, timestamp=timestamp)
    assert [segment.base_offset for segment in log.segments] == [0, 3, 5]


def test_a_roll_by_the_clock_when_records_have_no_timestamps(tool):
    log = tool.create(segment_ms=1000)
    for now_ms in (NOW_MS, NOW_MS + 1000, NOW_MS + 1001, NOW_MS + 2001, NOW_MS + 2002):
        tool.append(log, 1, timestamp=-1, now_ms=now_ms)
    assert [segment.base_offset for segment in log.segments] == [0, 2, 4]


def test_a_timestamp_of_0_is_valid(tool):
    log = tool.create(segment_ms=1000)
    for timestamp in (0, 1000, 1001):
        tool.append(log, 1, timestamp=timestamp, now_ms=NOW_MS + 10 * DAY_MS)
    assert [segment.base_offset for segment in log.segments] == [0, 2]


def test_the_age_of_a_segment_after_a_restart(tool):
    log = tool.create(segment_ms=1000)
    tool.append(log, 1, timestamp=5000)
    log.close()
    log = tool.open(clean=True, segment_ms=1000)
    tool.append(log, 1, timestamp=6000)
    tool.append(log, 1, timestamp=6001)
    assert [segment.base_offset for segment in log.segments] == [0, 2]


def test_jitter_rolls_earlier(tool):
    tool.services.jitter_ms = lambda upper: upper - 1
    log = tool.create(segment_ms=1000, segment_jitter_ms=301)
    for timestamp in (5000, 5700, 5701):
        tool.append(log, 1, timestamp=timestamp)
    assert [segment.base_offset for segment in log.segments] == [0, 2]


def test_a_roll_when_an_index_is_full(tool):
    log = tool.create(segment_index_bytes=48, index_interval_bytes=0)
    for number in range(12):
        tool.append(log, 1, timestamp=NOW_MS + number)
    sizes = [len(segment.offset_index()) for segment in log.segments]
    assert len(sizes) > 1
    assert all(
        tool.files.sizes(tool.directory)[f"{segment.base_offset:020d}.timeindex"] <= 48 for segment in log.segments
    )
    assert [record.offset for record in tool.records(log)] == list(range(12))


def test_an_empty_segment_does_not_roll(tool):
    log = tool.create()
    log.roll(NOW_MS)
    assert len(log.segments) == 1
    tool.append(log, 1)
    log.roll(NOW_MS)
    log.roll(NOW_MS)
    assert [segment.base_offset for segment in log.segments] == [0, 1]


def test_a_rolled_segment_has_complete_indexes(tool):
    log = tool.create(index_interval_bytes=200)
    for number in range(9):
        tool.append(log, 3, timestamp=NOW_MS + number)
    log.roll(NOW_MS)
    sizes = tool.files.sizes(tool.directory)
    assert sizes["00000000000000000000.index"] == log.segments[0].offset_index().size > 0
    assert sizes["00000000000000000000.timeindex"] == log.segments[0].time_index().size
    assert log.segments[0].time_index().last == (NOW_MS + 8, 26)
    assert "00000000000000000027.snapshot" in sizes


def test_a_change_of_the_configs(tool, batch):
    log = tool.create()
    for _ in range(3):
        tool.append(log, 1)
    log.update_config(log.config._replace(segment_bytes=batch(1).size_in_bytes))
    for _ in range(2):
        tool.append(log, 1)
    assert [segment.base_offset for segment in log.segments] == [0, 3, 4]

"""Retention: which segments are deleted, and when their files are."""

import pytest

NOW_MS = 1_700_000_000_000


def filled(tool, batch, segments=5, **config):
    """Creates a log with a segment for each batch of ten records, 1,000 ms apart. The last one has timestamp NOW_MS."""
    size = batch(10, timestamp=NOW_MS).size_in_bytes
    log = tool.create(segment_bytes=size, retention_ms=-1, **config)
    for number in range(segments):
        tool.append(log, 10, timestamp=NOW_MS + 1000 * number, epoch=number)
    assert [segment.size for segment in log.segments] == [size] * segments
    return log, size


def configure(log, **config):
    log.update_config(log.config._replace(**config))


def bases(log):
    return [segment.base_offset for segment in log.segments]


def test_nothing_is_deleted_in_time(tool, batch):
    log, _ = filled(tool, batch)
    assert log.enforce_retention(NOW_MS + 10**12) == 0
    configure(log, retention_ms=5000)
    assert log.enforce_retention(NOW_MS + 5000) == 0


def test_by_time(tool, batch):
    log, _ = filled(tool, batch)
    configure(log, retention_ms=5000)
    assert log.enforce_retention(NOW_MS + 5001) == 1
    assert bases(log) == [10, 20, 30, 40]
    assert log.log_start_offset == 10
    assert log.leader_epochs.entries[0] == (1, 10)
    assert log.enforce_retention(NOW_MS + 7001) == 2
    assert tool.records(log)[0].offset == 30


def test_the_active_segment_is_deleted_too(tool, batch):
    log, _ = filled(tool, batch)
    configure(log, retention_ms=5000)
    assert log.enforce_retention(NOW_MS + 9001) == 5
    assert bases(log) == [50]
    assert (log.log_start_offset, log.log_end_offset, log.size) == (50, 50, 0)
    assert log.enforce_retention(NOW_MS + 10**9) == 0
    assert tool.append(log, 1).base_offset == 50
    assert tool.open().log_start_offset == 50


def test_by_modification_time_without_timestamps(tool):
    log = tool.create(retention_ms=5000)
    tool.append(log, 1, timestamp=-1)
    written = tool.files.modified_ms(tool.path("00000000000000000000.log"))
    assert log.enforce_retention(written + 5000) == 0
    assert log.enforce_retention(written + 5001) == 1


def test_by_size(tool, batch):
    log, size = filled(tool, batch)
    for bytes_kept, left in [(5 * size, 5), (5 * size - 1, 5), (4 * size + 1, 5), (4 * size, 4), (2 * size, 2), (0, 1)]:
        configure(log, retention_bytes=bytes_kept)
        log.enforce_retention(NOW_MS)
        assert len(log.segments) == left
    assert (log.log_start_offset, log.size) == (50, 0)


def test_uncommitted_segments_are_kept(tool, batch):
    log, _ = filled(tool, batch, segments=3)
    made = batch(10, timestamp=NOW_MS)
    log.append_as_leader(made, leader_epoch=9, now_ms=NOW_MS)
    log.high_watermark = 25
    configure(log, retention_ms=0)
    assert log.enforce_retention(NOW_MS + 10**9) == 2
    assert bases(log) == [20, 30]


def test_segments_before_the_log_start_offset_are_deleted_with_any_policy(tool, batch):
    log, _ = filled(tool, batch, cleanup_policy=frozenset({"compact"}))
    configure(log, retention_ms=0, retention_bytes=0)
    assert log.enforce_retention(NOW_MS + 10**9) == 0
    log.delete_records_before(29)
    assert log.enforce_retention(NOW_MS) == 2
    assert bases(log) == [20, 30, 40]
    assert log.log_start_offset == 29


def test_files_are_deleted_later(tool, batch):
    later = []
    tool.services.delete_later = lambda paths, delay_ms: later.append((sorted(paths), delay_ms))
    log, _ = filled(tool, batch, file_delete_delay_ms=777)
    configure(log, retention_ms=5000)
    log.enforce_retention(NOW_MS + 5001)
    expected = [tool.path(f"{0:020d}{suffix}.deleted") for suffix in (".index", ".log", ".timeindex")]
    assert later == [(expected, 777)]
    assert all(tool.files.exists(path) for path in expected)
    assert tool.open().log_start_offset == 10
    assert not any(tool.files.exists(path) for path in expected)


def test_the_snapshot_of_a_deleted_segment_is_deleted(tool, batch):
    log, _ = filled(tool, batch)
    configure(log, retention_ms=5000)
    assert f"{10:020d}.snapshot" in tool.names()
    log.enforce_retention(NOW_MS + 6001)
    assert [name for name in tool.names() if name.endswith("snapshot")] == [
        f"{at:020d}.snapshot" for at in (20, 30, 40)
    ]


@pytest.mark.parametrize("closed", [True, False])
def test_after_a_restart(tool, batch, closed):
    log, _ = filled(tool, batch)
    if closed:
        log.close()
    log = tool.open(clean=closed, retention_ms=5000)
    log.maybe_set_high_watermark(50)
    assert log.enforce_retention(NOW_MS + 7001) == 3
    assert bases(log) == [30, 40]

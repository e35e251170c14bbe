"""The log cleaner: which logs are cleaned, when, and with which configs."""

import pytest

from barnabas.log.cleaning.offset_map import BYTES_PER_ENTRY
from barnabas.records.batch import batches
from barnabas.records.record import records_of
from tests.log.cleaner.house import BACKOFF_S, House, content, latest

# ---------------------------------------------------------------- cleaning


def test_a_compacted_log_shrinks(house):
    log = house.create()
    house.fill(log, 200)
    before, size = latest(log), log.size
    house.clock.advance(0)
    assert log.size < size / 10
    assert latest(log) == before
    kept = [key for offset, key, _ in content(log) if offset < log.segments.active.base_offset]
    assert len(kept) == len(set(kept))
    assert house.checkpoint() == log.segments.active.base_offset
    assert house.text() == f"0\n1\norders 0 {log.segments.active.base_offset}\n"


def test_a_log_that_is_not_compacted_is_not_cleaned(house):
    log = house.create(cleanup_policy=frozenset({"delete"}))
    house.fill(log, 200)
    before = content(log)
    house.clock.advance(10 * BACKOFF_S)
    assert content(log) == before
    assert not house.workers
    assert house.text() is None


def test_a_disabled_cleaner_cleans_nothing():
    house = House(enable=False)
    log = house.create()
    house.fill(log, 200)
    house.clock.advance(10 * BACKOFF_S)
    assert len(content(log)) == 200
    assert not house.workers


def test_only_closed_segments_are_cleaned(house):
    log = house.create(segment_bytes=100_000)
    house.fill(log, 200)
    house.clock.advance(10 * BACKOFF_S)
    assert len(content(log)) == 200
    log.roll(house.clock.time_ms())
    house.append(log, b"key 0")
    house.clock.advance(BACKOFF_S)
    assert len(content(log)) == 5


def test_a_pass_continues_at_the_checkpoint(house):
    log = house.create()
    house.fill(log, 200)
    house.clock.advance(0)
    first = house.checkpoint()
    house.fill(log, 200)
    before = latest(log)
    house.clock.advance(BACKOFF_S)
    assert house.checkpoint() == log.segments.active.base_offset > first
    assert latest(log) == before
    house.manager.close()
    house.open()
    assert house.checkpoint() == log.segments.active.base_offset
    assert latest(house.manager.get("orders", 0)) == before


def test_a_pass_joins_small_segments(house):
    log = house.create()
    for _ in range(10):
        house.fill(log, 40)
        house.clock.advance(BACKOFF_S)
    assert len(log.segments) < 20  # of more than 130


def test_reads_while_segments_are_swapped(holding):
    """Positions that are remembered for the old segments are not used for the new ones."""
    log = holding.create()
    holding.fill(log, 120)
    before = latest(log)
    offset, seen = 0, []
    holding.clock.advance(0)
    for step in range(1000):
        data = log.read(offset, 100, up_to=log.log_end_offset, minimum_one=True)
        for batch in batches(data):
            seen += [record.offset for record in records_of(batch)]
            offset = batch.next_offset
        if step == 20:
            holding.workers[0].work()
        if offset == log.log_end_offset:
            break
    assert seen == sorted(set(seen))
    assert {each for each, _, _ in before} <= set(seen)


# ---------------------------------------------------------------- which logs are due


def test_min_cleanable_dirty_ratio(house):
    log = house.create(min_cleanable_dirty_ratio=0.5)
    house.fill(log, 400, keys=40)
    house.clock.advance(0)
    assert house.checkpoint() == log.segments.active.base_offset
    house.fill(log, 10)
    log.roll(house.clock.time_ms())
    house.append(log, b"key 0")
    house.clock.advance(BACKOFF_S)
    before = house.checkpoint()
    assert before < log.segments.active.base_offset
    house.manager.update_config(log, log.config._replace(min_cleanable_dirty_ratio=0.01))
    house.clock.advance(BACKOFF_S)
    assert house.checkpoint() == log.segments.active.base_offset


def test_the_filthiest_log_is_first(holding):
    clean, dirty = holding.create("clean"), holding.create("dirty")
    for log in (clean, dirty):
        holding.fill(log, 100)
    holding.clock.advance(0)
    holding.workers[0].work()
    holding.clock.advance(0)
    holding.workers[0].work()
    holding.fill(clean, 40)
    holding.fill(dirty, 400)
    holding.clock.advance(BACKOFF_S)
    (running,) = holding.cleaner.passes.values()
    assert running.log is dirty


def test_the_filthiest_of_many_logs_is_found_over_several_turns(holding):
    logs = [holding.create(partition=partition) for partition in range(150)]
    for log in logs:
        holding.fill(log, 10)
    holding.clock.advance(1)
    holding.workers[0].work()  # of the first one
    holding.fill(logs[0], 10)
    holding.manager.cleaner.stop()
    holding.manager.cleaner.start()
    holding.cleaner.check_logs()
    assert not holding.cleaner.passes
    holding.clock.advance(0)
    assert list(holding.cleaner.passes) == [logs[1]]


def test_a_log_is_deleted_between_its_visit_and_its_pass(holding):
    logs = [holding.create(partition=partition) for partition in range(150)]
    holding.fill(logs[3], 10)
    holding.fill(logs[5], 10)
    holding.cleaner.check_logs()
    holding.manager.delete_async(logs[3])
    holding.clock.advance(0)
    assert list(holding.cleaner.passes) == [logs[5]]


def test_a_shutdown_between_visits(holding):
    logs = [holding.create(partition=partition) for partition in range(150)]
    for log in logs:
        holding.fill(log, 10)
    holding.cleaner.check_logs()
    holding.manager.close()
    holding.clock.advance(100)
    assert not holding.cleaner.passes and not holding.workers


def test_log_cleaner_threads():
    house = House(holds=True, threads=2)
    for number in range(3):
        house.fill(house.create(f"topic-{number}"), 50)
    house.clock.advance(BACKOFF_S)
    assert len(house.cleaner.passes) == len(house.workers) == 2
    house.workers[0].work()
    house.clock.advance(0)
    assert len(house.cleaner.passes) == 2
    house.workers[0].work()
    house.workers[1].work()
    house.clock.advance(BACKOFF_S)
    assert not house.cleaner.passes and len(house.workers) == 2


def test_min_compaction_lag_ms(house):
    log = house.create(min_compaction_lag_ms=60_000)
    house.fill(log, 100)
    house.clock.advance(55)
    assert len(content(log)) == 100
    house.fill(log, 100)
    house.clock.advance(10)
    found = [offset for offset, _, _ in content(log)]
    assert 100 < len(found) <= 110
    assert found[-100:] == list(range(100, 200))


def test_max_compaction_lag_ms(house):
    log = house.create(min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=60_000)
    house.fill(log, 100)
    house.clock.advance(45)
    assert len(content(log)) == 100
    house.clock.advance(2 * BACKOFF_S)
    assert len(content(log)) < 20


def test_a_segment_rolls_within_max_compaction_lag_ms(house):
    log = house.create(max_compaction_lag_ms=60_000, segment_bytes=100_000)
    house.append(log, b"a")
    house.clock.advance(60)
    house.append(log, b"a")
    assert len(log.segments) == 1
    house.clock.advance(1)
    house.append(log, b"a")
    assert len(log.segments) == 2
    house.manager.update_config(log, log.config._replace(cleanup_policy=frozenset({"delete"})))
    house.clock.advance(100)
    house.append(log, b"a")
    assert len(log.segments) == 2


def test_uncommitted_records_are_not_cleaned(house):
    log = house.create()
    house.fill(log, 100)
    for _ in range(100):
        house.append(log, b"key 0", commits=False)
    house.clock.advance(BACKOFF_S)
    assert [offset for offset, _, _ in content(log)][-100:] == list(range(100, 200))
    log.maybe_set_high_watermark(200)
    house.clock.advance(BACKOFF_S)
    assert len(content(log)) < 20


def test_records_that_are_not_fsynced_are_not_cleaned(house):
    """A power cut could lose them after the older records of their keys were removed."""
    log = house.create()
    house.fill(log, 100)
    flushes = []
    flush, house.manager.housekeeping.flush = house.manager.housekeeping.flush, lambda *call: flushes.append(call)
    log.recovery_point = 50
    house.clock.advance(BACKOFF_S)
    assert [offset for offset, _, _ in content(log)][-50:] == list(range(50, 100))
    assert house.checkpoint() <= 50
    assert flushes[-1] == (log, log.segments.active.base_offset)
    house.manager.housekeeping.flush = flush
    house.clock.advance(2 * BACKOFF_S)
    assert house.checkpoint() == log.segments.active.base_offset


def test_open_transactions_are_not_cleaned(house):
    log = house.create()
    house.fill(log, 50)
    house.append(log, b"key 0", producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True)
    house.fill(log, 50)
    assert log.last_stable_offset == 50
    house.clock.advance(BACKOFF_S)
    assert [offset for offset, _, _ in content(log)][-51:] == list(range(50, 101))
    assert house.checkpoint() <= 50


# ---------------------------------------------------------------- cleanup policies


@pytest.mark.parametrize("policy", [{"delete"}, {"compact", "delete"}])
def test_a_change_of_the_cleanup_policy(house, policy):
    log = house.create(cleanup_policy=frozenset({"delete"}))
    house.fill(log, 100)
    house.clock.advance(BACKOFF_S)
    assert len(content(log)) == 100
    house.manager.update_config(log, log.config._replace(cleanup_policy=frozenset({"compact"})))
    house.clock.advance(BACKOFF_S)
    assert len(content(log)) < 20
    house.manager.update_config(log, log.config._replace(cleanup_policy=frozenset(policy)))
    house.fill(log, 100)
    house.clock.advance(BACKOFF_S)
    assert (len(content(log)) >= 100) == ("compact" not in policy)


def test_gaps_stay_when_the_policy_changes(house):
    """Recovery does not treat them as damage, even after a crash."""
    log = house.create()
    house.fill(log, 100)
    house.clock.advance(BACKOFF_S)
    house.manager.update_config(log, log.config._replace(cleanup_policy=frozenset({"delete"})))
    house.configs["orders"] = log.config
    before = content(log)
    house.manager._release()
    house.open()
    again = house.manager.get("orders", 0)
    assert content(again) == before and again.log_end_offset == 100


def test_compact_and_delete(house):
    log = house.create(cleanup_policy=frozenset({"compact", "delete"}), retention_ms=600_000)
    house.fill(log, 100)
    house.clock.advance(BACKOFF_S)
    assert len(content(log)) < 20
    log.roll(house.clock.time_ms())
    house.clock.advance(500)
    house.append(log, b"key 1")
    house.clock.advance(200)
    assert [key for _, key, _ in content(log)] == [b"key 1"]
    assert log.log_start_offset > 0


def test_a_compacted_log_has_no_retention(house):
    log = house.create(retention_ms=1000, retention_bytes=1)
    house.fill(log, 100)
    house.clock.advance(BACKOFF_S)
    before = content(log)
    house.manager.housekeeping.enforce_retention()
    house.clock.advance(3600)
    assert content(log) == before


def test_delete_records_with_compact_and_delete(house):
    log = house.create(cleanup_policy=frozenset({"compact", "delete"}), min_cleanable_dirty_ratio=1.0)
    house.fill(log, 100)
    log.delete_records_before(90)
    house.clock.advance(BACKOFF_S)
    assert log.segments[0].base_offset > 80
    assert content(log)[0][0] == 90
    assert house.checkpoint() is None or house.checkpoint() >= 0


# ---------------------------------------------------------------- configs


def test_threads_share_buffer_and_bytes_per_second():
    house = House(
        holds=True,
        threads=4,
        dedupe_buffer_size=4 * 1000 * BYTES_PER_ENTRY,
        io_buffer_load_factor=0.5,
        io_max_bytes_per_second=8000.0,
    )
    house.fill(house.create(delete_retention_ms=77), 100)
    house.clock.advance(0)
    job = house.workers[0].waiting[0][0]
    assert (job.map_entries, job.max_bytes_per_second, job.delete_retention_ms) == (500, 2000.0, 77)


def test_a_limit_of_0_bytes_per_second_disables_cleaning():
    house = House(io_max_bytes_per_second=0.0)
    house.fill(house.create(), 100)
    house.clock.advance(3 * BACKOFF_S)
    assert not house.workers
    house.cleaner.reconfigure(house.cleaner.settings._replace(log_cleaner_io_max_bytes_per_second=1e6))
    house.clock.advance(0)
    assert len(content(house.manager.get("orders", 0))) < 20


def test_a_change_of_the_configs(holding):
    holding.fill(holding.create(), 100)
    holding.clock.advance(0)
    holding.cleaner.reconfigure(holding.cleaner.settings)
    assert not holding.workers[0].is_closed
    holding.cleaner.reconfigure(holding.cleaner.settings._replace(log_cleaner_backoff_ms=1000))
    assert holding.workers[0].is_closed
    holding.clock.advance(0)
    holding.workers[1].work()
    log = holding.manager.get("orders", 0)
    assert len(content(log)) < 20
    holding.fill(log, 100)
    holding.clock.advance(1)
    assert holding.workers[1].waiting


def test_idle_workers_are_released(holding):
    holding.fill(holding.create(), 100)
    holding.clock.advance(0)
    holding.workers[0].work()
    holding.clock.advance(45)
    assert not holding.workers[0].is_released
    holding.clock.advance(30)
    assert holding.workers[0].is_released and not holding.workers[0].is_closed
    holding.fill(holding.manager.get("orders", 0), 100)
    holding.clock.advance(BACKOFF_S)
    assert len(holding.workers) == 2


def test_a_move_takes_the_checkpoint_along():
    house = House(dirs=("/data/a", "/data/b"))
    log = house.create(min_cleanable_dirty_ratio=0.9)
    house.fill(log, 100)
    house.clock.advance(0)
    before, clean_to = content(log), house.cleaner.checkpoints[log.log_directory]["orders", 0]
    source = log.log_directory
    (target,) = (each for each in house.manager.directories if each is not source)
    house.manager.moves.start(log, target)
    house.clock.advance(BACKOFF_S)
    moved = house.manager.get("orders", 0)
    assert moved.log_directory is target
    assert content(moved) == before
    assert ("orders", 0) not in house.cleaner.checkpoints[source]
    assert house.cleaner.checkpoints[target]["orders", 0] == clean_to
    assert house.text(f"{source.path}/cleaner-offset-checkpoint") == "0\n0\n"
    assert house.text(f"{target.path}/cleaner-offset-checkpoint") == f"0\n1\norders 0 {clean_to}\n"
    house.fill(moved, 200)
    newest = latest(moved)
    house.clock.advance(BACKOFF_S)
    assert latest(moved) == newest and len(content(moved)) < 30


def test_a_move_aborts_the_pass():
    house = House(dirs=("/data/a", "/data/b"), holds=True)
    log = house.create()
    house.fill(log, 100)
    house.clock.advance(0)
    source = log.log_directory
    (target,) = (each for each in house.manager.directories if each is not source)
    house.manager.moves.start(log, target)
    house.clock.advance(1)
    moved = house.manager.get("orders", 0)
    assert moved is not log and house.workers[0].is_aborted
    before = content(moved)
    house.workers[0].work()
    assert content(moved) == before
    assert all(directory.offline is None for directory in house.manager.directories)
    house.clock.advance(0)
    house.workers[0].work()
    assert len(content(moved)) < 20

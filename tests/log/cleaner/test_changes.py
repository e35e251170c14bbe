"""The log cleaner: what changes during a pass, and what interrupts it."""

import pytest

from barnabas.log.cleaner_workers import InlineWorker
from tests.log.cleaner.house import BACKOFF_S, House, content, latest


def test_a_log_is_deleted_during_its_pass(holding):
    log = holding.create()
    holding.fill(log, 100)
    holding.clock.advance(0)
    holding.manager.delete_async(log)
    assert holding.workers[0].is_aborted
    again = holding.create()
    holding.fill(again, 10)
    holding.workers[0].work()
    assert len(content(again)) == 10
    assert not any(name.endswith((".swap", ".cleaned")) for name in holding.files.sizes(again.directory))
    assert holding.manager.directories[0].offline is None
    assert holding.checkpoint() is None


def test_a_new_log_does_not_get_the_checkpoint_of_a_deleted_one(house):
    log = house.create()
    house.fill(log, 100)
    house.clock.advance(0)
    house.manager.delete_async(log)
    assert house.checkpoint() is None
    assert house.text() == "0\n0\n"


def test_a_log_is_truncated_during_its_pass(holding):
    log = holding.create()
    holding.fill(log, 100)
    holding.clock.advance(0)
    log.truncate_to(37, holding.clock.time_ms())
    assert holding.workers[0].is_aborted
    before = content(log)
    holding.workers[0].work()
    assert content(log) == before
    assert not any(name.endswith((".swap", ".cleaned")) for name in holding.files.sizes(log.directory))


@pytest.mark.parametrize("how", ["truncate", "delete"])
def test_a_result_after_the_log_has_changed(holding, how):
    """The log changes between the swap of the last segment and the end of the pass."""
    log = holding.create()
    holding.fill(log, 100)
    holding.clock.advance(0)
    (worker,) = holding.workers
    job, on_group, done = worker.waiting.pop()
    outcomes = []
    InlineWorker(holding.files, holding.clock).start(job, on_group, outcomes.append)
    if how == "truncate":
        log.truncate_to(10, holding.clock.time_ms())
    else:
        holding.manager.delete_async(log)
    done(outcomes[0])
    assert holding.checkpoint() == (0 if how == "truncate" else None)


def test_records_after_a_truncation_are_dirty(house):
    log = house.create()
    house.fill(log, 100)
    house.clock.advance(0)
    end = house.checkpoint()
    log.truncate_to(end - 10, house.clock.time_ms())
    assert house.checkpoint() == log.log_end_offset < end
    house.fill(log, 100)
    before = latest(log)
    house.clock.advance(BACKOFF_S)
    assert latest(log) == before


def test_the_policy_changes_during_a_pass(holding):
    log = holding.create()
    holding.fill(log, 100)
    holding.clock.advance(0)
    holding.manager.update_config(log, log.config._replace(cleanup_policy=frozenset({"delete"})))
    assert holding.workers[0].is_aborted
    holding.workers[0].work()
    assert len(content(log)) == 100
    assert log not in holding.cleaner.uncleanable


def test_appends_and_rolls_during_a_pass(holding):
    log = holding.create()
    holding.fill(log, 100)
    holding.clock.advance(0)
    holding.fill(log, 100, keys=7)
    before = latest(log)
    holding.workers[0].work()
    assert latest(log) == before
    assert len(content(log)) < 130


def test_a_shutdown_during_a_pass(holding):
    log = holding.create()
    holding.fill(log, 100)
    holding.clock.advance(0)
    before = latest(log)
    holding.manager.close()
    assert holding.workers[0].is_closed
    holding.workers[0].work()
    holding.open()
    assert latest(holding.manager.get("orders", 0)) == before
    assert len(content(holding.manager.get("orders", 0))) == 100


def test_a_corrupt_log_is_uncleanable(house, caplog):
    log, other = house.create(), house.create("other")
    for each in (log, other):
        house.fill(each, 100)
    before = content(log)
    path = log.segments[3].path(".log")
    data = bytearray(house.files.read(path))
    data[70] ^= 1
    house.files.open(path).content[:] = data
    house.clock.advance(3 * BACKOFF_S)
    assert log in house.cleaner.uncleanable
    assert path in caplog.text
    assert len(content(other)) < 20
    data[70] ^= 1
    house.files.open(path).content[:] = data
    assert content(log) == before
    assert not any(name.endswith((".swap", ".cleaned")) for name in house.files.sizes(log.directory))


def test_a_checkpoint_above_the_log_end_offset_is_ignored(house):
    log = house.create()
    house.fill(log, 100)
    house.manager.close()
    house.files.write_atomically("/data/cleaner-offset-checkpoint", b"0\n1\norders 0 4711\n", sync=True)
    house.open()
    assert house.checkpoint() is None
    house.clock.advance(0)
    assert len(content(house.manager.get("orders", 0))) < 20


def test_a_checkpoint_below_the_log_start_offset_is_ignored(house):
    log = house.create(cleanup_policy=frozenset({"compact", "delete"}))
    house.fill(log, 100)
    house.clock.advance(0)
    house.fill(log, 100)
    log.delete_records_before(150)
    before = latest(log)
    house.clock.advance(BACKOFF_S)
    assert latest(log) == before
    assert len(content(log)) < 20


def test_an_offline_directory_aborts_its_passes():
    house = House(dirs=("/data/a", "/data/b"), holds=True, threads=2)
    logs = [house.create("orders", number) for number in range(2)]
    for log in logs:
        house.fill(log, 100)
    house.clock.advance(0)
    directories = [log.log_directory for log in logs]
    assert directories[0] is not directories[1]
    house.manager.directory_failed(directories[0], OSError("broken"))
    first, second = house.workers
    if house.cleaner.passes[logs[0]].worker is second:
        first, second = second, first
    assert first.is_aborted and not second.is_aborted
    first.work()
    second.work()
    house.clock.advance(BACKOFF_S)
    assert len(content(logs[1])) < 20

"""The periodic work on logs, with a manual clock."""

import pytest

from barnabas.clock import ManualClock
from barnabas.config.topic import TopicConfig
from barnabas.integers import MAX_LONG
from barnabas.log.files import MemoryFiles
from barnabas.log.housekeeping import LogSettings
from barnabas.log.log_manager import LogManager
from barnabas.log.partition_log import PartitionLog

ID = bytes(range(16))
MINUTE_S = 60


class Slow:
    """Background work that :meth:`work` runs."""

    def __init__(self):
        self.waiting = []

    def run(self, work, done=None):
        self.waiting.append((work, done))

    def work(self, count=None):
        for _ in range(len(self.waiting) if count is None else count):
            work, done = self.waiting.pop(0)
            work()
            if done is not None:
                done(None)

    def close(self):
        self.work()


class House:
    def __init__(self, batch, background=None, **settings):
        self.clock = ManualClock()
        self.files = MemoryFiles(self.clock)
        self.batch = batch
        self.background = background
        self.manager = LogManager(
            self.files,
            ["/data"],
            clock=self.clock,
            scheduler=self.clock,
            background=background,
            settings=LogSettings(**settings),
        )
        self.manager.start(1)
        self.manager.open_all(lambda topic: TopicConfig())

    def create(self, partition=0, **config):
        return self.manager.create("orders", partition, ID, TopicConfig(**config))

    def append(self, log, count=1, **keywords):
        keywords.setdefault("timestamp", self.clock.time_ms())
        log.append_as_leader(self.batch(count, **keywords), leader_epoch=0, now_ms=self.clock.time_ms())
        log.maybe_set_high_watermark(log.log_end_offset)

    def text(self, name):
        path = f"/data/{name}"
        return self.files.read(path).decode() if self.files.exists(path) else None


@pytest.fixture
def house(batch):
    return House(batch)


def test_retention_is_enforced(house):
    log = house.create(retention_ms=10 * MINUTE_S * 1000)
    house.append(log)
    house.clock.advance(10 * MINUTE_S)
    assert log.size > 0
    house.clock.advance(31)
    assert (log.size, log.log_start_offset) == (0, 1)
    assert house.files.exists("/data/orders-0/00000000000000000000.log.deleted")
    house.clock.advance(MINUTE_S + 1)
    assert not house.files.exists("/data/orders-0/00000000000000000000.log.deleted")


def test_many_logs_are_visited_in_several_turns(batch):
    house = House(batch)
    logs = [house.create(partition, retention_ms=1000) for partition in range(200)]
    for log in logs:
        house.append(log)
    turns = []
    call_later = house.clock.call_later
    house.clock.call_later = lambda delay, *call: turns.append(delay) or call_later(delay, *call)
    house.clock.advance(2)
    house.manager.housekeeping.enforce_retention()
    assert sum(log.size == 0 for log in logs) == 64
    house.clock.advance(0)
    assert all(log.size == 0 for log in logs)


def test_high_watermarks_are_checkpointed(house):
    log = house.create()
    house.append(log, 3)
    house.clock.advance(5)
    assert house.text("replication-offset-checkpoint") == "0\n1\norders 0 3\n"
    house.append(log, 3)
    house.clock.advance(5)
    assert house.text("replication-offset-checkpoint") == "0\n1\norders 0 6\n"


def test_an_unchanged_checkpoint_is_not_written(batch):
    background = Slow()
    house = House(batch, background)
    house.append(house.create(), 3)
    house.clock.advance(5)
    assert len(background.waiting) == 1
    house.clock.advance(20)
    assert len(background.waiting) == 1


def test_recovery_points_and_log_start_offsets_are_checkpointed(house):
    log = house.create()
    house.append(log, 3)
    log.flush()
    log.delete_records_before(2)
    house.clock.advance(61)
    assert house.text("recovery-point-offset-checkpoint") == "0\n1\norders 0 3\n"
    assert house.text("log-start-offset-checkpoint") == "0\n1\norders 0 2\n"


def test_a_log_start_offset_at_the_first_segment_is_not_checkpointed(house):
    log = house.create()
    house.append(log, 3)
    house.clock.advance(61)
    assert house.text("log-start-offset-checkpoint") == "0\n0\n"


def test_producers_expire(batch):
    house = House(batch, producer_id_expiration_ms=20 * MINUTE_S * 1000)
    log = house.create()
    house.append(log, producer_id=7, producer_epoch=0, base_sequence=0)
    house.clock.advance(19 * MINUTE_S)
    assert len(log.active_producers()) == 1
    house.clock.advance(11 * MINUTE_S)
    assert log.active_producers() == []


def test_expired_producers_are_removed_at_the_next_start(house):
    log = house.create()
    house.append(log, producer_id=7, producer_epoch=0, base_sequence=0)
    house.clock.advance(60 * MINUTE_S)
    house.append(log, producer_id=8, producer_epoch=0, base_sequence=0)
    house.manager.close()
    old = LogSettings(producer_id_expiration_ms=60 * MINUTE_S * 1000)
    house.manager = LogManager(house.files, ["/data"], clock=house.clock, scheduler=house.clock, settings=old)
    house.manager.start(1)
    house.manager.open_all(lambda topic: TopicConfig())
    (log,) = house.manager.logs.values()
    assert [entry.producer_id for entry in log.active_producers()] == [8]


def test_flush_messages_flushes_in_the_background(batch):
    background = Slow()
    house = House(batch, background)
    log = house.create(flush_messages=3)
    house.append(log, 2)
    assert background.waiting == []
    house.append(log, 2)
    assert (len(background.waiting), log.recovery_point) == (1, 0)
    background.work()
    assert log.recovery_point == 4


def test_flushes_during_a_flush_are_combined(batch):
    background = Slow()
    house = House(batch, background)
    log = house.create(flush_messages=1)
    for _ in range(10):
        house.append(log)
    assert len(background.waiting) == 1
    background.work(1)
    assert (len(background.waiting), log.recovery_point) == (1, 1)
    background.work(1)
    assert (len(background.waiting), log.recovery_point) == (0, 10)


def test_a_roll_flushes_the_closed_segment(batch):
    background = Slow()
    house = House(batch, background)
    log = house.create(segment_bytes=batch(1).size_in_bytes)
    house.append(log)
    house.append(log)
    background.work()
    assert log.recovery_point == 1


def test_flush_ms(house):
    house.create(partition=1)
    log = house.create(flush_ms=2000)
    house.append(log)
    house.clock.advance(1.9)
    assert log.recovery_point == 0
    house.clock.advance(2.2)
    assert log.recovery_point == 1


def test_flush_ms_that_is_set_later(house):
    log = house.create()
    house.append(log)
    house.clock.advance(3600)
    assert log.recovery_point == 0
    house.manager.update_config(log, log.config._replace(flush_ms=1000))
    house.clock.advance(2)
    assert log.recovery_point == 1


def test_flush_ms_that_is_removed_later(house):
    log = house.create(flush_ms=1000)
    house.manager.update_config(log, log.config._replace(flush_ms=MAX_LONG))
    house.append(log)
    house.clock.advance(3600)
    assert log.recovery_point == 0


def test_only_logs_with_flush_ms_are_visited(house, monkeypatch):
    visited = []
    monkeypatch.setattr(PartitionLog, "is_flush_due", lambda log, now_ms: visited.append(log.partition))
    for partition in range(10):
        house.create(partition, flush_ms=1000 if partition % 5 == 0 else MAX_LONG)
    house.manager.delete_async(house.manager.get("orders", 5))
    house.clock.advance(1)
    assert visited == [0]


def test_many_logs_are_flushed_in_several_turns(batch):
    house = House(batch)
    logs = [house.create(partition, flush_ms=60_000) for partition in range(150)]
    for log in logs:
        house.append(log)
    now_ms = house.clock.time_ms() + 60_000
    house.clock.time_ms = lambda: now_ms
    for _ in range(2):  # the second call does nothing, since the first has not visited all logs yet
        house.manager.housekeeping.flush_due()
        assert sum(log.recovery_point for log in logs) == 64
    house.clock.advance(0)
    assert sum(log.recovery_point for log in logs) == 150


def test_by_default_nothing_is_flushed(house):
    log = house.create()
    house.append(log, 100)
    house.clock.advance(3600)
    assert log.recovery_point == 0


def test_a_log_is_deleted_during_its_flush(batch):
    background = Slow()
    house = House(batch, background)
    log = house.create(flush_messages=1)
    house.append(log)
    house.manager.delete_async(log)
    background.work()
    house.clock.advance(120)
    background.work()
    assert house.files.list("/data") != []
    assert not any(name.startswith("orders") for name in house.files.list("/data"))
    assert house.manager.directories[0].offline is None


def test_nothing_happens_after_close(house):
    log = house.create(retention_ms=1)
    house.append(log)
    house.manager.close()
    before = {name: house.files.sizes(f"/data/{name}") for name in ("orders-0",)}
    house.clock.advance(3600)
    assert {name: house.files.sizes(f"/data/{name}") for name in ("orders-0",)} == before

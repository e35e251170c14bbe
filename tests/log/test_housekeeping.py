"""What happens to logs from time to time, on a clock that stands still until it is moved."""

import pytest

from barnabas.clock import ManualClock
from barnabas.config.topic import TopicConfig
from barnabas.log.files import MemoryFiles
from barnabas.log.housekeeping import LogSettings
from barnabas.log.log_manager import LogManager

ID = bytes(range(16))
MINUTE_S = 60


class Slow:
    """Background work that is done when the test says so."""

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


def test_a_thousand_logs_are_looked_at_bit_by_bit(batch):
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


def test_high_watermarks_are_written_down(house):
    log = house.create()
    house.append(log, 3)
    house.clock.advance(5)
    assert house.text("replication-offset-checkpoint") == "0\n1\norders 0 3\n"
    house.append(log, 3)
    house.clock.advance(5)
    assert house.text("replication-offset-checkpoint") == "0\n1\norders 0 6\n"


def test_a_checkpoint_that_says_so_already_is_not_written(batch):
    background = Slow()
    house = House(batch, background)
    house.append(house.create(), 3)
    house.clock.advance(5)
    assert len(background.waiting) == 1
    house.clock.advance(20)
    assert len(background.waiting) == 1


def test_recovery_points_and_starts_are_written_down(house):
    log = house.create()
    house.append(log, 3)
    log.flush()
    log.delete_records_before(2)
    house.clock.advance(61)
    assert house.text("recovery-point-offset-checkpoint") == "0\n1\norders 0 3\n"
    assert house.text("log-start-offset-checkpoint") == "0\n1\norders 0 2\n"


def test_a_start_that_is_a_segments_is_not_written_down(house):
    log = house.create()
    house.append(log, 3)
    house.clock.advance(61)
    assert house.text("log-start-offset-checkpoint") == "0\n0\n"


def test_producers_are_forgotten(batch):
    house = House(batch, producer_id_expiration_ms=20 * MINUTE_S * 1000)
    log = house.create()
    house.append(log, producer_id=7, producer_epoch=0, base_sequence=0)
    house.clock.advance(19 * MINUTE_S)
    assert len(log.active_producers()) == 1
    house.clock.advance(11 * MINUTE_S)
    assert log.active_producers() == []


def test_producers_that_are_too_old_are_not_remembered_at_the_next_start(house):
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


def test_flush_messages_flushes_off_the_loop(batch):
    background = Slow()
    house = House(batch, background)
    log = house.create(flush_messages=3)
    house.append(log, 2)
    assert background.waiting == []
    house.append(log, 2)
    assert (len(background.waiting), log.recovery_point) == (1, 0)
    background.work()
    assert log.recovery_point == 4


def test_flushes_that_come_too_fast_are_done_in_one_go(batch):
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


def test_a_roll_flushes_what_is_behind_it(batch):
    background = Slow()
    house = House(batch, background)
    log = house.create(segment_bytes=batch(1).size_in_bytes)
    house.append(log)
    house.append(log)
    background.work()
    assert log.recovery_point == 1


def test_flush_ms_of_a_topic_is_kept(house):
    house.create(partition=1)
    log = house.create(flush_ms=2000)
    house.append(log)
    house.clock.advance(1.9)
    assert log.recovery_point == 0
    house.clock.advance(2.2)
    assert log.recovery_point == 1


def test_flush_ms_that_is_set_later_is_kept(house):
    log = house.create()
    house.append(log)
    house.clock.advance(3600)
    assert log.recovery_point == 0
    house.manager.update_config(log, log.config._replace(flush_ms=1000))
    house.clock.advance(2)
    assert log.recovery_point == 1


def test_without_a_setting_nothing_is_flushed(house):
    log = house.create()
    house.append(log, 100)
    house.clock.advance(3600)
    assert log.recovery_point == 0


def test_a_log_that_is_deleted_while_it_is_flushed(batch):
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


def test_nothing_happens_after_the_end(house):
    log = house.create(retention_ms=1)
    house.append(log)
    house.manager.close()
    before = {name: house.files.sizes(f"/data/{name}") for name in ("orders-0",)}
    house.clock.advance(3600)
    assert {name: house.files.sizes(f"/data/{name}") for name in ("orders-0",)} == before

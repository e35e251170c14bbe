"""Which logs are compacted, when, and what is told to whom; with files in memory, where it is done at once."""

import pytest

from barnabas.clock import ManualClock
from barnabas.config.topic import TopicConfig
from barnabas.log.cleaner import CleanerSettings
from barnabas.log.cleaner_hands import InlineHand
from barnabas.log.cleaning.offset_map import BYTES_PER_ENTRY
from barnabas.log.files import MemoryFiles
from barnabas.log.housekeeping import LogSettings
from barnabas.log.log_manager import LogManager
from barnabas.records.batch import RecordBatch, batches
from barnabas.records.builder import build_batch
from barnabas.records.record import records_of

ID = bytes(range(16))
BACKOFF_S = 15
COMPACTED = {"cleanup_policy": frozenset({"compact"}), "segment_bytes": 300, "retention_ms": -1}


class Holding(InlineHand):
    """A hand that begins when it is told to."""

    def __init__(self, files, clock):
        super().__init__(files, clock)
        self.waiting = []
        self.is_aborted = self.is_closed = self.rests = False

    def begin(self, job, on_group, done):
        self.waiting.append((job, on_group, done))

    def work(self):
        job, on_group, done = self.waiting.pop(0)
        super().begin(job, on_group, done)

    def abort(self):
        self.is_aborted = True

    def rest(self):
        self.rests = True

    def close(self):
        self.is_closed = True


class House:
    def __init__(self, files=None, dirs=("/data",), holds=False, **settings):
        self.clock = ManualClock()
        self.files = files if files is not None else MemoryFiles(self.clock)
        self.hands = []
        self.settings = {f"log_cleaner_{name}": value for name, value in settings.items()}
        self.dirs, self.holds = dirs, holds
        self.manager = None
        self.configs = {}
        self.open()

    def open(self):
        self.manager = LogManager(
            self.files,
            self.dirs,
            clock=self.clock,
            scheduler=self.clock,
            settings=LogSettings(),
            cleaner_settings=CleanerSettings(**self.settings),
            new_hand=self.new_hand,
        )
        self.manager.start(1)
        self.manager.open_all(lambda topic: self.configs.get(topic, TopicConfig(**COMPACTED)))

    def new_hand(self):
        self.hands.append(Holding(self.files, self.clock) if self.holds else InlineHand(self.files, self.clock))
        return self.hands[-1]

    @property
    def cleaner(self):
        return self.manager.cleaner

    def create(self, topic="orders", partition=0, **config):
        self.configs[topic] = TopicConfig(**COMPACTED | config)
        return self.manager.create(topic, partition, ID, self.configs[topic])

    def append(self, log, *keys, value=None, timestamp=None, commits=True, **keywords):
        """A batch with a record of each key; its value tells its offset."""
        at = self.clock.time_ms() if timestamp is None else timestamp
        first = log.log_end_offset
        values = [value if value is not None else b"at %d" % (first + index) for index in range(len(keys))]
        records = [(key, None if each == b"" else each, at) for key, each in zip(keys, values, strict=True)]
        batch = RecordBatch.parse(build_batch(records, **keywords))
        log.append_as_leader(batch, leader_epoch=0, now_ms=self.clock.time_ms())
        if commits:
            log.maybe_set_high_watermark(log.log_end_offset)

    def fill(self, log, count=40, keys=4, **keywords):
        for number in range(count):
            self.append(log, b"key %d" % (number % keys), **keywords)

    def text(self, name="/data/cleaner-offset-checkpoint"):
        return self.files.read(name).decode() if self.files.exists(name) else None

    def checkpoint(self, topic="orders", partition=0):
        return next(iter(self.cleaner.checkpoints.values())).get((topic, partition))


def content(log):
    """Offset, key and value of each record, read as a consumer reads."""
    found, offset = [], log.log_start_offset
    while data := log.read(offset, 1 << 20, up_to=log.log_end_offset, minimum_one=True):
        for batch in batches(data):
            batch.check_crc()
            found += [(record.offset, record.key, record.value) for record in records_of(batch)]
            offset = batch.next_offset
    assert offset == log.log_end_offset
    return [each for each in found if each[0] >= log.log_start_offset]


def latest(log):
    """The latest record of each key, in order."""
    newest = {key: (offset, key, value) for offset, key, value in content(log)}
    return sorted(newest.values())


@pytest.fixture
def house():
    return House()


@pytest.fixture
def holding():
    return House(holds=True)


# ---------------------------------------------------------------- the whole


def test_a_compacted_log_gets_small(house):
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


def test_a_log_that_is_not_compacted_is_let_be(house):
    log = house.create(cleanup_policy=frozenset({"delete"}))
    house.fill(log, 200)
    before = content(log)
    house.clock.advance(10 * BACKOFF_S)
    assert content(log) == before
    assert not house.hands
    assert house.text() is None


def test_no_cleaner_where_it_is_not_enabled():
    house = House(enable=False)
    log = house.create()
    house.fill(log, 200)
    house.clock.advance(10 * BACKOFF_S)
    assert len(content(log)) == 200
    assert not house.hands


def test_only_closed_segments_are_compacted(house):
    log = house.create(segment_bytes=100_000)
    house.fill(log, 200)
    house.clock.advance(10 * BACKOFF_S)
    assert len(content(log)) == 200
    log.roll(house.clock.time_ms())
    house.append(log, b"key 0")
    house.clock.advance(BACKOFF_S)
    assert len(content(log)) == 5


def test_the_next_pass_goes_on_where_the_last_one_ended(house):
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


def test_a_pass_joins_what_earlier_ones_left_small(house):
    log = house.create()
    for _ in range(10):
        house.fill(log, 40)
        house.clock.advance(BACKOFF_S)
    assert len(log.segments) < 20  # there have been more than 130


def test_reading_goes_on_while_segments_are_swapped(holding):
    """Nothing that was remembered of the old segments is believed of the new ones."""
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
            holding.hands[0].work()
        if offset == log.log_end_offset:
            break
    assert seen == sorted(set(seen))
    assert {each for each, _, _ in before} <= set(seen)


# ---------------------------------------------------------------- which, and when


def test_the_dirty_share_has_to_be_above_the_ratio(house):
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


def test_the_dirtiest_is_first(holding):
    clean, dirty = holding.create("clean"), holding.create("dirty")
    for log in (clean, dirty):
        holding.fill(log, 100)
    holding.clock.advance(0)
    holding.hands[0].work()
    holding.clock.advance(0)
    holding.hands[0].work()
    holding.fill(clean, 40)
    holding.fill(dirty, 400)
    holding.clock.advance(BACKOFF_S)
    (running,) = holding.cleaner.passes.values()
    assert running.log is dirty


def test_as_many_at_a_time_as_there_are_threads():
    house = House(holds=True, threads=2)
    for number in range(3):
        house.fill(house.create(f"topic-{number}"), 50)
    house.clock.advance(BACKOFF_S)
    assert len(house.cleaner.passes) == len(house.hands) == 2
    house.hands[0].work()
    house.clock.advance(0)
    assert len(house.cleaner.passes) == 2
    house.hands[0].work()
    house.hands[1].work()
    house.clock.advance(BACKOFF_S)
    assert not house.cleaner.passes and len(house.hands) == 2


def test_what_is_too_young_stays(house):
    log = house.create(min_compaction_lag_ms=60_000)
    house.fill(log, 100)
    house.clock.advance(55)
    assert len(content(log)) == 100
    house.fill(log, 100)
    house.clock.advance(10)
    found = [offset for offset, _, _ in content(log)]
    assert 100 < len(found) <= 110
    assert found[-100:] == list(range(100, 200))


def test_what_waits_too_long_is_due_whatever_its_share(house):
    log = house.create(min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=60_000)
    house.fill(log, 100)
    house.clock.advance(45)
    assert len(content(log)) == 100
    house.clock.advance(2 * BACKOFF_S)
    assert len(content(log)) < 20


def test_a_segment_rolls_in_time_to_be_compacted(house):
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


def test_what_is_not_committed_stays(house):
    log = house.create()
    house.fill(log, 100)
    for _ in range(100):
        house.append(log, b"key 0", commits=False)
    house.clock.advance(BACKOFF_S)
    assert [offset for offset, _, _ in content(log)][-100:] == list(range(100, 200))
    log.maybe_set_high_watermark(200)
    house.clock.advance(BACKOFF_S)
    assert len(content(log)) < 20


def test_what_is_not_on_the_disk_stays(house):
    """A power cut could take it, and then the record that has gone for its sake would be missed."""
    log = house.create()
    house.fill(log, 100)
    asked = []
    flush, house.manager.housekeeping.flush = house.manager.housekeeping.flush, lambda *call: asked.append(call)
    log.recovery_point = 50
    house.clock.advance(BACKOFF_S)
    assert [offset for offset, _, _ in content(log)][-50:] == list(range(50, 100))
    assert house.checkpoint() <= 50
    assert asked[-1] == (log, log.segments.active.base_offset)
    house.manager.housekeeping.flush = flush
    house.clock.advance(2 * BACKOFF_S)
    assert house.checkpoint() == log.segments.active.base_offset


def test_open_transactions_are_never_passed(house):
    log = house.create()
    house.fill(log, 50)
    house.append(log, b"key 0", producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True)
    house.fill(log, 50)
    assert log.last_stable_offset == 50
    house.clock.advance(BACKOFF_S)
    assert [offset for offset, _, _ in content(log)][-51:] == list(range(50, 101))
    assert house.checkpoint() <= 50


# ---------------------------------------------------------------- policies


@pytest.mark.parametrize("policy", [{"delete"}, {"compact", "delete"}])
def test_the_policy_changes_while_the_broker_runs(house, policy):
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


def test_holes_stay_when_the_policy_changes(house):
    """They are no damage at the next start, also after a crash."""
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


def test_both_policies(house):
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


def test_a_compacted_log_keeps_what_is_old(house):
    log = house.create(retention_ms=1000, retention_bytes=1)
    house.fill(log, 100)
    house.clock.advance(BACKOFF_S)
    before = content(log)
    house.manager.housekeeping.enforce_retention()
    house.clock.advance(3600)
    assert content(log) == before


def test_deleted_records_free_segments_of_both_policies(house):
    log = house.create(cleanup_policy=frozenset({"compact", "delete"}), min_cleanable_dirty_ratio=1.0)
    house.fill(log, 100)
    log.delete_records_before(90)
    house.clock.advance(BACKOFF_S)
    assert log.segments[0].base_offset > 80
    assert content(log)[0][0] == 90
    assert house.checkpoint() is None or house.checkpoint() >= 0


# ---------------------------------------------------------------- what comes in between


def test_a_log_that_is_deleted_meanwhile(holding):
    log = holding.create()
    holding.fill(log, 100)
    holding.clock.advance(0)
    holding.manager.delete_async(log)
    assert holding.hands[0].is_aborted
    again = holding.create()
    holding.fill(again, 10)
    holding.hands[0].work()
    assert len(content(again)) == 10
    assert not any(name.endswith((".swap", ".cleaned")) for name in holding.files.sizes(again.directory))
    assert holding.manager.directories[0].offline is None
    assert holding.checkpoint() is None


def test_a_new_log_has_never_been_cleaned(house):
    log = house.create()
    house.fill(log, 100)
    house.clock.advance(0)
    house.manager.delete_async(log)
    assert house.checkpoint() is None
    assert house.text() == "0\n0\n"


def test_a_log_that_is_truncated_meanwhile(holding):
    log = holding.create()
    holding.fill(log, 100)
    holding.clock.advance(0)
    log.truncate_to(37, holding.clock.time_ms())
    assert holding.hands[0].is_aborted
    before = content(log)
    holding.hands[0].work()
    assert content(log) == before
    assert not any(name.endswith((".swap", ".cleaned")) for name in holding.files.sizes(log.directory))


@pytest.mark.parametrize("how", ["truncate", "delete"])
def test_a_result_that_comes_too_late(holding, how):
    """Between the last segment's swap and the end of the pass the log became another one."""
    log = holding.create()
    holding.fill(log, 100)
    holding.clock.advance(0)
    (hand,) = holding.hands
    job, on_group, done = hand.waiting.pop()
    outcomes = []
    InlineHand(holding.files, holding.clock).begin(job, on_group, outcomes.append)
    if how == "truncate":
        log.truncate_to(10, holding.clock.time_ms())
    else:
        holding.manager.delete_async(log)
    done(outcomes[0])
    assert holding.checkpoint() == (0 if how == "truncate" else None)


def test_what_comes_after_a_truncation_is_dirty(house):
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


def test_a_policy_that_changes_meanwhile(holding):
    log = holding.create()
    holding.fill(log, 100)
    holding.clock.advance(0)
    holding.manager.update_config(log, log.config._replace(cleanup_policy=frozenset({"delete"})))
    assert holding.hands[0].is_aborted
    holding.hands[0].work()
    assert len(content(log)) == 100
    assert log not in holding.cleaner.uncleanable


def test_appends_and_rolls_meanwhile(holding):
    log = holding.create()
    holding.fill(log, 100)
    holding.clock.advance(0)
    holding.fill(log, 100, keys=7)
    before = latest(log)
    holding.hands[0].work()
    assert latest(log) == before
    assert len(content(log)) < 130


def test_a_stop_meanwhile(holding):
    log = holding.create()
    holding.fill(log, 100)
    holding.clock.advance(0)
    before = latest(log)
    holding.manager.close()
    assert holding.hands[0].is_closed
    holding.hands[0].work()
    holding.open()
    assert latest(holding.manager.get("orders", 0)) == before
    assert len(content(holding.manager.get("orders", 0))) == 100


def test_a_damaged_log_is_left_as_it_is(house, caplog):
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


def test_a_checkpoint_beyond_the_end_is_not_believed(house):
    log = house.create()
    house.fill(log, 100)
    house.manager.close()
    house.files.write_atomically("/data/cleaner-offset-checkpoint", b"0\n1\norders 0 4711\n", sync=True)
    house.open()
    assert house.checkpoint() is None
    house.clock.advance(0)
    assert len(content(house.manager.get("orders", 0))) < 20


def test_a_checkpoint_before_the_start_is_not_believed(house):
    log = house.create(cleanup_policy=frozenset({"compact", "delete"}))
    house.fill(log, 100)
    house.clock.advance(0)
    house.fill(log, 100)
    log.delete_records_before(150)
    before = latest(log)
    house.clock.advance(BACKOFF_S)
    assert latest(log) == before
    assert len(content(log)) < 20


def test_a_directory_that_fails_stops_its_passes():
    house = House(dirs=("/data/a", "/data/b"), holds=True, threads=2)
    logs = [house.create("orders", number) for number in range(2)]
    for log in logs:
        house.fill(log, 100)
    house.clock.advance(0)
    directories = [house.manager.directory_of(log) for log in logs]
    assert directories[0] is not directories[1]
    house.manager.directory_failed(directories[0], OSError("broken"))
    first, second = house.hands
    if house.cleaner.passes[logs[0]].hand is second:
        first, second = second, first
    assert first.is_aborted and not second.is_aborted
    first.work()
    second.work()
    house.clock.advance(BACKOFF_S)
    assert len(content(logs[1])) < 20


# ---------------------------------------------------------------- settings, and rest


def test_a_share_of_the_settings_for_each_thread():
    house = House(
        holds=True,
        threads=4,
        dedupe_buffer_size=4 * 1000 * BYTES_PER_ENTRY,
        io_buffer_load_factor=0.5,
        io_max_bytes_per_second=8000.0,
    )
    house.fill(house.create(delete_retention_ms=77), 100)
    house.clock.advance(0)
    job = house.hands[0].waiting[0][0]
    assert (job.map_entries, job.max_bytes_per_second, job.delete_retention_ms) == (500, 2000.0, 77)


def test_not_a_byte_a_second_is_none_ever():
    house = House(io_max_bytes_per_second=0.0)
    house.fill(house.create(), 100)
    house.clock.advance(3 * BACKOFF_S)
    assert not house.hands
    house.cleaner.reconfigure(house.cleaner.settings._replace(log_cleaner_io_max_bytes_per_second=1e6))
    house.clock.advance(0)
    assert len(content(house.manager.get("orders", 0))) < 20


def test_settings_change_while_the_broker_runs(holding):
    holding.fill(holding.create(), 100)
    holding.clock.advance(0)
    holding.cleaner.reconfigure(holding.cleaner.settings)
    assert not holding.hands[0].is_closed
    holding.cleaner.reconfigure(holding.cleaner.settings._replace(log_cleaner_backoff_ms=1000))
    assert holding.hands[0].is_closed
    holding.clock.advance(0)
    holding.hands[1].work()
    log = holding.manager.get("orders", 0)
    assert len(content(log)) < 20
    holding.fill(log, 100)
    holding.clock.advance(1)
    assert holding.hands[1].waiting


def test_what_cleans_is_given_back_when_it_has_nothing_to_do(holding):
    holding.fill(holding.create(), 100)
    holding.clock.advance(0)
    holding.hands[0].work()
    holding.clock.advance(45)
    assert not holding.hands[0].rests
    holding.clock.advance(30)
    assert holding.hands[0].rests and not holding.hands[0].is_closed
    holding.fill(holding.manager.get("orders", 0), 100)
    holding.clock.advance(BACKOFF_S)
    assert len(holding.hands) == 2


def test_a_log_that_moves_takes_along_how_far_it_is_clean():
    house = House(dirs=("/data/a", "/data/b"))
    log = house.create(min_cleanable_dirty_ratio=0.9)
    house.fill(log, 100)
    house.clock.advance(0)
    before, clean_to = content(log), house.cleaner.checkpoints[house.manager.directory_of(log)]["orders", 0]
    source = house.manager.directory_of(log)
    (target,) = (each for each in house.manager.directories if each is not source)
    house.manager.moves.begin(log, target)
    house.clock.advance(BACKOFF_S)
    moved = house.manager.get("orders", 0)
    assert house.manager.directory_of(moved) is target
    assert content(moved) == before
    assert ("orders", 0) not in house.cleaner.checkpoints[source]
    assert house.cleaner.checkpoints[target]["orders", 0] == clean_to
    assert house.text(f"{source.path}/cleaner-offset-checkpoint") == "0\n0\n"
    assert house.text(f"{target.path}/cleaner-offset-checkpoint") == f"0\n1\norders 0 {clean_to}\n"
    house.fill(moved, 200)
    newest = latest(moved)
    house.clock.advance(BACKOFF_S)
    assert latest(moved) == newest and len(content(moved)) < 30


def test_a_log_that_moves_while_it_is_cleaned():
    house = House(dirs=("/data/a", "/data/b"), holds=True)
    log = house.create()
    house.fill(log, 100)
    house.clock.advance(0)
    source = house.manager.directory_of(log)
    (target,) = (each for each in house.manager.directories if each is not source)
    house.manager.moves.begin(log, target)
    house.clock.advance(1)
    moved = house.manager.get("orders", 0)
    assert moved is not log and house.hands[0].is_aborted
    before = content(moved)
    house.hands[0].work()
    assert content(moved) == before
    assert all(directory.offline is None for directory in house.manager.directories)
    house.clock.advance(0)
    house.hands[0].work()
    assert len(content(moved)) < 20

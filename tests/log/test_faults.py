"""Each change of a file fails once, in each of several ways; what was acknowledged is there afterwards."""

import errno
import itertools
from random import Random

import pytest

from barnabas.clock import ManualClock
from barnabas.config.topic import TopicConfig
from barnabas.errors import KafkaError, KafkaStorageError
from barnabas.log.housekeeping import LogSettings
from barnabas.log.log_directory import LogDirectoryError
from barnabas.log.log_manager import LogManager
from barnabas.log.recovery import create_log, open_log
from barnabas.log.services import LogServices
from barnabas.records.batch import batches
from barnabas.records.record import records_of
from barnabas.testing.faults import FaultyFiles

NOW_MS = 1_700_000_000_000
ID = bytes(range(16))
CONFIG = TopicConfig(segment_bytes=700, index_interval_bytes=150, retention_ms=-1)
DIRECTORY = "/data/orders-0"

CHANCES = [None, 1, 2, 3]
"""After a power cut: nothing that was not fsynced is left, or what dice of that seed say."""


class Model:
    """What is in the log: a start offset and values; and what may be instead, while a step is under way."""

    def __init__(self):
        self.start, self.values, self.flushed = 0, [], 0
        self.recovery_point = 0
        self.before = None
        self.history = []

    def state(self):
        return self.start, tuple(self.values)

    def begin(self):
        """A step is under way; the state before it is remembered."""
        self.before = self.state()
        self.history.append(self.before)

    @property
    def acceptable(self):
        """After a failure the step under way was taken, or it was not."""
        return [self.before or self.state(), self.state()]


def values_of(log):
    """The start offset and values of all records; offsets must be dense."""
    found, offset = [], log.log_start_offset
    while data := log.read(offset, 1 << 20, up_to=log.log_end_offset, minimum_one=True):
        for batch in batches(data):
            batch.check_crc()
            for record in records_of(batch):
                if record.offset >= log.log_start_offset:
                    assert record.offset == log.log_start_offset + len(found)
                    found.append(record.value)
            offset = batch.next_offset
    assert log.log_start_offset + len(found) == log.log_end_offset
    return log.log_start_offset, tuple(found)


def agrees(found, known):
    """Whether two (start, values) say the same of the offsets that both of them have; and how far they agree."""
    first = max(found[0], known[0])
    return all(
        ours == theirs for ours, theirs in zip(found[1][first - found[0] :], known[1][first - known[0] :], strict=False)
    )


def end_of(state):
    return state[0] + len(state[1])


def story(files, model, batch):
    """Everything that a log can live through."""
    services = LogServices(files)
    files.makedirs("/data")
    files.keep()
    log = create_log(services, DIRECTORY, "orders", 0, ID, CONFIG, now_ms=NOW_MS)
    names = itertools.count()
    sequences = {0: 0, 1: 0}

    def append(count, epoch=0):
        values = [b"value %d" % next(names) for _ in range(count)]
        model.begin()
        model.values += values
        made = batch(values, producer_id=4, producer_epoch=epoch, base_sequence=sequences[epoch])
        sequences[epoch] += count
        log.append_as_leader(made, leader_epoch=epoch, now_ms=NOW_MS)
        log.maybe_set_high_watermark(log.log_end_offset)

    def flush():
        model.begin()
        log.flush()
        model.flushed, model.recovery_point = log.log_end_offset, log.recovery_point

    for count in (3, 1, 5, 2, 4, 6, 1):
        append(count)
    flush()
    for count in (2, 9, 4):
        append(count)
    model.begin()
    del model.values[24:]
    model.recovery_point = min(model.recovery_point, 24)
    log.truncate_to(24, NOW_MS)
    append(7, epoch=1)
    flush()
    log.delete_records_before(8)
    model.begin()
    log.update_config(CONFIG._replace(retention_bytes=900))
    log.enforce_retention(NOW_MS)
    gone = log.log_start_offset - model.start
    model.start, model.values = model.start + gone, model.values[gone:]
    log.update_config(CONFIG)
    append(3, epoch=1)
    log.roll(NOW_MS)
    append(2, epoch=1)
    model.begin()
    log.close()
    model.flushed = log.log_end_offset


def told(n, files):
    """Where it was that the failure struck."""
    return f"failure at operation {n}, {files.changes[n - 1]}"


def reopened(files, model):
    """The log as the next process has it."""
    return open_log(
        LogServices(files), DIRECTORY, "orders", 0, CONFIG,
        clean=False, recovery_point=model.recovery_point, now_ms=NOW_MS,
    )  # fmt: skip


def goes_on(log, files, batch):
    """It takes an append, and opens again with that."""
    before = values_of(log)
    log.append_as_leader(batch([b"one more"]), leader_epoch=7, now_ms=NOW_MS)
    log.close()
    again = open_log(
        LogServices(files.survivor()), DIRECTORY, "orders", 0, CONFIG, clean=True, recovery_point=0, now_ms=NOW_MS
    )
    assert values_of(again) == (before[0], (*before[1], b"one more"))


@pytest.mark.parametrize("lasting", ["for ever", "once"])
@pytest.mark.parametrize("torn", [0, 1, 12, 100, "any"])
def test_a_kill_at_any_operation_loses_nothing(batch, torn, lasting):
    for n in itertools.count(1):
        files = FaultyFiles(n, torn=Random(n) if torn == "any" else torn, lasting=lasting)
        model = Model()
        try:
            story(files, model, batch)
        except (KafkaError, OSError):
            assert files.has_failed
        if not files.has_failed:
            assert n > 70
            return
        survivor = files.survivor()
        if not survivor.exists(f"{DIRECTORY}/{0:020d}.log") and not model.values:
            continue  # it was not even made
        log = reopened(survivor, model)
        start, values = values_of(log)
        kept = [
            (known_start, known)
            for known_start, known in model.acceptable
            if log.log_end_offset == known_start + len(known)
        ]
        assert kept, f"{told(n, files)}: the log ends at {log.log_end_offset}"
        known_start, known = kept[0]
        # Where the log starts is checkpointed from time to time only: records that were deleted may be back.
        assert values[max(known_start - start, 0) :] == known[max(start - known_start, 0) :]
        goes_on(log, survivor, batch)


@pytest.mark.parametrize("chance", CHANCES)
@pytest.mark.parametrize("torn", [0, "any"])
def test_a_power_cut_at_any_operation_loses_nothing_that_was_flushed(batch, torn, chance):
    for n in itertools.count(1):
        files, model = FaultyFiles(n, torn=Random(n) if torn == "any" else torn), Model()
        try:
            story(files, model, batch)
        except (KafkaError, OSError):
            assert files.has_failed
        if not files.has_failed:
            return
        survivor = files.survivor(power_cut=True, chance=None if chance is None else Random(chance * 1000 + n))
        if not survivor.exists(DIRECTORY):
            assert model.flushed == 0, told(n, files)
            continue
        log = reopened(survivor, model)
        found = values_of(log)
        assert end_of(found) >= min(model.flushed, *map(end_of, model.acceptable)), told(n, files)
        states = [*model.history, model.state()]
        assert any(agrees(found, state) and end_of(found) <= end_of(state) for state in states), told(n, files)
        for state in model.acceptable[-1:]:
            assert agrees((found[0], found[1][: model.flushed - found[0]]), state), told(n, files)
        goes_on(log, survivor, batch)


def test_a_write_may_be_torn_at_any_byte(batch):
    """Of a batch behind others, so much of it as reached the file is cut off again; the others stay."""
    whole = bytes(batch([b"second", b"third"]).buffer)
    for kept in range(len(whole)):
        files = FaultyFiles()
        files.makedirs("/data")
        log = create_log(LogServices(files), DIRECTORY, "orders", 0, ID, CONFIG, now_ms=NOW_MS)
        log.append_as_leader(batch([b"first"]), leader_epoch=0, now_ms=NOW_MS)
        files.fail_at, files.torn = len(files.changes) + 1, kept
        with pytest.raises(KafkaStorageError):
            log.append_as_leader(batch([b"second", b"third"]), leader_epoch=0, now_ms=NOW_MS)
        survivor = files.survivor()
        log = reopened(survivor, Model())
        assert values_of(log) == (0, (b"first",)), kept
        goes_on(log, survivor, batch)


@pytest.mark.parametrize("power_cut", [False, True])
@pytest.mark.parametrize("torn", [0, "any"])
def test_a_recovery_that_is_stopped_at_any_operation_is_done_again(batch, torn, power_cut):
    for n in itertools.count(1):
        files, model = FaultyFiles(), Model()
        story(files, model, batch)
        broken = files.survivor()
        logs = sorted(name for name in broken.sizes(DIRECTORY) if name.endswith(".log"))
        broken.open(f"{DIRECTORY}/{logs[-1]}").write(b"half a batch" * 9)
        broken.delete(f"{DIRECTORY}/{logs[0][:-4]}.index")
        broken.create(f"{DIRECTORY}/{5:020d}.log.deleted")
        broken.create(f"{DIRECTORY}/leader-epoch-checkpoint").write(b"0\n")
        broken.keep()
        broken.changes.clear()
        broken.fail_at, broken.torn = n, Random(n) if torn == "any" else torn
        try:
            reopened(broken, Model())
        except OSError:
            assert broken.has_failed
        if not broken.has_failed:
            assert n > 15
            return
        survivor = broken.survivor(power_cut=power_cut, chance=Random(n) if torn == "any" else None)
        log = reopened(survivor, Model())
        start, values = values_of(log)
        assert values[model.start - start :] == tuple(model.values), told(n, broken)
        goes_on(log, survivor, batch)


# ---------------------------------------------------------------- the logs of a broker


SMALL = CONFIG._replace(segment_bytes=300)


class Keeper:
    """A broker's logs: made, written, checkpointed, deleted, closed; and what was promised of them."""

    def __init__(self, files):
        self.files = files
        self.acknowledged, self.flushed = {}, {}
        self.clock = ManualClock()

    def open(self):
        manager = LogManager(
            self.files,
            ["/data/a", "/data/b"],
            clock=self.clock,
            scheduler=self.clock,
            settings=LogSettings(num_recovery_threads_per_data_dir=1),  # operations come in the same order each time
        )
        manager.start(1, "cluster")
        manager.open_all(lambda topic: SMALL)
        return manager

    def live(self, batch):
        manager = self.open()
        logs = [manager.create("orders", partition, ID, SMALL) for partition in range(3)]
        doomed = manager.create("doomed", 0, ID, SMALL)
        doomed.append_as_leader(batch([b"doomed"]), leader_epoch=0, now_ms=NOW_MS)
        self.fill(logs, batch, range(18))
        manager.housekeeping.checkpoint_high_watermarks()
        logs[0].flush()
        self.flushed[0] = logs[0].recovery_point
        manager.housekeeping.checkpoint_recovery_points()
        logs[0].delete_records_before(3)
        manager.housekeeping.checkpoint_log_start_offsets()
        self.fill(logs, batch, range(18, 30))
        manager.delete_async(doomed)
        manager.update_config(logs[0], SMALL._replace(retention_bytes=300))
        manager.housekeeping.enforce_retention()
        self.clock.advance(61)
        logs[1].flush()
        self.flushed[1] = logs[1].recovery_point
        manager.close()
        if not self.files.has_failed:
            self.flushed = {log.partition: log.log_end_offset for log in logs}

    def fill(self, logs, batch, numbers):
        for number in numbers:
            log = logs[number % 3]
            if log.is_offline:
                continue
            value = b"value %d" % number
            log.append_as_leader(batch([value]), leader_epoch=0, now_ms=NOW_MS)
            log.maybe_set_high_watermark(log.log_end_offset)
            self.acknowledged.setdefault(log.partition, []).append(value)

    def check(self, manager, where, kept):
        """Of each partition the records below ``kept[partition]`` are there, and only what was written."""
        for partition, values in self.acknowledged.items():
            log = manager.get("orders", partition)
            if log is None:
                assert not kept.get(partition), where
                continue
            start, found = values_of(log)
            assert log.topic_id in (ID, bytes(16)), where
            assert log.log_end_offset >= kept.get(partition, 0), where
            assert list(found[: len(values) - start]) == values[start : log.log_end_offset], where
            assert len(found) <= len(values) - start + 1, where


@pytest.mark.parametrize(("lasting", "code"), [("once", errno.ENOSPC), ("for ever", errno.EIO)])
def test_a_broker_killed_at_any_operation_starts_again(batch, lasting, code):
    for n in itertools.count(1):
        files = FaultyFiles(n, lasting=lasting, code=code, torn=Random(n))
        keeper = Keeper(files)
        try:
            keeper.live(batch)
        except (KafkaError, LogDirectoryError, OSError):
            assert files.has_failed
        if not files.has_failed:
            assert n > 150
            return
        keeper.files = files.survivor()
        manager = keeper.open()
        where = told(n, files)
        keeper.check(manager, where, {each: len(values) for each, values in keeper.acknowledged.items()})
        manager.close()
        assert keeper.open().directories[0].was_clean


@pytest.mark.parametrize("chance", CHANCES[:2])
def test_a_broker_whose_power_is_cut_at_any_operation_starts_again(batch, chance):
    for n in itertools.count(1):
        files = FaultyFiles(n, torn=Random(n))
        keeper = Keeper(files)
        try:
            keeper.live(batch)
        except (KafkaError, LogDirectoryError, OSError):
            assert files.has_failed
        if not files.has_failed:
            return
        keeper.files = files.survivor(power_cut=True, chance=None if chance is None else Random(chance * 1000 + n))
        manager = keeper.open()
        keeper.check(manager, told(n, files), keeper.flushed)
        manager.close()


@pytest.mark.parametrize("power_cut", [False, True])
def test_a_start_that_is_stopped_at_any_operation_is_done_again(batch, power_cut):
    """Also where the start before it had to recover, and found what a deletion had left."""
    for n in itertools.count(1):
        keeper = Keeper(FaultyFiles())
        manager = keeper.open()
        logs = [manager.create("orders", partition, ID, SMALL) for partition in range(3)]
        keeper.fill(logs, batch, range(30))
        manager.delete_async(manager.create("doomed", 0, ID, SMALL))
        keeper.files = files = keeper.files.survivor()
        files.fail_at = n
        try:
            keeper.open().close()
        except (KafkaError, LogDirectoryError, OSError):
            assert files.has_failed
        if not files.has_failed:
            assert n > 40
            return
        keeper.files = files.survivor(power_cut=power_cut, chance=Random(n) if power_cut else None)
        where = told(n, files)
        keeper.check(keeper.open(), where, {each: len(values) for each, values in keeper.acknowledged.items()})

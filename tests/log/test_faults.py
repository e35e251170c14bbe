"""Each change of a file fails once, in several ways. Afterwards all acknowledged records exist."""

import errno
import itertools
from random import Random

import pytest

from barnabas.clock import ManualClock
from barnabas.config.topic import TopicConfig
from barnabas.errors import KafkaError, KafkaStorageError
from barnabas.log.housekeeping import LogSettings
from barnabas.log.log_directory import LogDirectory, LogDirectoryError
from barnabas.log.log_manager import LogManager
from barnabas.log.partition_log import LogServices
from barnabas.log.recovery import create_log, open_log
from barnabas.records.batch import batches
from barnabas.records.record import records_of
from barnabas.testing.faults import FaultyFiles

NOW_MS = 1_700_000_000_000
ID = bytes(range(16))
CONFIG = TopicConfig(segment_bytes=700, index_interval_bytes=150, retention_ms=-1)
DIRECTORY = "/data/orders-0"

CHANCES = [None, 1, 2, 3]
"""After a power cut nothing unsynced is left (None), or a random part of it, by that seed."""


class Model:
    """The expected log: a start offset and values. While a step is under way, the state before it is expected too."""

    def __init__(self):
        self.start, self.values, self.flushed = 0, [], 0
        self.recovery_point = 0
        self.before = None
        self.history = []

    def state(self):
        return self.start, tuple(self.values)

    def begin(self):
        """Starts a step."""
        self.before = self.state()
        self.history.append(self.before)

    @property
    def acceptable(self):
        """Returns the states that are correct after a failure: the step is done, or not."""
        return [self.before or self.state(), self.state()]


def values_of(log):
    """Returns the start offset and the values of all records. The offsets must have no gaps."""
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
    """Returns whether two (start, values) are equal at their common offsets, and where they end."""
    first = max(found[0], known[0])
    return all(
        ours == theirs for ours, theirs in zip(found[1][first - found[0] :], known[1][first - known[0] :], strict=False)
    )


def end_of(state):
    return state[0] + len(state[1])


def story(files, model, batch):
    """Does everything that can be done to a log."""
    services = LogServices(LogDirectory(files, "/data"))
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


def failed_at(n, files):
    """Returns a text that names the failed operation."""
    return f"failure at operation {n}, {files.changes[n - 1]}"


def reopened(files, model):
    """Opens the log as the next process does."""
    return open_log(
        LogServices(LogDirectory(files, "/data")), DIRECTORY, "orders", 0, CONFIG,
        clean=False, recovery_point=model.recovery_point, now_ms=NOW_MS,
    )  # fmt: skip


def check_usable(log, files, batch):
    """Checks that the log can be appended to, and has the record after it is reopened."""
    before = values_of(log)
    log.append_as_leader(batch([b"one more"]), leader_epoch=7, now_ms=NOW_MS)
    log.close()
    again = open_log(
        LogServices(LogDirectory(files.survivor(), "/data")),
        DIRECTORY,
        "orders",
        0,
        CONFIG,
        clean=True,
        recovery_point=0,
        now_ms=NOW_MS,
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
            continue  # the log was not created
        log = reopened(survivor, model)
        start, values = values_of(log)
        kept = [
            (known_start, known)
            for known_start, known in model.acceptable
            if log.log_end_offset == known_start + len(known)
        ]
        assert kept, f"{failed_at(n, files)}: the log ends at {log.log_end_offset}"
        known_start, known = kept[0]
        # The log start offset is only checkpointed periodically, so deleted records may be back.
        assert values[max(known_start - start, 0) :] == known[max(start - known_start, 0) :]
        check_usable(log, survivor, batch)


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
            assert model.flushed == 0, failed_at(n, files)
            continue
        log = reopened(survivor, model)
        found = values_of(log)
        assert end_of(found) >= min(model.flushed, *map(end_of, model.acceptable)), failed_at(n, files)
        states = [*model.history, model.state()]
        assert any(agrees(found, state) and end_of(found) <= end_of(state) for state in states), failed_at(n, files)
        for state in model.acceptable[-1:]:
            assert agrees((found[0], found[1][: model.flushed - found[0]]), state), failed_at(n, files)
        check_usable(log, survivor, batch)


def test_epochs_of_flushed_records_survive_a_power_cut(batch):
    """The file is replaced by a rename, which needs an fsync of the directory."""
    files, model = FaultyFiles(), Model()
    files.makedirs("/data")
    files.keep()
    log = create_log(LogServices(LogDirectory(files, "/data")), DIRECTORY, "orders", 0, ID, CONFIG, now_ms=NOW_MS)
    log.append_as_leader(batch(2), leader_epoch=0, now_ms=NOW_MS)
    log.maybe_set_high_watermark(1)
    log.delete_records_before(1)
    log.flush()  # with the entry (0, 1)
    log.truncate_to(0)
    log.append_as_leader(batch(1), leader_epoch=0, now_ms=NOW_MS)
    log.flush()
    model.recovery_point = log.recovery_point
    assert reopened(files.survivor(power_cut=True), model).leader_epochs.entries == [(0, 0)]


def test_a_write_torn_at_any_byte(batch):
    """The part that was written is cut off. The batches before it stay."""
    whole = bytes(batch([b"second", b"third"]).buffer)
    for kept in range(len(whole)):
        files = FaultyFiles()
        files.makedirs("/data")
        log = create_log(LogServices(LogDirectory(files, "/data")), DIRECTORY, "orders", 0, ID, CONFIG, now_ms=NOW_MS)
        log.append_as_leader(batch([b"first"]), leader_epoch=0, now_ms=NOW_MS)
        files.fail_at, files.torn = len(files.changes) + 1, kept
        with pytest.raises(KafkaStorageError):
            log.append_as_leader(batch([b"second", b"third"]), leader_epoch=0, now_ms=NOW_MS)
        survivor = files.survivor()
        log = reopened(survivor, Model())
        assert values_of(log) == (0, (b"first",)), kept
        check_usable(log, survivor, batch)


@pytest.mark.parametrize("power_cut", [False, True])
@pytest.mark.parametrize("torn", [0, "any"])
def test_a_recovery_interrupted_at_any_operation_is_repeated(batch, torn, power_cut):
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
        assert values[model.start - start :] == tuple(model.values), failed_at(n, broken)
        check_usable(log, survivor, batch)


# ---------------------------------------------------------------- the logs of a broker


SMALL = CONFIG._replace(segment_bytes=300)


class Broker:
    """A broker's logs, and the records of each that must survive."""

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
            settings=LogSettings(
                num_recovery_threads_per_data_dir=1
            ),  # so that the order of the operations is always the same
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
        """Checks that each partition has the records below ``kept[partition]``, and no others than were written."""
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
def test_a_broker_killed_at_any_operation(batch, lasting, code):
    for n in itertools.count(1):
        files = FaultyFiles(n, lasting=lasting, code=code, torn=Random(n))
        broker = Broker(files)
        try:
            broker.live(batch)
        except (KafkaError, LogDirectoryError, OSError):
            assert files.has_failed
        if not files.has_failed:
            assert n > 150
            return
        broker.files = files.survivor()
        manager = broker.open()
        where = failed_at(n, files)
        broker.check(manager, where, {each: len(values) for each, values in broker.acknowledged.items()})
        manager.close()
        assert broker.open().directories[0].was_clean


@pytest.mark.parametrize("chance", CHANCES[:2])
def test_a_power_cut_of_a_broker_at_any_operation(batch, chance):
    for n in itertools.count(1):
        files = FaultyFiles(n, torn=Random(n))
        broker = Broker(files)
        try:
            broker.live(batch)
        except (KafkaError, LogDirectoryError, OSError):
            assert files.has_failed
        if not files.has_failed:
            return
        broker.files = files.survivor(power_cut=True, chance=None if chance is None else Random(chance * 1000 + n))
        manager = broker.open()
        broker.check(manager, failed_at(n, files), broker.flushed)
        manager.close()


@pytest.mark.parametrize("power_cut", [False, True])
def test_a_start_interrupted_at_any_operation_is_repeated(batch, power_cut):
    """The start before recovers logs and completes a deletion."""
    for n in itertools.count(1):
        broker = Broker(FaultyFiles())
        manager = broker.open()
        logs = [manager.create("orders", partition, ID, SMALL) for partition in range(3)]
        broker.fill(logs, batch, range(30))
        manager.delete_async(manager.create("doomed", 0, ID, SMALL))
        broker.files = files = broker.files.survivor()
        files.keep()
        files.fail_at = n
        try:
            broker.open().close()
        except (KafkaError, LogDirectoryError, OSError):
            assert files.has_failed
        if not files.has_failed:
            assert n > 40
            return
        broker.files = files.survivor(power_cut=power_cut, chance=Random(n) if power_cut else None)
        where = failed_at(n, files)
        broker.check(broker.open(), where, {each: len(values) for each, values in broker.acknowledged.items()})

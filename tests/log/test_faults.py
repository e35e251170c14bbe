"""Each change of a file fails once, in each of several ways; what was acknowledged is there afterwards."""

import itertools

import pytest

from barnabas.clock import ManualClock
from barnabas.config.topic import TopicConfig
from barnabas.errors import KafkaError
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


class Model:
    """What is in the log: a start offset and values; and what may be instead, while a step is under way."""

    def __init__(self):
        self.start, self.values, self.flushed = 0, [], 0
        self.recovery_point = 0
        self.before = None

    def state(self):
        return self.start, tuple(self.values)

    def begin(self):
        self.before = self.state()

    @property
    def acceptable(self):
        """After a failure the step under way was taken, or it was not."""
        return {self.before or self.state(), self.state()}


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


def story(files, model, batch):
    """Everything that a log can live through."""
    services = LogServices(files)
    files.makedirs(DIRECTORY)
    log = create_log(services, DIRECTORY, "orders", 0, ID, CONFIG, now_ms=NOW_MS)
    names = itertools.count()

    def append(count, epoch=0):
        values = [b"value %d" % next(names) for _ in range(count)]
        model.begin()
        model.values += values
        sequence = log.log_end_offset
        made = batch(values, producer_id=4, producer_epoch=epoch, base_sequence=sequence if epoch == 0 else 0)
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
    log.truncate_to(24, NOW_MS)
    append(7, epoch=1)
    flush()
    log.delete_records_before(8)
    model.begin()
    log.update_config(CONFIG._replace(retention_bytes=900))
    log.enforce_retention(NOW_MS)
    gone = log.log_start_offset - model.start
    model.start, model.values = model.start + gone, model.values[gone:]
    model.begin()
    log.close()
    model.flushed = log.log_end_offset


@pytest.mark.parametrize("torn", [0, 1, 12, 100])
def test_a_kill_at_any_operation_loses_nothing(batch, torn):
    for n in itertools.count(1):
        files, model = FaultyFiles(n, torn=torn), Model()
        try:
            story(files, model, batch)
        except (KafkaError, OSError):
            assert files.has_failed
        if not files.has_failed:
            assert n > 60
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
        assert kept, f"failure at operation {n}, {files.changes[n - 1]}: the log ends at {log.log_end_offset}"
        known_start, known = kept[0]
        # Where the log starts is checkpointed from time to time only: records that were deleted may be back.
        assert values[max(known_start - start, 0) :] == known[max(start - known_start, 0) :]


@pytest.mark.parametrize("torn", [0, 1, 100])
def test_a_power_cut_at_any_operation_loses_nothing_that_was_flushed(batch, torn):
    for n in itertools.count(1):
        files, model = FaultyFiles(n, torn=torn), Model()
        try:
            story(files, model, batch)
        except (KafkaError, OSError):
            assert files.has_failed
        if not files.has_failed:
            return
        survivor = files.survivor(power_cut=True)
        if not survivor.exists(f"{DIRECTORY}/{0:020d}.log"):
            assert model.flushed == 0
            continue
        log = reopened(survivor, model)
        start, values = values_of(log)
        assert log.log_end_offset >= model.flushed, f"power cut at operation {n}, {files.changes[n - 1]}"
        known_start, known = model.state()
        first = max(start, known_start)
        flushed = known[first - known_start : max(model.flushed - known_start, 0)]
        assert values[first - start :][: len(flushed)] == flushed


def reopened(files, model):
    """The log as the next process has it: it opens, takes an append, and opens again with that."""
    services = LogServices(files)
    arguments = ("orders", 0, CONFIG)
    log = open_log(services, DIRECTORY, *arguments, clean=False, recovery_point=model.recovery_point, now_ms=NOW_MS)
    return log


@pytest.mark.parametrize("fail_at_first", range(1, 40))
def test_a_recovery_that_is_killed_is_done_again(batch, fail_at_first):
    files, model = FaultyFiles(), Model()
    story(files, model, batch)
    broken = files.survivor()
    tail = max(name for name in broken.sizes(DIRECTORY) if name.endswith(".log"))
    broken.open(f"{DIRECTORY}/{tail}").write(b"half a batch" * 9)
    broken.create(f"{DIRECTORY}/{5:020d}.log.deleted")
    broken.changes.clear()
    broken.fail_at = fail_at_first
    try:
        reopened(broken, Model())
    except OSError:
        assert broken.has_failed
    log = reopened(broken.survivor(), Model())
    start, values = values_of(log)
    assert values[model.start - start :] == tuple(model.values)


def manage(files, acknowledged, batch):
    """A broker's logs: made, written, checkpointed, deleted, closed."""
    clock = ManualClock()
    manager = LogManager(files, ["/data/a", "/data/b"], clock=clock, scheduler=clock)
    manager.start(1, "cluster")
    manager.open_all(lambda topic: CONFIG)
    logs = [manager.create("orders", partition, ID, CONFIG) for partition in range(3)]
    doomed = manager.create("doomed", 0, ID, CONFIG)
    for number in range(12):
        log = logs[number % 3]
        value = b"value %d" % number
        log.append_as_leader(batch([value]), leader_epoch=0, now_ms=NOW_MS)
        log.maybe_set_high_watermark(log.log_end_offset)
        acknowledged.setdefault(log.partition, []).append(value)
    manager.housekeeping.checkpoint_high_watermarks()
    logs[0].flush()
    manager.housekeeping.checkpoint_recovery_points()
    manager.delete_async(doomed)
    clock.advance(61)
    manager.close()


@pytest.mark.parametrize("lasting", ["once", "for ever"])
def test_a_broker_killed_at_any_operation_starts_again(batch, lasting):
    for n in itertools.count(1):
        files, acknowledged = FaultyFiles(n, lasting=lasting), {}
        try:
            manage(files, acknowledged, batch)
        except (KafkaError, LogDirectoryError, OSError):
            assert files.has_failed
        if not files.has_failed:
            assert n > 80
            return
        survivor = files.survivor()
        clock = ManualClock()
        manager = LogManager(survivor, ["/data/a", "/data/b"], clock=clock, scheduler=clock)
        manager.start(1, "cluster")
        manager.open_all(lambda topic: CONFIG)
        for partition, values in acknowledged.items():
            log = manager.get("orders", partition)
            assert log is not None, f"failure at operation {n}, {files.changes[n - 1]}"
            start, found = values_of(log)
            assert start == 0
            assert list(found[: len(values)]) == values, f"failure at operation {n}, {files.changes[n - 1]}"
            assert len(found) <= len(values) + 1
        manager.close()

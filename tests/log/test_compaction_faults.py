"""Each change of a file fails once during compaction. Afterwards the latest record of each key exists, in order."""

import itertools
from random import Random

import pytest

from barnabas.clock import ManualClock
from barnabas.config.topic import TopicConfig
from barnabas.errors import KafkaError
from barnabas.log.cleaner import CleanerSettings
from barnabas.log.log_directory import LogDirectoryError
from barnabas.log.log_manager import LogManager
from barnabas.records.batch import RecordBatch, batches
from barnabas.records.builder import build_batch
from barnabas.records.record import records_of
from barnabas.testing.faults import FaultyFiles

ID = bytes(range(16))
CONFIG = TopicConfig(
    cleanup_policy=frozenset({"compact"}),
    segment_bytes=400,
    index_interval_bytes=100,
    delete_retention_ms=1000,
    min_cleanable_dirty_ratio=0.01,
    file_delete_delay_ms=2000,
)
SETTINGS = CleanerSettings(log_cleaner_backoff_ms=1000)
CHANCES = [None, 1, 2]
"""After a power cut nothing unsynced is left (None), or a random part of it, by that seed."""


class Broker:
    """The logs of a broker with a compacted topic."""

    def __init__(self, files):
        self.files, self.clock = files, ManualClock()
        self.manager = LogManager(
            files, ["/data"], clock=self.clock, scheduler=self.clock, cleaner_settings=SETTINGS,
        )  # fmt: skip
        self.manager.start(1, "cluster")
        self.manager.open_all(lambda topic: CONFIG)

    def log(self):
        return self.manager.create("orders", 0, ID, CONFIG)


class Story:
    """What was appended, and how many of the records must survive."""

    def __init__(self):
        self.appended = []  # (key, value) at each offset
        self.acknowledged = self.flushed = 0

    def append(self, broker, *records, **producer):
        log = broker.log()
        now_ms = broker.clock.time_ms()
        batch = build_batch([(key, value, now_ms) for key, value in records], **producer)
        self.appended += records
        log.append_as_leader(RecordBatch.parse(batch), leader_epoch=0, now_ms=now_ms)
        log.maybe_set_high_watermark(log.log_end_offset)
        self.acknowledged = log.log_end_offset

    def live(self, files):
        files.makedirs("/data")
        if hasattr(files, "keep"):
            files.keep()
        broker = Broker(files)
        log = broker.log()
        number = itertools.count()

        def fill(count, keys):
            for index in range(count):
                serial = next(number)
                key = b"key %d" % (serial % keys)
                producer = {"producer_id": 9, "producer_epoch": 0, "base_sequence": serial} if index % 2 else {}
                self.append(broker, (key, b"value %d" % serial), **({} if producer else producer))

        fill(7, 3)
        self.append(broker, (b"key 1", None), (b"gone", b"soon"))
        fill(3, 3)
        self.append(broker, (b"gone", None))
        fill(4, 4)
        broker.clock.advance(0.5)
        log.flush()
        self.flushed = log.recovery_point
        fill(5, 2)
        broker.clock.advance(2.5)
        fill(6, 5)
        broker.manager.housekeeping.checkpoint_recovery_points()
        broker.clock.advance(3)
        fill(2, 2)
        broker.manager.close()
        if broker.manager.online_directories:
            self.flushed = self.acknowledged

    def check(self, files, least, hint):
        """Checks that ``files`` have the latest record of each key, of at least the first ``least`` records."""
        broker = Broker(files)
        log = broker.manager.get("orders", 0)
        if log is None:
            assert least == 0, hint
            return
        for _ in range(2):
            found = content(log)
            end = log.log_end_offset
            assert least <= end <= len(self.appended), hint
            assert list(found) == sorted(found), hint
            for offset, record in found.items():
                assert record == self.appended[offset], hint
            latest = {self.appended[offset][0]: offset for offset in range(end)}
            for key, offset in latest.items():
                if self.appended[offset][1] is not None:
                    assert offset in found, f"{hint}: {key} at {offset}"
                elif offset not in found:
                    assert key not in {record[0] for record in found.values()}, f"{hint}: {key} is back"
            broker.clock.advance(10)  # let the cleaner run, and check again
        names = files.sizes("/data/orders-0")
        assert not any(name.endswith((".swap", ".cleaned", ".deleted")) for name in names), f"{hint}: {sorted(names)}"
        broker.manager.close()


def content(log):
    """Returns key and value by offset, in the order of the log."""
    found, offset = {}, log.log_start_offset
    while data := log.read(offset, 300, up_to=log.log_end_offset, minimum_one=True):
        for batch in batches(data):
            batch.check_crc()
            found |= {record.offset: (record.key, record.value) for record in records_of(batch)}
            offset = batch.next_offset
    assert offset == log.log_end_offset
    return found


def is_of_compaction(kind, path):
    """Returns whether an operation is part of compaction. Other tests cover the other ones."""
    return path.endswith((".cleaned", ".swap", ".deleted", ".snapshot")) or "cleaner-offset" in path or kind == "rename"


def operations():
    """Returns the numbers of the operations that will fail."""
    files = FaultyFiles()
    Story().live(files)
    numbers = [n for n, change in enumerate(files.changes, 1) if is_of_compaction(*change)]
    assert len(numbers) > 150
    first = next(n for n, (_, path) in enumerate(files.changes, 1) if path.endswith(".cleaned"))
    return [n for n in numbers if n > first - 5]


def runs(**keywords):
    """Yields a run for each operation that may fail."""
    for n in operations():
        files, story = FaultyFiles(n, **keywords), Story()
        try:
            story.live(files)
        except (KafkaError, LogDirectoryError, OSError):
            assert files.has_failed
        assert files.has_failed
        yield files, story, f"failure at operation {n}, {files.changes[n - 1]}"


def test_without_a_failure():
    files, story = FaultyFiles(), Story()
    story.live(files)
    story.check(files.survivor(), story.acknowledged, "without a failure")
    renamed = [path for kind, path in files.changes if kind == "rename"]
    assert sum(path.endswith(".log.swap") for path in renamed) > 7, "little was compacted"
    assert sum(path.endswith(".log") for path in renamed) > 10, "no segments were joined"


@pytest.mark.parametrize("torn", [0, 70])
def test_a_kill_at_any_operation(torn):
    for files, story, hint in runs(torn=torn):
        story.check(files.survivor(), story.acknowledged, hint)


def test_an_error_at_any_operation():
    """The directory goes offline. The broker shuts down and starts again."""
    for files, story, hint in runs(lasting="once"):
        story.check(files.survivor(), story.acknowledged, hint)


@pytest.mark.parametrize("seed", CHANCES)
def test_a_power_cut_at_any_operation(seed):
    for files, story, hint in runs():
        chance = None if seed is None else Random(seed)
        story.check(files.survivor(power_cut=True, chance=chance), story.flushed, hint)


@pytest.mark.parametrize("power_cut", [False, True])
def test_a_kill_at_any_operation_of_a_start(power_cut):
    """An interrupted swap is completed, however often that is interrupted again."""
    for files, story, hint in runs():
        kind, path = files.changes[files.fail_at - 1]
        if kind != "rename" or not path.endswith((".cleaned", ".swap")) or files.fail_at % 5:
            continue
        for n in itertools.count(1):
            broken = files.survivor()
            broken.fail_at = n
            try:
                Broker(broken)
            except (KafkaError, LogDirectoryError, OSError):
                assert broken.has_failed
            if not broken.has_failed:
                break
            least = story.flushed if power_cut else story.acknowledged
            story.check(broken.survivor(power_cut=power_cut), least, f"{hint}, then at {n}, {broken.changes[n - 1]}")

"""A log manager whose logs are cleaned, with inline workers, on files and a clock of the test.

Knows nothing of what is cleaned, and when.
"""

from barnabas.clock import ManualClock
from barnabas.config.topic import TopicConfig
from barnabas.log.cleaner import CleanerSettings
from barnabas.log.cleaner_workers import InlineWorker
from barnabas.log.files import MemoryFiles
from barnabas.log.housekeeping import LogSettings
from barnabas.log.log_manager import LogManager
from barnabas.records.batch import RecordBatch, batches
from barnabas.records.builder import build_batch
from barnabas.records.record import records_of

ID = bytes(range(16))
BACKOFF_S = 15
COMPACTED = {"cleanup_policy": frozenset({"compact"}), "segment_bytes": 300, "retention_ms": -1}


class Holding(InlineWorker):
    """A worker that starts a job when the test calls :meth:`work`."""

    def __init__(self, files, clock):
        super().__init__(files, clock)
        self.waiting = []
        self.is_aborted = self.is_closed = self.is_released = False

    def start(self, job, on_group, done):
        self.waiting.append((job, on_group, done))

    def work(self):
        job, on_group, done = self.waiting.pop(0)
        super().start(job, on_group, done)

    def abort(self):
        self.is_aborted = True

    def release(self):
        self.is_released = True

    def close(self):
        self.is_closed = True


class House:
    """A log manager, and what its tests do with logs. :param holds: whether workers wait for the test"""

    def __init__(self, files=None, dirs=("/data",), holds=False, **settings):
        self.clock = ManualClock()
        self.files = files if files is not None else MemoryFiles(self.clock)
        self.workers = []
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
            new_cleaner_worker=self.new_worker,
        )
        self.manager.start(1)
        self.manager.open_all(lambda topic: self.configs.get(topic, TopicConfig(**COMPACTED)))

    def new_worker(self):
        self.workers.append(Holding(self.files, self.clock) if self.holds else InlineWorker(self.files, self.clock))
        return self.workers[-1]

    @property
    def cleaner(self):
        return self.manager.cleaner

    def create(self, topic="orders", partition=0, **config):
        self.configs[topic] = TopicConfig(**COMPACTED | config)
        return self.manager.create(topic, partition, ID, self.configs[topic])

    def append(self, log, *keys, value=None, timestamp=None, commits=True, **keywords):
        """Appends a batch with a record of each key. The default value names the offset."""
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
    """Returns offset, key and value of each record, read as a consumer reads."""
    found, offset = [], log.log_start_offset
    while data := log.read(offset, 1 << 20, up_to=log.log_end_offset, minimum_one=True):
        for batch in batches(data):
            batch.check_crc()
            found += [(record.offset, record.key, record.value) for record in records_of(batch)]
            offset = batch.next_offset
    assert offset == log.log_end_offset
    return [each for each in found if each[0] >= log.log_start_offset]


def latest(log):
    """Returns the latest record of each key, in order."""
    newest = {key: (offset, key, value) for offset, key, value in content(log)}
    return sorted(newest.values())

"""A log manager whose logs are moved, on files and a clock of the test.

Knows nothing of what goes wrong.
"""

from barnabas.clock import ManualClock
from barnabas.config.topic import TopicConfig
from barnabas.log.files import MemoryFiles
from barnabas.log.log_manager import LogManager
from barnabas.records.batch import batches
from barnabas.records.record import records_of

ID = bytes(range(16))
KEY = ("t", 0)


class Turns(ManualClock):
    """A clock on which each turn of the loop takes a millisecond."""

    def call_later(self, delay, callback, *args):
        return super().call_later(max(delay, 0.001), callback, *args)


class Node:
    """A log manager with the directories /a and /b, and a log in /a."""

    def __init__(self, files=None, **config):
        self.files = files if files is not None else MemoryFiles()
        self.config = TopicConfig(**config)
        self.start()

    def start(self, assigned=lambda log: None, is_stray=lambda log: False):
        self.clock = Turns()
        self.manager = LogManager(self.files, ["/a", "/b"], clock=self.clock, scheduler=self.clock)
        self.manager.start(1, "cluster")
        self.manager.open_all(lambda topic: self.config, is_stray, assigned)

    def kill(self):
        for directory in self.manager.directories:
            directory.release()

    def restart(self, *, clean=True, **options):
        if clean:
            self.manager.close()
        self.kill()
        self.start(**options)

    @property
    def log(self):
        return self.manager.logs[KEY]

    @property
    def future(self):
        return self.manager.moves.under_way[KEY].future

    @property
    def directory(self):
        return self.log.log_directory.path

    def create(self):
        self.manager.preferred_directories[KEY] = self.manager.directories[0]
        return self.manager.create(*KEY, ID, self.config)

    def append(self, batch, values, epoch=0, **options):
        log = self.log
        appended = log.append_as_leader(batch(values, **options), leader_epoch=epoch, now_ms=self.clock.time_ms())
        log.maybe_set_high_watermark(log.log_end_offset)
        return appended

    def move(self, name="/b"):
        self.manager.moves.start(self.log, next(each for each in self.manager.directories if each.path == name))

    def turn(self):
        """Runs one turn of the loop."""
        self.clock.advance(0.001)

    def finish(self):
        """Runs until no move is in progress."""
        for _ in range(10_000):
            if not self.manager.moves.under_way:
                return
            self.turn()
        raise AssertionError("the move does not end")

    def values(self, log=None):
        """Returns (offset, value) of all records that a consumer can read."""
        log = log or self.log
        found, offset = [], log.log_start_offset
        while data := log.read(offset, 1 << 20, up_to=log.high_watermark, minimum_one=True):
            for batch in batches(data):
                batch.check_crc()
                found += [
                    (each.offset, each.value) for each in records_of(batch) if each.offset >= log.log_start_offset
                ]
                offset = batch.next_offset
        return found

    def names(self, directory):
        return sorted(name for name in self.files.list(directory) if name.startswith("t-0"))


def filled(node, batch, count=20):
    for number in range(count):
        node.append(batch, [b"%d" % number])
    return node.values()

"""Fetch of records that are not in the page cache: a thread loads them, and the response follows."""

import pytest

from barnabas.api_handlers.answering import Later
from barnabas.cluster.controller.commands.topics import DeleteTopics
from barnabas.log import segment
from barnabas.log.files import MemoryFile
from barnabas.wire.types import ZERO_UUID
from tests.api_handlers.test_fetch import answered, offsets_in, only, requested, send
from tests.submitting import submitted


class Disk:
    """The page cache, and the thread that loads it: work runs in :meth:`run_all`."""

    def __init__(self):
        self.cached = False
        self.loaded = []
        self.waiting = []

    def run(self, work, done):
        self.waiting.append((work, done))

    def run_all(self):
        for work, done in self.waiting:
            work()
            self.cached = True
            done(None)
        self.waiting.clear()

    def close(self):
        self.run_all()


@pytest.fixture
def disk(node, monkeypatch):
    """None of the records is in the page cache."""
    disk = Disk()
    node.broker.log_manager._reader = disk
    monkeypatch.setattr(segment, "_RECENT_BYTES", -(1 << 40))
    monkeypatch.setattr(MemoryFile, "is_cached", lambda file, size, at: disk.cached)
    monkeypatch.setattr(node.files, "load", lambda *range: disk.loaded.append(range), raising=False)
    return disk


@pytest.fixture
def log(node):
    """A topic of two partitions of five batches each."""
    node.create_topic("t", 2)
    for index in range(2):
        for _ in range(5):
            node.append(node.broker.partition("t", index), node.clock.time_ms())
    return node.broker.partition("t", 0).log


def test_the_answer_waits_for_the_load(node, log, disk):
    later = send(node, requested([2]))
    assert isinstance(later, Later) and later.response is None
    disk.run_all()
    assert offsets_in(only(answered(later.response))) == [2, 3, 4]
    ((path, size, at),) = disk.loaded
    assert path == log.segments.active.path(".log")
    assert (at, at + size) == (log.segments.active.locate(2), log.size)


def test_cached_records_are_answered_at_once(node, log, disk):
    disk.cached = True
    assert offsets_in(only(answered(send(node, requested([2]))))) == [2, 3, 4]


def test_all_partitions_are_loaded_within_the_limits(node, log, disk):
    batch = log.size // 5
    later = send(node, requested([0, 0], partition_max_bytes=4 * batch, max_bytes=6 * batch))
    disk.run_all()
    assert [(size, at) for _, size, at in disk.loaded] == [(4 * batch, 0), (2 * batch, 0)]
    (topic,) = answered(later.response).responses
    assert [offsets_in(partition) for partition in topic.partitions] == [[0, 1, 2, 3], [0, 1]]


def test_a_part_that_is_evicted_again_is_read_from_the_disk(node, log, disk):
    """The second attempt does not check the cache, or the fetch might never end."""
    later = send(node, requested([0]))
    ((work, done),) = disk.waiting
    work()
    done(None)
    assert offsets_in(only(answered(later.response))) == [0, 1, 2, 3, 4]


def test_a_fetch_that_wants_more_waits_for_appends(node, log, disk):
    later = send(node, requested([4], min_bytes=2 * log.size // 5, max_wait_ms=1000))
    disk.run_all()
    assert later.response is None
    node.append(node.broker.partition("t", 0), node.clock.time_ms())
    node.clock.advance(0)
    assert offsets_in(only(answered(later.response))) == [4, 5]


def test_a_client_that_disconnects_during_the_load(node, log, disk):
    later = send(node, requested([0]))
    later.cancel()
    disk.run_all()
    assert later.response is None


def test_a_topic_that_is_deleted_during_the_load(node, log, disk):
    later = send(node, requested([0]))
    submitted(node.broker.controller, DeleteTopics([("t", ZERO_UUID)]))
    disk.run_all()
    assert only(answered(later.response)).error_code == 3


def test_offsets_without_records_need_no_load(node, log, disk):
    assert offsets_in(only(answered(send(node, requested([5]))))) == []

"""When records of a partition are safe, and when callbacks for its watermarks are called."""

import pytest

from barnabas.clock import ManualClock
from barnabas.cluster.image.image import PartitionImage
from barnabas.cluster.replication.delayed_fetch import DelayedFetch
from barnabas.cluster.replication.partition import ACKS_ALL, READ_COMMITTED, READ_UNCOMMITTED, Partition
from barnabas.config.topic import TopicConfig
from barnabas.errors import (
    KafkaStorageError,
    NotEnoughReplicas,
    NotLeaderOrFollower,
    OffsetOutOfRange,
    UnknownTopicOrPartition,
)
from barnabas.log.files import MemoryFiles
from barnabas.log.log_directory import LogDirectory
from barnabas.log.partition_log import LogServices
from barnabas.log.recovery import open_log
from barnabas.records.batch import RecordBatch
from barnabas.records.builder import build_batch
from barnabas.records.control import ControlRecordType, control_key
from barnabas.records.validation import ProducePolicy
from tests.cluster.replication.leading import Leading
from tests.kinds import kind

ALONE = PartitionImage((1,), (1,), (), (), leader=1, leader_epoch=3, partition_epoch=0, directories=(bytes(16),))
WITH_FOLLOWER = ALONE._replace(replicas=(1, 2), isr=(1, 2), directories=(bytes(16),) * 2)


class World:
    """A partition that this node, 1, leads; the test flushes it."""

    def __init__(self, image: PartitionImage = ALONE, **config) -> None:
        self.clock = ManualClock()
        files = MemoryFiles(self.clock)
        files.makedirs("/data/t-0")
        self.log = open_log(
            LogServices(LogDirectory(files, "/data")),
            "/data/t-0",
            "t",
            0,
            TopicConfig(**config),
            clean=True,
            recovery_point=0,
            now_ms=0,
        )
        self.leading = Leading(self.clock)
        self.partition = Partition("t", bytes(16), 0, 1, self.log, ProducePolicy(), lambda: self.leading)
        self.partition.become_leader(image)
        self.safe = []

    def append(self, count=1, *, acks=1, **options):
        """Appends a batch; returns the offset after it."""
        batch = build_batch([(None, b"v", 0)] * count, **options)
        return self.partition.append(RecordBatch.parse(batch), 0, acks=acks).last_offset + 1

    def end(self, *, commit=True):
        """Appends the marker that ends the transaction of producer 7."""
        kind = ControlRecordType.COMMIT if commit else ControlRecordType.ABORT
        batch = build_batch(
            [(control_key(kind), bytes(6), 0)], producer_id=7, producer_epoch=0, is_control=True, is_transactional=True
        )
        self.partition.append(RecordBatch.parse(batch), 0)

    def wait(self, name, *, acks=1, count=1):
        """Appends, and waits: ``safe`` has the name, and the error if there was one, when that is safe."""
        self.partition.when_safe(
            self.append(count, acks=acks), acks, lambda error: self.safe.append((name, kind(error)) if error else name)
        )


def test_what_need_not_be_flushed_is_safe_at_once():
    world = World(flush_messages=3)
    world.wait("first")
    world.wait("second")
    assert world.safe == ["first", "second"]
    world.wait("third")
    assert world.safe == ["first", "second"]
    world.log.flush()
    assert world.safe == ["first", "second", "third"]
    world.wait("fourth")
    assert world.safe[3:] == ["fourth"]


@pytest.mark.parametrize("acks", [0, 1, ACKS_ALL])
def test_is_safe_and_when_safe_agree(acks):
    world = World(flush_messages=2)
    safe = []
    for _ in range(5):
        end = world.append()
        assert world.partition.is_safe(end, acks) == (end - world.log.recovery_point < 2)
        world.partition.when_safe(end, acks, safe.append)
        if end == 3:
            world.log.flush()
    assert safe == [None] * 4


def test_whoever_waits_is_called_in_the_order_of_the_log():
    """The third batch is flushed with the second one, but is acknowledged after it."""
    world = World(flush_messages=4)
    world.wait("first", count=3)
    world.wait("second", count=4)
    world.log.flush(up_to=5)
    world.wait("third")
    assert world.safe == ["first"]
    world.log.flush()
    assert world.safe == ["first", "second", "third"]


def test_whoever_is_called_may_append():
    world = World(flush_messages=1)

    def again(error):
        world.safe.append(error)
        world.wait("again")

    world.partition.when_safe(world.append(), 1, again)
    world.wait("later")
    world.log.flush()
    assert world.safe == [None, "later"]
    world.log.flush()
    assert world.safe == [None, "later", "again"]


def test_an_error_of_one_who_is_called_leaves_the_others_waiting():
    world = World(flush_messages=1)
    world.partition.when_safe(world.append(), 1, lambda error: 1 / 0)
    world.wait("next")
    with pytest.raises(ZeroDivisionError):
        world.log.flush()
    world.wait("last")
    world.log.flush()
    assert world.safe == ["next", "last"]


def test_all_replicas_are_waited_for_only_with_acks_all():
    world = World(WITH_FOLLOWER)
    world.wait("one")
    world.wait("all", acks=ACKS_ALL)
    world.wait("another one")
    assert world.safe == ["one", "another one"]
    assert (world.log.high_watermark, world.log.log_end_offset) == (0, 3)
    world.partition.become_leader(WITH_FOLLOWER._replace(isr=(1,), partition_epoch=1))
    assert world.safe == ["one", "another one", "all"]
    assert world.log.high_watermark == 3


def test_a_follower_that_comes_holds_the_high_watermark():
    world = World()
    world.append()
    world.partition.become_leader(WITH_FOLLOWER)
    world.append()
    assert (world.log.high_watermark, world.log.log_end_offset) == (1, 2)


def test_too_few_replicas_are_in_sync():
    world = World(ALONE._replace(replicas=(1, 2)), min_insync_replicas=2)
    with pytest.raises(NotEnoughReplicas):
        world.append(acks=ACKS_ALL)
    assert world.append() == 1


def follow(partition):
    partition.become_follower(ALONE._replace(leader=2, leader_epoch=4))


def close(partition):
    partition.close(UnknownTopicOrPartition())


def fail(partition):
    partition.log.go_offline("on fire")


@pytest.mark.parametrize(
    ("happens", "error"),
    [(follow, NotLeaderOrFollower), (close, UnknownTopicOrPartition), (fail, KafkaStorageError)],
)
def test_what_is_not_safe_yet_may_never_be(happens, error):
    world = World(WITH_FOLLOWER, flush_messages=2)
    world.wait("safe")
    world.wait("flushing")
    world.wait("replicating", acks=ACKS_ALL)
    happens(world.partition)
    assert world.safe == ["safe", ("flushing", error), ("replicating", error)]


def test_the_disk_had_failed_before():
    world = World(flush_messages=1)
    end = world.append()
    fail(world.partition)
    world.partition.when_safe(end, 1, lambda error: world.safe.append(kind(error)))
    assert world.safe == [KafkaStorageError]


def test_a_follower_appends_nothing():
    world = World()
    follow(world.partition)
    with pytest.raises(NotLeaderOrFollower):
        world.append()


def test_a_new_epoch_of_the_same_leader_fails_nobody():
    world = World(flush_messages=1)
    world.wait("it")
    world.partition.become_leader(ALONE._replace(leader_epoch=4))
    assert world.safe == []
    world.log.flush()
    assert world.safe == ["it"]
    assert world.log.latest_epoch == 4


class TestWatermarks:
    @pytest.fixture
    def seen(self):
        return {READ_UNCOMMITTED: [], READ_COMMITTED: []}

    @pytest.fixture
    def watched(self, seen):
        world = World()
        for isolation_level, calls in seen.items():
            world.partition.watch(calls.append, isolation_level)
        return world

    def test_appends_advance_both(self, watched, seen):
        watched.append()
        size = watched.log.size
        assert seen == {READ_UNCOMMITTED: [size], READ_COMMITTED: [size]}

    def test_an_open_transaction_holds_the_last_stable_offset(self, watched, seen):
        watched.append(producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True)
        watched.append()
        assert len(seen[READ_UNCOMMITTED]) == 2
        assert seen[READ_COMMITTED] == []
        watched.end()
        assert seen[READ_COMMITTED] == [sum(seen[READ_UNCOMMITTED])] == [watched.log.size]

    def test_what_followers_have_not_got_is_not_readable(self, seen):
        world = World(WITH_FOLLOWER)
        world.partition.watch(seen[READ_UNCOMMITTED].append, READ_UNCOMMITTED)
        world.append()
        world.append()
        assert seen[READ_UNCOMMITTED] == []
        world.partition.become_leader(ALONE)
        assert seen[READ_UNCOMMITTED] == [world.log.size]

    @pytest.mark.parametrize("happens", [follow, close, fail])
    def test_the_end_of_its_service(self, watched, seen, happens):
        happens(watched.partition)
        assert seen == {READ_UNCOMMITTED: [0], READ_COMMITTED: [0]}

    def test_a_new_epoch(self, watched, seen):
        watched.partition.become_leader(ALONE._replace(leader_epoch=4))
        assert seen == {READ_UNCOMMITTED: [0], READ_COMMITTED: [0]}

    def test_other_replicas_of_the_same_epoch_are_no_news(self, watched, seen):
        watched.partition.become_leader(ALONE._replace(elr=(2,), partition_epoch=5))
        assert seen == {READ_UNCOMMITTED: [], READ_COMMITTED: []}

    def test_the_log_start_offset(self, watched, seen):
        watched.append()
        watched.log.delete_records_before(1)
        assert seen[READ_UNCOMMITTED] == [watched.log.size, 0]

    def test_a_repeated_batch_is_no_news(self, watched, seen):
        identity = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
        watched.append(**identity)
        watched.append(**identity)
        assert len(seen[READ_UNCOMMITTED]) == 1

    def test_nobody_is_called_after_the_end(self, watched, seen):
        watched.partition.unwatch(seen[READ_UNCOMMITTED].append)
        watched.append()
        assert seen[READ_UNCOMMITTED] == []


def test_reading_stops_at_the_high_watermark():
    world = World(WITH_FOLLOWER)
    world.append()
    assert world.partition.readable_up_to(READ_UNCOMMITTED) == 0
    assert world.partition.read(1, 1000, up_to=0, minimum_one=True) == b""
    with pytest.raises(OffsetOutOfRange):
        world.partition.read(2, 1000, up_to=0, minimum_one=True)


class Patient(DelayedFetch):
    """Waits for a number of bytes."""

    def __init__(self, world, wanted):
        super().__init__(world.clock, [world.partition], READ_UNCOMMITTED, 500)
        self.missing, self.done = wanted, []

    def advanced(self, size):
        self.missing -= size
        super().advanced(size)

    def try_complete(self):
        self._look = None
        if self.missing <= 0:
            self.done.append("enough")
            self.stop()

    def expire(self):
        self.done.append("time is up")
        self.stop()


@pytest.mark.parametrize("wanted", [1, 10_000])
def test_a_fetch_waits_until_there_is_enough_or_time_is_up(wanted):
    world = World()
    fetch = Patient(world, wanted)
    world.append()
    assert fetch.done == []  # later appends of this turn are included
    world.append()
    world.clock.advance(1)
    assert fetch.done == (["enough"] if wanted == 1 else ["time is up"])
    world.append()
    world.clock.advance(1)
    assert len(fetch.done) == 1

"""A coordinator that counts, over three partitions with real logs: the smallest one that a runtime can run.

A key is ``index:name``; its partition stores the sum of the numbers that were added. Waiting callbacks of a shard are
called when it is resigned.
"""

import struct
from collections.abc import Callable
from typing import Any

from barnabas.clock import ManualClock, ManualTimer
from barnabas.cluster.image.image import PartitionImage
from barnabas.cluster.replication.partition import Partition
from barnabas.config.topic import TopicConfig
from barnabas.coordinators.environment import Environment
from barnabas.coordinators.runtime import CoordinatorRuntime
from barnabas.coordinators.shard import ShardContext
from barnabas.deadlines import Deadline
from barnabas.errors import KafkaError, MalformedMessage, NotCoordinator, UnknownTopicOrPartition
from barnabas.log.files import MemoryFiles
from barnabas.log.log_directory import LogDirectory
from barnabas.log.partition_log import LogServices, PartitionLog
from barnabas.log.recovery import open_log
from barnabas.records.builder import build_batch
from barnabas.records.validation import ProducePolicy
from tests.cluster.replication.leading import Leading
from tests.kinds import kind

NUMBER = struct.Struct(">q")
IMAGE = PartitionImage((1,), (1,), (), (), leader=1, leader_epoch=0, partition_epoch=0, directories=(bytes(16),))


class Tally:
    """A shard: sums by their keys. A sum is removed when nothing was added to it for ten seconds."""

    def __init__(self, context: ShardContext["Tally"], clock: ManualClock) -> None:
        self.context = context
        self.clock = clock
        self.sums: dict[str, int] = {}
        self.pending: dict[int, list[tuple[str, int]]] = {}
        self.waiting: list[Callable[[KafkaError], object]] = []
        self.deadlines: dict[str, Deadline] = {}
        self.replayed: list[int] = []
        self.has_started = False

    def replay(self, offset: int, producer_id: int, key: bytes, value: bytes | None) -> None:
        self.replayed.append(offset)
        if value is not None and len(value) != NUMBER.size:
            raise MalformedMessage("not a number")
        if producer_id == -1:
            self.apply(key.decode(), value)
        else:
            self.pending.setdefault(producer_id, []).append((key.decode(), NUMBER.unpack(value)[0]))

    def replay_end_marker(self, producer_id: int, is_commit: bool) -> None:
        for key, number in self.pending.pop(producer_id, ()):
            if is_commit:
                self.sums[key] = self.sums.get(key, 0) + number

    def apply(self, key: str, value: bytes | None) -> None:
        if value is None:
            self.sums.pop(key, None)
        else:
            self.sums[key] = self.sums.get(key, 0) + NUMBER.unpack(value)[0]

    def loaded(self) -> None:
        self.has_started = True
        for key in self.sums:
            self.expect(key)

    def unloaded(self) -> None:
        self.sums.clear()
        for answer in self.waiting:
            answer(NotCoordinator())

    # ------------------------------------------------------------ commands

    def add(self, key: str, number: int | None, done: Callable[[Any], object]) -> None:
        value = None if number is None else NUMBER.pack(number)
        batch = build_batch([(key.encode(), value, 0)])
        self.context.append(batch, 0, done, appended=lambda offset: self.apply(key, value))
        self.expect(key)

    def expect(self, key: str) -> None:
        deadline = self.deadlines.setdefault(key, Deadline(self.forget, key))
        self.context.deadlines.set(deadline, 10)

    def forget(self, key: str) -> None:
        self.add(key, None, lambda error: None)
        self.deadlines[key].cancel()


class Tallies(CoordinatorRuntime[Tally]):
    def __init__(self, environment: Environment, clock: ManualClock, turn_s: float) -> None:
        super().__init__("tallies", environment, turn_s=turn_s)
        self.clock = clock

    def new_shard(self, context: ShardContext[Tally]) -> Tally:
        return Tally(context, self.clock)


class Turns:
    """A scheduler whose next turn the test runs; later calls wait for the clock."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.next: list[ManualTimer] = []

    def call_later(self, delay: float, callback: Callable[..., object], *arguments: Any) -> ManualTimer:
        if delay > 0:
            return self.clock.call_later(delay, callback, *arguments)
        timer = ManualTimer(callback, arguments)
        self.next.append(timer)
        return timer

    def turn(self) -> None:
        now, self.next = self.next, []
        for timer in now:
            if timer.callback is not None:
                timer.callback(*timer.args)


class Node:
    """Three partitions, their logs, and a runtime that loads one piece of a log in a turn of the loop."""

    def __init__(self, *, buffer_size: int = 1, **config: Any) -> None:
        self.clock = ManualClock()
        self.files = MemoryFiles(self.clock)
        self.partitions = {index: self.partition(index, **config) for index in range(3)}
        self.turns = Turns(self.clock)
        environment = Environment(
            self.clock,
            self.turns,
            partition=self.hosted,
            partition_of=lambda key: int(key.partition(":")[0]),
            create_topic=lambda done: done(None),
            load_buffer_size=lambda: buffer_size,
            write_timeout_ms=lambda: 5000,
        )
        self.runtime = Tallies(environment, self.clock, turn_s=0)
        self.epoch = 0
        self.gone: set[int] = set()

    def partition(self, index: int, **config: Any) -> Partition:
        path = f"/data/tallies-{index}"
        self.files.makedirs(path)
        services, topic_config = LogServices(LogDirectory(self.files, "/data")), TopicConfig(**config)
        log = open_log(services, path, "tallies", index, topic_config, clean=True, recovery_point=0, now_ms=0)
        return Partition("tallies", bytes(16), index, 1, log, ProducePolicy(), lambda: Leading(self.clock))

    def hosted(self, index: int) -> Partition:
        if index in self.gone:
            raise UnknownTopicOrPartition
        return self.partitions[index]

    def log(self, index: int) -> PartitionLog:
        return self.partitions[index].log

    # ------------------------------------------------------------ leadership

    def elect(self, *indexes: int) -> None:
        self.epoch += 1
        for index in indexes:
            self.partitions[index].become_leader(IMAGE._replace(leader_epoch=self.epoch))
            self.runtime.elect(index, self.epoch)

    def resign(self, *indexes: int) -> None:
        self.epoch += 1
        for index in indexes:
            self.partitions[index].become_follower(IMAGE._replace(leader=2, leader_epoch=self.epoch))
            self.runtime.resign(index)

    def turn(self, turns: int = 1) -> None:
        """Runs a turn of the event loop, which loads one piece of a log."""
        for _ in range(turns):
            self.turns.turn()

    def settle(self) -> None:
        self.turn(100)

    # ------------------------------------------------------------ asking

    def add(self, key: str, number: int) -> list[Any]:
        """Adds a number; returns the list of results, filled when there are some."""
        results: list[Any] = []
        try:
            shard = self.runtime.shard(key)
        except KafkaError as error:
            return [type(error)]
        shard.add(key, number, lambda error: results.append(kind(error)))
        return results

    def sums(self, index: int) -> dict[str, int] | type[KafkaError]:
        try:
            return self.runtime.shard(f"{index}:").sums
        except KafkaError as error:
            return type(error)

"""The runtime of one coordinator: which shards are on this node, and which of them serves a key.

Knows nothing of what a coordinator does, nor of metadata: the caller follows it, and elects and resigns shards.
Model: Apache Kafka's ``CoordinatorRuntime``.
"""

import logging
from collections import deque
from collections.abc import Callable, Mapping
from typing import Generic

from barnabas.clock import Timer
from barnabas.coordinators.environment import Created, Environment
from barnabas.coordinators.loading import Loading
from barnabas.coordinators.shard import S, ShardContext, State
from barnabas.deadlines import Deadlines
from barnabas.errors import CoordinatorLoadInProgress, KafkaError, MalformedMessage, NotCoordinator

logger = logging.getLogger(__name__)

TURN_S = 0.01
"""Seconds of a turn of the event loop that loading may take."""


class CoordinatorRuntime(Generic[S]):
    """The shards of one internal topic. A subclass makes them (:meth:`new_shard`)."""

    def __init__(self, topic: str, environment: Environment, *, turn_s: float = TURN_S) -> None:
        self.topic = topic
        self._environment = environment
        self._turn_s = turn_s
        self._contexts: dict[int, ShardContext[S]] = {}
        self._loadings: deque[Loading] = deque()
        self._timer: Timer | None = None

    def new_shard(self, context: ShardContext[S]) -> S:
        """Returns an empty shard for the context."""
        raise NotImplementedError

    # ------------------------------------------------------------ the topic

    def create_topic(self, done: Created) -> None:
        """Creates the internal topic where it does not exist: COORDINATOR_NOT_AVAILABLE where it cannot be created."""
        self._environment.create_topic(done)

    def partition_of(self, key: str) -> int:
        """Returns the index of the partition that keeps ``key``, or will once the topic exists."""
        return self._environment.partition_of(key)

    def leads(self, key: str) -> bool:
        """Returns whether this node leads the partition that keeps ``key``, and can use its disk."""
        try:
            partition = self._environment.partition(self._environment.partition_of(key))
        except KafkaError:
            return False
        return partition.leads and not partition.log.is_offline

    # ------------------------------------------------------------ shards

    def shard(self, key: str) -> S:
        """Returns the shard that keeps ``key``, with its deadlines up to date.

        :raises NotCoordinator: it is not on this node, or cannot be loaded
        :raises CoordinatorLoadInProgress: it is being loaded
        """
        return self._active(self._contexts.get(self._environment.partition_of(key)))

    def is_active(self, index: int) -> bool:
        """Returns whether the shard of that partition is on this node, and loaded."""
        context = self._contexts.get(index)
        return context is not None and context.state is State.ACTIVE

    def shards(self) -> list[S]:
        """Returns all shards on this node, with their deadlines up to date, but for those that have failed.

        :raises CoordinatorLoadInProgress: one of them is being loaded
        """
        usable = [each for each in self._contexts.values() if each.state is not State.FAILED and not _is_offline(each)]
        return [self._active(each) for each in usable]

    @staticmethod
    def _active(context: ShardContext[S] | None) -> S:
        if context is None:
            raise NotCoordinator
        if context.state is not State.ACTIVE:
            raise CoordinatorLoadInProgress if context.state is State.LOADING else NotCoordinator
        if context.partition.log.is_offline:
            raise NotCoordinator
        context.deadlines.run_due()
        return context.shard

    def for_all(self, command: Callable[[S], object]) -> None:
        """Calls ``command`` with each active shard now, and with those that are being loaded once they are active."""
        for context in list(self._contexts.values()):
            if context.state is State.ACTIVE:
                command(context.shard)
            elif context.state is State.LOADING:
                context.deferred.append(command)

    def when_safe(self, index: int, command: Callable[[S], object]) -> None:
        """Calls ``command`` with a shard when all that its log holds by now is safe, in the order of the log.

        A shard that is given up before is not called.
        """
        context = self._contexts.get(index)
        if context is not None:
            context.when_safe(lambda error: command(context.shard) if error is None else None)

    # ------------------------------------------------------------ leadership

    def elect(self, index: int, epoch: int) -> None:
        """Makes this node the coordinator of a partition that it leads since that leader epoch: begins to load it.

        An active shard goes on in the new epoch. One that has failed is loaded anew.
        """
        context = self._contexts.get(index)
        if context is not None:
            if epoch <= context.epoch:
                return
            if context.state is not State.FAILED:
                context.epoch = epoch
                return
        deadlines = Deadlines(self._environment.clock, self._environment.scheduler)
        timeout_ms = self._environment.write_timeout_ms
        context = self._contexts[index] = ShardContext(self.topic, index, epoch, deadlines, timeout_ms)
        context.shard = self.new_shard(context)
        try:
            context.partition = self._environment.partition(index)
        except KafkaError as error:
            self._fail(context, error)
            return
        loading = Loading(context, self._environment.load_buffer_size())
        if loading.is_done:
            context.activate()
            return
        self._loadings.append(loading)
        self._schedule()

    def resign(self, index: int) -> None:
        """Resigns a shard: answers NOT_COORDINATOR to waiting requests, and drops the state."""
        context = self._contexts.pop(index, None)
        if context is not None:
            context.close()

    def resign_all(self) -> None:
        """Resigns all shards."""
        for index in list(self._contexts):
            self.resign(index)

    def start(self, epochs: Mapping[int, int]) -> None:
        """Elects and loads the partitions that this node leads as it starts; returns when all are loaded.

        :param epochs: the leader epoch by the index of the partition
        """
        for index, epoch in epochs.items():
            self.elect(index, epoch)
        while self._loadings:
            self._step()

    def stop(self) -> None:
        """Resigns all shards, and stops loading."""
        self.resign_all()
        self._loadings.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # ------------------------------------------------------------ loading

    def _schedule(self) -> None:
        if self._timer is None and self._loadings:
            self._timer = self._environment.scheduler.call_later(0, self._turn)

    def _turn(self) -> None:
        """Loads for a while, then lets the event loop serve others."""
        self._timer = None
        monotonic = self._environment.clock.monotonic
        end = monotonic() + self._turn_s
        try:
            while self._loadings:
                self._step()
                if monotonic() >= end:
                    break
        finally:
            self._schedule()

    def _step(self) -> None:
        """Loads the next piece of the shard whose turn it is."""
        loading = self._loadings[0]
        context = loading.context
        if context.state is State.LOADING:
            try:
                loading.step()
                if not loading.is_done:
                    return
                context.activate()
            except (KafkaError, MalformedMessage) as error:
                self._fail(context, error)
            except BaseException:  # a bug in one shard must not stop the others from being loaded
                self._loadings.popleft()
                context.fail()
                raise
        self._loadings.popleft()

    @staticmethod
    def _fail(context: ShardContext[S], error: Exception) -> None:
        logger.error("%s cannot be loaded: %s", context, error)
        context.fail()


def _is_offline(context: ShardContext[S]) -> bool:
    return context.state is State.ACTIVE and context.partition.log.is_offline

"""A shard: the part of a coordinator's state that one partition of its internal topic keeps.

Knows nothing of what the state is. :class:`Shard` is what a coordinator implements (Kafka's ``CoordinatorShard``);
:class:`ShardContext` is what the runtime knows of a shard: its state, its log, its deadlines (``CoordinatorContext``).
"""

import logging
from collections.abc import Callable
from enum import Enum
from typing import Generic, Protocol, TypeVar

from barnabas.coordinators.environment import ACKS_ALL, Done, Partition
from barnabas.deadlines import Deadline, Deadlines
from barnabas.errors import (
    CoordinatorNotAvailable,
    KafkaError,
    KafkaStorageError,
    MessageTooLarge,
    NotCoordinator,
    NotEnoughReplicas,
    NotEnoughReplicasAfterAppend,
    NotLeaderOrFollower,
    RecordListTooLarge,
    RequestTimedOut,
    UnknownServerError,
    UnknownTopicOrPartition,
)
from barnabas.records.batch import RecordBatch

logger = logging.getLogger(__name__)

COORDINATOR_ERRORS: dict[type[KafkaError], type[KafkaError]] = {
    UnknownTopicOrPartition: CoordinatorNotAvailable,
    NotEnoughReplicas: CoordinatorNotAvailable,
    NotEnoughReplicasAfterAppend: CoordinatorNotAvailable,
    RequestTimedOut: CoordinatorNotAvailable,
    NotLeaderOrFollower: NotCoordinator,
    KafkaStorageError: NotCoordinator,
    MessageTooLarge: UnknownServerError,
    RecordListTooLarge: UnknownServerError,
}
"""The coordinator's error for each error of its partition, which clients would not expect."""


def coordinators_error(error: KafkaError) -> KafkaError:
    """Returns the coordinator's error for an error of its partition, without the text, which is about the partition."""
    return COORDINATOR_ERRORS.get(type(error), type(error))()


class Shard(Protocol):
    """What a coordinator implements. All records are replayed, in the order of the log, before :meth:`loaded`."""

    def replay(self, offset: int, producer_id: int, key: bytes, value: bytes | None) -> None:
        """Applies one record of the log.

        :param producer_id: of the transaction that the record is part of; -1 if it is part of none
        :raises MalformedMessage: it is not a record of this coordinator
        """

    def replay_end_marker(self, producer_id: int, is_commit: bool) -> None:
        """Applies the end of the transaction that the producer has had open in this partition."""

    def loaded(self) -> None:
        """Starts deadlines: the whole log has been replayed. :raises MalformedMessage: a record makes no sense"""

    def unloaded(self) -> None:
        """Drops the state, and answers NOT_COORDINATOR to waiting requests."""


S = TypeVar("S", bound=Shard)


class State(Enum):
    """Where a shard stands. One that is not on this node has no context."""

    LOADING = "loading"
    """Elected; the log is being replayed. Commands are answered COORDINATOR_LOAD_IN_PROGRESS."""
    ACTIVE = "active"
    """Serves commands."""
    FAILED = "failed"
    """The log cannot be replayed. Commands are answered NOT_COORDINATOR until the next election."""
    CLOSED = "closed"
    """Resigned. What still holds the shard can neither write nor set deadlines."""


class ShardContext(Generic[S]):
    """One shard on this node, from its election to its resignation."""

    shard: S
    partition: Partition
    """Set when loading begins."""

    def __init__(
        self, topic: str, index: int, epoch: int, deadlines: Deadlines, write_timeout_ms: Callable[[], int]
    ) -> None:
        self.topic = topic
        self.index = index
        self.epoch = epoch
        """The leader epoch in which this node was elected."""
        self.deadlines = deadlines
        self._write_timeout_ms = write_timeout_ms
        self.state = State.LOADING
        self.deferred: list[Callable[[S], object]] = []
        """What is to be done once the shard is active."""
        self._written = 0
        """The end of what this node has appended, or has loaded before it was replicated."""

    def __str__(self) -> str:
        return f"{self.topic}-{self.index}"

    # ------------------------------------------------------------ states

    def activate(self) -> None:
        self.state = State.ACTIVE
        log = self.partition.log
        self._written = log.log_end_offset if log.log_end_offset > log.high_watermark else 0
        self.shard.loaded()
        deferred, self.deferred = self.deferred, []
        for command in deferred:
            command(self.shard)

    def fail(self) -> None:
        self.state = State.FAILED
        self._drop()

    def close(self) -> None:
        was_active, self.state = self.state is State.ACTIVE, State.CLOSED
        if was_active:
            self.shard.unloaded()
        self._drop()

    def _drop(self) -> None:
        self.deadlines.close()
        self.deferred.clear()

    # ------------------------------------------------------------ writing

    def append(
        self,
        batch: bytes | bytearray,
        now_ms: int,
        written: Done,
        *,
        by_coordinator: bool = False,
        appended: Callable[[int], object] | None = None,
    ) -> None:
        """Appends a batch. ``written`` is called when it is safe, or cannot be, in the order of the log.

        It gets COORDINATOR_NOT_AVAILABLE if the replicas take too long: the batch is in the log, and may become safe.

        :param appended: called with the last offset as soon as the batch is in the log, before anything follows it
        :param by_coordinator: the batch is of a producer whose sequences the coordinator does not know
        """
        if self.state is not State.ACTIVE:
            written(NotCoordinator())
            return
        try:
            last_offset = self.partition.append(
                RecordBatch.parse(batch), now_ms, acks=ACKS_ALL, by_coordinator=by_coordinator
            ).last_offset
        except KafkaError as error:
            logger.warning("%s: cannot append: %s", self, error)
            written(coordinators_error(error))
            return
        self._written = last_offset + 1
        if appended is not None:
            appended(last_offset)
        self._wait(last_offset + 1, written)

    def when_written(self, done: Done) -> None:
        """Calls ``done`` when everything that was written before is safe, which it mostly is at once.

        For responses that write nothing: the state in them may not be safe yet (``CoordinatorRuntime``'s
        ``waitForPendingWrites``).
        """
        if self.state is not State.ACTIVE:
            done(NotCoordinator())
        elif self.partition.is_safe(self._written, ACKS_ALL):
            done(None)
        else:
            self._wait(self._written, done)

    def _wait(self, offset: int, done: Done) -> None:
        waiting = Waiting(self, done)
        self.partition.when_safe(offset, ACKS_ALL, waiting.safe)
        if not waiting.is_done:
            waiting.expire_in(self._write_timeout_ms() / 1000)

    def when_safe(self, done: Done) -> None:
        """Calls ``done`` when everything that the log holds by now is safe, after all that was appended before."""
        if self.state is State.ACTIVE:
            self.partition.when_safe(self.partition.log.log_end_offset, ACKS_ALL, Waiting(self, done).safe)
        else:
            done(NotCoordinator())


class Waiting:
    """Waits until what a shard's log holds is safe."""

    __slots__ = ("_context", "_deadline", "_done", "is_done")

    def __init__(self, context: ShardContext[S], done: Done) -> None:
        self._context = context
        self._done = done
        self._deadline: Deadline | None = None
        self.is_done = False

    def safe(self, error: KafkaError | None) -> None:
        """Calls back once, with the coordinator's error if the partition has one."""
        if self.is_done:
            return
        self.is_done = True
        if self._deadline is not None:
            self._deadline.cancel()
        if self._context.state is not State.ACTIVE:
            self._done(NotCoordinator())
        else:
            self._done(None if error is None else coordinators_error(error))

    def expire_in(self, seconds: float) -> None:
        self._deadline = Deadline(self.safe, RequestTimedOut())
        self._context.deadlines.set(self._deadline, seconds)

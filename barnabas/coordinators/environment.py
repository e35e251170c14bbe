"""What a coordinator runtime needs of its node: time, the partitions of its internal topic, and the topic itself.

Knows nothing of how a node provides it.
"""

from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

from barnabas.clock import Clock, Scheduler
from barnabas.errors import KafkaError
from barnabas.log.partition_log import Appended, PartitionLog
from barnabas.records.batch import RecordBatch

ACKS_ALL: Final = -1
"""A coordinator's records are safe when all in-sync replicas have them."""

Done = Callable[[KafkaError | None], object]
"""Called once, at once or later, with None or with the error."""


class Partition(Protocol):
    """A partition of the internal topic, which this node hosts."""

    @property
    def log(self) -> PartitionLog: ...

    @property
    def leads(self) -> bool:
        """Whether this node is the leader."""

    def append(self, batch: RecordBatch, now_ms: int, *, acks: int, by_coordinator: bool) -> Appended:
        """Appends the batch. :raises KafkaError: the partition does not take it"""

    def is_safe(self, offset: int, acks: int) -> bool:
        """Returns whether everything below ``offset`` is safe."""

    def when_safe(self, offset: int, acks: int, done: Done) -> None:
        """Calls ``done`` when everything below ``offset`` is safe, in the order of the log."""


Created = Callable[[KafkaError | None], object]
"""Called once, at once or later, with None or with the reason why the topic cannot be created."""


class Environment(NamedTuple):
    """What a runtime is given when it is created."""

    clock: Clock
    scheduler: Scheduler
    partition: Callable[[int], Partition]
    """The partition with that index. :raises KafkaError: this node does not host it"""
    partition_of: Callable[[str], int]
    """The index of the partition that keeps a key, or will once the topic exists."""
    create_topic: Callable[[Created], object]
    """Creates the internal topic where it does not exist: COORDINATOR_NOT_AVAILABLE where it cannot be created."""
    load_buffer_size: Callable[[], int]
    """Bytes of the log to read at a time while loading."""
    write_timeout_ms: Callable[[], int]
    """How long a write waits until all in-sync replicas have it: COORDINATOR_NOT_AVAILABLE then."""

"""The commands of the share coordinator and their results.

Knows nothing of the wire, nor of the records in ``__share_group_state``.
"""

from collections.abc import Callable
from typing import NamedTuple

from barnabas.errors import KafkaError

UNKNOWN_START_OFFSET = -1
"""No record of the share partition has been read: ``share.auto.offset.reset`` decides where it begins."""
UNKNOWN_COUNT = -1
"""The delivery-complete count of a state whose writer did not know it (WriteShareGroupState 0)."""
NO_EPOCH = -1
"""The epoch of a leader that does not give one, and of a state that does not exist."""


class SharePartitionKey(NamedTuple):
    """A share partition: one partition as one group reads it."""

    group_id: str
    topic_id: bytes
    partition: int


class StateBatch(NamedTuple):
    """The state of the records between two offsets, both included."""

    first_offset: int
    last_offset: int
    delivery_state: int
    """0 available, 2 acknowledged, 4 archived (Kafka's ``RecordState``). Acquired records are not written."""
    delivery_count: int


class SharePartitionState(NamedTuple):
    """The stored state of a share partition."""

    state_epoch: int = NO_EPOCH
    leader_epoch: int = NO_EPOCH
    start_offset: int = UNKNOWN_START_OFFSET
    delivery_complete_count: int = UNKNOWN_COUNT
    """How many records from the start offset on are acknowledged or archived."""
    batches: tuple[StateBatch, ...] = ()
    """In offset order, without overlaps. Empty in a summary."""


UNINITIALIZED = SharePartitionState(state_epoch=0, leader_epoch=0)
"""The summary of a share partition without state (``PartitionFactory``)."""


class Outcome(NamedTuple):
    """The outcome of a command for one share partition."""

    error: KafkaError | None
    state: SharePartitionState = SharePartitionState()
    """The result of a read that succeeded."""


Reply = Callable[[Outcome], object]
"""Called once, when the outcome is known and what was written is durable."""

TopicPartition = tuple[bytes, int]
"""A topic id and a partition."""

Outcomes = dict[TopicPartition, Outcome]

"""What is said to the share coordinator, and what it says back.

Knows nothing of the wire, nor of records of ``__share_group_state``.
"""

from collections.abc import Callable
from typing import NamedTuple

from barnabas.errors import KafkaError

UNKNOWN_START_OFFSET = -1
"""Nothing has been read of the share partition: ``share.auto.offset.reset`` decides where it begins."""
UNKNOWN_COUNT = -1
"""Of records whose delivery is complete: whoever wrote the state did not know (WriteShareGroupState 0)."""
NO_EPOCH = -1
"""Of a leader that does not say its epoch; or of a state that nobody has made."""


class SharePartitionKey(NamedTuple):
    """Which share partition: a partition as one group reads it."""

    group_id: str
    topic_id: bytes
    partition: int


class StateBatch(NamedTuple):
    """What became of the records from one offset to another, both of them included."""

    first_offset: int
    last_offset: int
    delivery_state: int
    """0 available, 2 acknowledged, 4 archived (Kafka's ``RecordState``); what is acquired is never written."""
    delivery_count: int


class SharePartitionState(NamedTuple):
    """What is kept of a share partition."""

    state_epoch: int = NO_EPOCH
    leader_epoch: int = NO_EPOCH
    start_offset: int = UNKNOWN_START_OFFSET
    delivery_complete_count: int = UNKNOWN_COUNT
    """Records from the start offset on that are acknowledged or archived."""
    batches: tuple[StateBatch, ...] = ()
    """In the order of their offsets; no two overlap. A summary has none."""


UNINITIALIZED = SharePartitionState(state_epoch=0, leader_epoch=0)
"""The summary of a share partition that nobody has initialized (``PartitionFactory``)."""


class Outcome(NamedTuple):
    """What became of a command about one share partition."""

    error: type[KafkaError] | None
    message: str | None = None
    """What Kafka says beside the error, for whoever answers a request."""
    state: SharePartitionState = SharePartitionState()
    """What was asked for, where something was and there is no error."""


Reply = Callable[[Outcome], object]
"""Called once: at once, or when what was written is safe."""

TopicPartition = tuple[bytes, int]
"""A topic's id and the number of a partition."""

Outcomes = dict[TopicPartition, Outcome]

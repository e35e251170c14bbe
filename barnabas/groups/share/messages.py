"""The commands of share groups and their results.

Knows nothing of the wire.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from barnabas.errors import KafkaError

JOIN_EPOCH = 0
LEAVE_EPOCH = -1

LONGEST_MEMBER_ID = 36
"""The longest member id: that of a UUID."""

Partitions = Mapping[bytes, Sequence[int]]
"""Partitions by topic id, in ascending order."""


class Heartbeat(NamedTuple):
    """A ShareGroupHeartbeat: joins, stays or leaves."""

    group_id: str
    member_id: str
    """The member generates it."""
    member_epoch: int
    """:data:`JOIN_EPOCH`, :data:`LEAVE_EPOCH`, or the epoch of the last response."""
    client_id: str
    client_host: str
    """In Kafka's format: "/127.0.0.1"."""
    rack_id: str | None = None
    """None if it has not changed."""
    subscribed_topic_names: Sequence[str] | None = None
    """None if they have not changed."""


class HeartbeatResult(NamedTuple):
    """The response to a :class:`Heartbeat` without an error."""

    member_id: str
    member_epoch: int
    heartbeat_interval_ms: int = 0
    assignment: Partitions | None = None
    """None if it has not changed."""


HeartbeatReply = Callable[[HeartbeatResult | KafkaError], object]


class DescribedMember(NamedTuple):
    """A member in the response of ShareGroupDescribe."""

    member_id: str
    rack_id: str | None
    member_epoch: int
    client_id: str
    client_host: str
    subscribed_topic_names: Sequence[str]
    assignment: Sequence[tuple[bytes, str, Sequence[int]]]
    """Topic id, topic name and partitions of topics that exist."""


class DescribedGroup(NamedTuple):
    """A group in the response of ShareGroupDescribe."""

    state: str
    epoch: int
    assignment_epoch: int
    assignor: str
    members: Sequence[DescribedMember]


PartitionErrors = dict[tuple[bytes, int], KafkaError | None]
"""The result of each (topic id, partition)."""
TopicErrors = dict[bytes, KafkaError | None]

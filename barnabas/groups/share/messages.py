"""What is said to share groups, and what they say back.

Knows nothing of the wire.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from barnabas.errors import KafkaError

JOIN_EPOCH = 0
LEAVE_EPOCH = -1

LONGEST_MEMBER_ID = 36
"""Characters that a member id may have: those of a UUID."""

Partitions = Mapping[bytes, Sequence[int]]
"""Partitions by the id of their topic, in ascending order."""


class Heartbeat(NamedTuple):
    """ShareGroupHeartbeat: be a member, stay one, or leave."""

    group_id: str
    member_id: str
    """The member makes it up itself."""
    member_epoch: int
    """:data:`JOIN_EPOCH`, :data:`LEAVE_EPOCH`, or what the member was last told."""
    client_id: str
    client_host: str
    """As Kafka writes it: "/127.0.0.1"."""
    rack_id: str | None = None
    """None: as it was."""
    subscribed_topic_names: Sequence[str] | None = None
    """None: as they were."""


class HeartbeatResult(NamedTuple):
    """The answer to a :class:`Heartbeat` that was taken."""

    member_id: str
    member_epoch: int
    heartbeat_interval_ms: int = 0
    assignment: Partitions | None = None
    """None: as it was."""


HeartbeatReply = Callable[[HeartbeatResult | type[KafkaError]], object]


class DescribedMember(NamedTuple):
    """A member as ShareGroupDescribe shows it."""

    member_id: str
    rack_id: str | None
    member_epoch: int
    client_id: str
    client_host: str
    subscribed_topic_names: Sequence[str]
    assignment: Sequence[tuple[bytes, str, Sequence[int]]]
    """Topic id, topic name and partitions, of topics that there are."""


class DescribedGroup(NamedTuple):
    """A group as ShareGroupDescribe shows it."""

    state: str
    epoch: int
    assignment_epoch: int
    assignor: str
    members: Sequence[DescribedMember]


PartitionErrors = dict[tuple[bytes, int], type[KafkaError] | None]
"""What became of each (topic id, partition)."""
TopicErrors = dict[bytes, type[KafkaError] | None]

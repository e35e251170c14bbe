"""What is said to consumer groups, and what they say back.

Knows nothing of the wire.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Self

from barnabas.errors import NONE, KafkaError

JOINING = 0
"""The epoch of a member that comes, or comes back with nothing in its hands."""
LEAVING = -1
"""The epoch of a member that goes."""
LEAVING_STATIC = -2
"""The epoch of a static member that goes, and is going to come back."""


class Heartbeat(NamedTuple):
    """ConsumerGroupHeartbeat. None is for what has not changed since the member last said it."""

    group_id: str
    member_id: str
    member_epoch: int
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    """-1 for what has not changed."""
    topic_names: Sequence[str] | None = None
    topic_regex: str | None = None
    server_assignor: str | None = None
    owned: Mapping[bytes, Sequence[int]] | None = None
    """What it has in its hands: partitions by topic id."""
    client_id: str = ""
    client_host: str = ""
    """As Kafka writes it: "/127.0.0.1"."""
    brings_id: bool = True
    """From version 1 on a member makes its id itself (KIP-1082); before, it may ask for one."""

    @property
    def is_full(self) -> bool:
        """It says all there is to say, as a member does that joins or has lost track: it wants to hear all, too."""
        if self.member_epoch == JOINING:
            return True
        has_topics = self.topic_names is not None or self.topic_regex is not None
        return self.rebalance_timeout_ms != -1 and has_topics and self.owned is not None


class HeartbeatResult(NamedTuple):
    """The answer to a :class:`Heartbeat`."""

    error_code: int = NONE
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: list[tuple[bytes, list[int]]] | None = None
    """What to own: partitions by topic id; None where nothing is new."""

    @classmethod
    def refused(cls, error: KafkaError) -> Self:
        return cls(error.code, str(error) if error.args else None)


HeartbeatReply = Callable[[HeartbeatResult], object]

NamedPartitions = list[tuple[bytes, str, list[int]]]
"""Topic id, name and partitions."""


class DescribedMember(NamedTuple):
    """A member as ConsumerGroupDescribe shows it."""

    member_id: str
    instance_id: str | None
    rack_id: str | None
    member_epoch: int
    client_id: str
    client_host: str
    topic_names: list[str]
    topic_regex: str | None
    assignment: NamedPartitions
    target_assignment: NamedPartitions
    is_classic: bool


class DescribedGroup(NamedTuple):
    """A group as ConsumerGroupDescribe shows it."""

    state: str
    epoch: int
    assignment_epoch: int
    assignor: str
    members: Sequence[DescribedMember]

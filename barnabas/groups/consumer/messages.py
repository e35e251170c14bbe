"""The commands of consumer groups and their results.

Knows nothing of the wire.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, Self

from barnabas.errors import KafkaError

JOINING = 0
"""The epoch of a member that joins, or rejoins without partitions."""
LEAVING = -1
"""The epoch of a member that leaves."""
LEAVING_STATIC = -2
"""The epoch of a static member that leaves temporarily."""


Visible = Callable[[Iterable[str]], frozenset[str]]
"""Returns those of the topics that a member may see."""


class Heartbeat(NamedTuple):
    """A ConsumerGroupHeartbeat. A field is None if it has not changed since the last one."""

    group_id: str
    member_id: str
    member_epoch: int
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    """-1 if it has not changed."""
    topic_names: Sequence[str] | None = None
    topic_regex: str | None = None
    server_assignor: str | None = None
    owned: Mapping[bytes, Sequence[int]] | None = None
    """The partitions that the member owns, by topic id."""
    client_id: str = ""
    client_host: str = ""
    """In Kafka's format: "/127.0.0.1"."""
    brings_id: bool = True
    """The member generates its id, as it does from version 1 on (KIP-1082). Before, the coordinator may generate it."""
    visible: Visible | None = None
    """Returns the topics that the member may see of what a regular expression matches; None if it may see all."""

    @property
    def is_full(self) -> bool:
        """Whether all fields are set, as when a member joins or starts over. The response is full then, too."""
        if self.member_epoch == JOINING:
            return True
        has_topics = self.topic_names is not None or self.topic_regex is not None
        return self.rebalance_timeout_ms != -1 and has_topics and self.owned is not None


class HeartbeatResult(NamedTuple):
    """The response to a :class:`Heartbeat`."""

    error: KafkaError | None = None
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: list[tuple[bytes, list[int]]] | None = None
    """The partitions to own, by topic id; None if they have not changed."""

    @classmethod
    def refused(cls, error: KafkaError) -> Self:
        return cls(error)


HeartbeatReply = Callable[[HeartbeatResult], object]

NamedPartitions = list[tuple[bytes, str, list[int]]]
"""Topic id, topic name and partitions."""


class DescribedMember(NamedTuple):
    """A member in the response of ConsumerGroupDescribe."""

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
    """A group in the response of ConsumerGroupDescribe."""

    state: str
    epoch: int
    assignment_epoch: int
    assignor: str
    members: Sequence[DescribedMember]

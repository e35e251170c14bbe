"""The commands of the group coordinator for classic groups and offsets, and their results.

Knows nothing of the wire. A command has the version of a request only as far as the rules depend on it.
"""

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple, Self

from barnabas.errors import KafkaError
from barnabas.offsets.committed import Topics
from barnabas.offsets.pending import Position, Producer

Protocols = tuple[tuple[str, bytes], ...]
"""Name and metadata of each supported protocol, in the member's order of preference."""


class Join(NamedTuple):
    """A JoinGroup. Times are in milliseconds."""

    group_id: str
    member_id: str
    """Empty for a new member."""
    group_instance_id: str | None
    client_id: str
    client_host: str
    """In Kafka's format: "/127.0.0.1"."""
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    reason: str | None = None
    knows_member_id_required: bool = True
    """From version 4 on a new member gets its id first, and then joins with it (KIP-394)."""
    knows_skip_assignment: bool = True
    """From version 9 on the response can tell a leader that rejoins to skip the assignment (KIP-814)."""


class JoinedMember(NamedTuple):
    """A member in the response to the leader."""

    member_id: str
    group_instance_id: str | None
    metadata: bytes


class JoinResult(NamedTuple):
    """The response to a :class:`Join`. With an error the fields beside the member id are ignored."""

    error: KafkaError | None
    member_id: str
    generation_id: int = -1
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str = ""
    members: Sequence[JoinedMember] = ()
    """Empty for followers."""
    skip_assignment: bool = False

    @classmethod
    def refused(cls, error: KafkaError, member_id: str = "") -> Self:
        return cls(error, member_id)


class Sync(NamedTuple):
    """A SyncGroup. The leader's has the assignments of all members."""

    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None = None
    protocol_type: str | None = None
    """None if the request has none (up to version 4): then it is not checked."""
    protocol_name: str | None = None
    assignments: Sequence[tuple[str, bytes]] = ()
    """Member ids and assignments."""


class SyncResult(NamedTuple):
    """The response to a :class:`Sync`."""

    error: KafkaError | None
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""

    @classmethod
    def refused(cls, error: KafkaError) -> Self:
        return cls(error)


class LeavingMember(NamedTuple):
    """A member to remove: by its member id, or by its instance id alone if an administrator removes it."""

    member_id: str
    group_instance_id: str | None = None
    reason: str | None = None


class LeaveResult(NamedTuple):
    """The result for a :class:`LeavingMember`."""

    member_id: str
    group_instance_id: str | None
    error: KafkaError | None = None


class DescribedMember(NamedTuple):
    """A member in the response of DescribeGroups. The metadata is empty unless the group is stable."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes = b""
    assignment: bytes = b""


class DescribedGroup(NamedTuple):
    """A group in the response of DescribeGroups."""

    state: str
    protocol_type: str = ""
    protocol_name: str = ""
    members: Sequence[DescribedMember] = ()


class ListedGroup(NamedTuple):
    """A group in the response of ListGroups."""

    group_id: str
    protocol_type: str
    state: str
    type: str
    members: int  #: how many


class OffsetToCommit(NamedTuple):
    """One offset of an :class:`OffsetCommit`."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int = -1
    metadata: str | None = None
    topic_id: bytes = bytes(16)


class OffsetCommit(NamedTuple):
    """An OffsetCommit or TxnOffsetCommit. Its topics and partitions exist."""

    group_id: str
    offsets: Sequence[OffsetToCommit]
    generation_id: int = -1
    """-1 for a simple consumer, which is in no group."""
    member_id: str = ""
    group_instance_id: str | None = None
    retention_time_ms: int = -1
    """How long to keep the offsets; -1 for the broker's retention."""
    knows_group_id_not_found: bool = True
    """From version 9 on, or 6 of TxnOffsetCommit. Older versions get ILLEGAL_GENERATION if the group does not exist."""
    producer: Producer | None = None
    """The producer of a TxnOffsetCommit, whose transaction decides the offsets; None for an OffsetCommit."""
    knows_member_epochs: bool = True
    """From version 9 on, and in all of TxnOffsetCommit, the generation may be a member epoch."""


JoinReply = Callable[[JoinResult], object]
SyncReply = Callable[[SyncResult], object]
ErrorReply = Callable[[KafkaError | None], object]
"""Takes the error of a command, or None."""
ErrorsReply = Callable[[list[KafkaError | None]], object]
"""Takes the error or None for each item of a command, in their order."""
DeletionReply = Callable[[KafkaError | None, list[KafkaError | None]], object]
"""Takes the error of a whole command or None, and the error or None for each item, in their order."""
OffsetsReply = Callable[[KafkaError | None, Topics, Collection[Position]], object]
"""Takes an error or None, offsets, and the partitions with pending ones. None of them may be modified."""

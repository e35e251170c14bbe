"""What is said to the group coordinator, and what it says back.

Knows nothing of the wire: which version of a request asked is here only where the protocol's rules depend on it.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Self

from barnabas.errors import NONE, KafkaError
from barnabas.offsets.pending import Producer

Protocols = tuple[tuple[str, bytes], ...]
"""The protocols that a member supports, the one it likes best first: name and metadata."""


class Join(NamedTuple):
    """JoinGroup: be a member, or stay one through the next rebalance. Times in milliseconds."""

    group_id: str
    member_id: str
    """Empty for one that is not a member yet."""
    group_instance_id: str | None
    client_id: str
    client_host: str
    """As Kafka writes it: "/127.0.0.1"."""
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    reason: str | None = None
    knows_member_id_required: bool = True
    """Version 4 and up: a new member is told its id first, and joins by it (KIP-394)."""
    knows_skip_assignment: bool = True
    """Version 9 and up: a leader that comes back may be told that nothing is to be assigned (KIP-814)."""


class JoinedMember(NamedTuple):
    """What the leader is told of each member."""

    member_id: str
    group_instance_id: str | None
    metadata: bytes


class JoinResult(NamedTuple):
    """The answer to a :class:`Join`; with an error only the member id is of use."""

    error_code: int
    member_id: str
    generation_id: int = -1
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str = ""
    members: Sequence[JoinedMember] = ()
    """Empty but for the leader."""
    skip_assignment: bool = False

    @classmethod
    def refused(cls, error: type[KafkaError], member_id: str = "") -> Self:
        return cls(error.code, member_id)


class Sync(NamedTuple):
    """SyncGroup: ask for one's assignment; the leader brings everybody's."""

    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None = None
    protocol_type: str | None = None
    """None where the request does not say (up to version 4): then it is not checked."""
    protocol_name: str | None = None
    assignments: Sequence[tuple[str, bytes]] = ()
    """Member id and assignment."""


class SyncResult(NamedTuple):
    """The answer to a :class:`Sync`."""

    error_code: int
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""

    @classmethod
    def refused(cls, error: type[KafkaError]) -> Self:
        return cls(error.code)


class Leaver(NamedTuple):
    """One that leaves: by its member id, or, when somebody else takes it out, by its instance id alone."""

    member_id: str
    group_instance_id: str | None = None
    reason: str | None = None


class Left(NamedTuple):
    """What became of a :class:`Leaver`."""

    member_id: str
    group_instance_id: str | None
    error_code: int = NONE


class DescribedMember(NamedTuple):
    """A member as DescribeGroups shows it; the metadata is empty unless the group is stable."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes = b""
    assignment: bytes = b""


class DescribedGroup(NamedTuple):
    """A group as DescribeGroups shows it."""

    state: str
    protocol_type: str = ""
    protocol_name: str = ""
    members: Sequence[DescribedMember] = ()


class ListedGroup(NamedTuple):
    """A group as ListGroups shows it."""

    group_id: str
    protocol_type: str
    state: str
    type: str


class OffsetToCommit(NamedTuple):
    """One offset of an :class:`OffsetCommit`."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int = -1
    metadata: str | None = None
    topic_id: bytes = bytes(16)


class OffsetCommit(NamedTuple):
    """OffsetCommit or TxnOffsetCommit, for topics and partitions that exist."""

    group_id: str
    offsets: Sequence[OffsetToCommit]
    generation_id: int = -1
    """-1 for a consumer that is in no group, and only keeps its offsets there."""
    member_id: str = ""
    group_instance_id: str | None = None
    retention_time_ms: int = -1
    """How long the offsets shall be kept, or -1: as the broker does."""
    knows_group_id_not_found: bool = True
    """From version 9, or 6 of TxnOffsetCommit: older ones are told ILLEGAL_GENERATION of a group that is not there."""
    producer: Producer | None = None
    """TxnOffsetCommit: whose transaction decides about the offsets; None where they are committed by themselves."""
    knows_member_epochs: bool = True
    """From version 9, and in all of TxnOffsetCommit: the generation may be the epoch of a newer kind of member."""


JoinReply = Callable[[JoinResult], object]
SyncReply = Callable[[SyncResult], object]
ErrorReply = Callable[[int], object]
"""Takes an error code, 0 when all is well."""
ErrorsReply = Callable[[list[int]], object]
"""Takes an error code for each thing asked for, in the order of the question."""

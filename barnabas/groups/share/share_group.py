"""One share group: its members, what is meant for each, and the share partitions whose state is kept.

All of it is what records say, but for what is marked as of this run: how it changes is ``replay.py``'s and who changes
it ``share_groups.py``'s. Follows Apache Kafka's ``ShareGroup`` and ``ShareGroupMember``.
"""

from barnabas.deadlines import Deadline
from barnabas.errors import GroupIdNotFound
from barnabas.groups.ledger import Pair
from barnabas.groups.messages import OffsetCommit
from barnabas.groups.share import records
from barnabas.groups.share.messages import Partitions
from barnabas.groups.share.share_member import ShareMember
from barnabas.groups.share.state_metadata import StateMetadata
from barnabas.groups.share.states import State

GROUP_TYPE = "share"

FIRST_EPOCH = 1
"""Of a group that nobody has joined, and of its assignment: members' epochs begin above it, as 0 means to join."""

ALWAYS_DUE = 0


class ShareGroup:
    """A group of members that share the records of partitions (Kafka's ``ShareGroup``)."""

    type = GROUP_TYPE
    protocol_type: str | None = GROUP_TYPE
    is_consumer_group = False
    is_written = True

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0
        """Of the topics that its members subscribe to, as they were at that epoch."""
        self.assignment_epoch = FIRST_EPOCH
        """For which epoch it was last worked out who is to read what."""
        self.assigned_at_ms = ALWAYS_DUE
        """When that was."""
        self.members: dict[str, ShareMember] = {}
        self.target: dict[str, Partitions] = {}
        """What is meant for each member, by its id; the member hears of it with its next heartbeat."""
        self.state = StateMetadata()

        # Of this run:
        self.sessions: dict[str, Deadline] = {}
        """When each member is out, unless it is heard of."""
        self.refresh_at_ms = ALWAYS_DUE
        """When the topics are to be looked at again."""
        self.assigned_state: StateMetadata | None = None
        """The state when it was last found that all of its partitions are meant for somebody."""
        self.initializing_since_ms: dict[tuple[bytes, int], int] = {}
        """Since when the persister has been asked to make state, by (topic id, partition)."""

    @property
    def state_name(self) -> str:
        name: str = (State.EMPTY if self.is_empty else State.STABLE).value
        return name

    @property
    def is_empty(self) -> bool:
        return not self.members

    def subscribed_topic_names(self, updated: ShareMember | None = None) -> set[str]:
        """What somebody subscribes to; with a member as it is about to be."""
        members = self.members if updated is None else {**self.members, updated.member_id: updated}
        return {name for member in members.values() for name in member.subscribed_topic_names}

    def is_subscribed_to(self, topic: str) -> bool:
        return any(topic in member.subscribed_topic_names for member in self.members.values())

    def validate_offset_commit(self, commit: OffsetCommit) -> None:
        """Share groups commit no offsets. :raises GroupIdNotFound: always"""
        raise GroupIdNotFound(f"{self.group_id} is a share group")

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """There is nothing to be found, which everybody may hear."""

    def expiry_base_ms(self, commit_timestamp_ms: int) -> int | None:
        """There is nothing that could expire."""
        return None

    def tombstones(self) -> list[Pair]:
        """Of a group that nobody is in."""
        return records.group_tombstones(self.group_id)

    def bury(self) -> None:
        for session in self.sessions.values():
            session.cancel()
        self.sessions.clear()

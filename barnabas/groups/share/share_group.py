"""A share group: the state that its records describe, and some state in memory (Kafka's ``ShareGroup``).

Knows nothing of requests and logs. ``replay.py`` applies its records, ``share_groups.py`` computes them.
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
"""The epoch of a group without records, and of its assignment. Member epochs start above it, since 0 means to join."""

ALWAYS_DUE = 0


class ShareGroup:
    """A group whose members share the records of partitions."""

    type = GROUP_TYPE
    protocol_type: str | None = GROUP_TYPE
    is_consumer_group = False
    is_written = True

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0
        """The hash of the subscribed topics in that epoch."""
        self.assignment_epoch = FIRST_EPOCH
        """The group epoch of the target assignment."""
        self.assigned_at_ms = ALWAYS_DUE
        """When it was computed."""
        self.members: dict[str, ShareMember] = {}
        self.target: dict[str, Partitions] = {}
        """The target of each member by member id. A member gets it with its next heartbeat."""
        self.state = StateMetadata()

        # This state is in no record:
        self.sessions: dict[str, Deadline] = {}
        """The session deadlines of members."""
        self.refresh_at_ms = ALWAYS_DUE
        """When the topics are refreshed next."""
        self.assigned_state: StateMetadata | None = None
        """The last state metadata whose partitions were all found to be assigned."""
        self.initializing_since_ms: dict[tuple[bytes, int], int] = {}
        """When the initialization of a (topic id, partition) was started."""

    @property
    def state_name(self) -> str:
        name: str = (State.EMPTY if self.is_empty else State.STABLE).value
        return name

    @property
    def is_empty(self) -> bool:
        return not self.members

    def subscribed_topic_names(self, updated: ShareMember | None = None) -> set[str]:
        """Returns the topics that members subscribe to, with ``updated`` as it will be."""
        members = self.members if updated is None else {**self.members, updated.member_id: updated}
        return {name for member in members.values() for name in member.subscribed_topic_names}

    def is_subscribed_to(self, topic: str) -> bool:
        return any(topic in member.subscribed_topic_names for member in self.members.values())

    def validate_offset_commit(self, commit: OffsetCommit) -> None:
        """Refuses every commit: share groups commit no offsets.

        :raises GroupIdNotFound: always
        """
        raise GroupIdNotFound(f"Group {self.group_id} is not a consumer group.")

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Does nothing: there are no offsets to fetch."""

    def expiry_base_ms(self, commit_timestamp_ms: int) -> int | None:
        """Returns None: there are no offsets to expire."""
        return None

    def tombstones(self) -> list[Pair]:
        """Returns the tombstones of a group without members."""
        return records.group_tombstones(self.group_id)

    def close(self) -> None:
        for session in self.sessions.values():
            session.cancel()
        self.sessions.clear()

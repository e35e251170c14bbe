"""A classic group: its members, its state, and its protocol (Kafka's ``ClassicGroup``).

Knows nothing of when a rebalance begins or ends, of responses and of records: that is ``rebalance.py``.
"""

import enum
import logging

from barnabas.deadlines import Deadline
from barnabas.errors import (
    FencedInstanceId,
    IllegalGeneration,
    MalformedMessage,
    RebalanceInProgress,
    UnknownMemberId,
)
from barnabas.groups.classic_member import ClassicMember
from barnabas.groups.java_hash import hash_map_order
from barnabas.groups.ledger import Pair
from barnabas.groups.messages import DescribedGroup, JoinedMember, JoinReply, OffsetCommit, Protocols
from barnabas.groups.subscription import CONSUMER_PROTOCOL, subscribed_topics
from barnabas.wire.messages.group_records import GroupMetadataKey

logger = logging.getLogger(__name__)

GROUP_TYPE = "classic"


class State(enum.Enum):
    """The values are the names that clients see (Kafka's ``ClassicGroupState``)."""

    EMPTY = "Empty"
    """The group has no members. It may have offsets."""
    PREPARING_REBALANCE = "PreparingRebalance"
    """The group waits for its members to rejoin."""
    COMPLETING_REBALANCE = "CompletingRebalance"
    """All members have joined, and the group waits for the leader's assignment."""
    STABLE = "Stable"
    """The members have their assignments."""
    DEAD = "Dead"
    """The group is deleted, and must not be used any more."""


PREVIOUS_STATES = {
    State.EMPTY: {State.PREPARING_REBALANCE},
    State.PREPARING_REBALANCE: {State.EMPTY, State.COMPLETING_REBALANCE, State.STABLE},
    State.COMPLETING_REBALANCE: {State.PREPARING_REBALANCE},
    State.STABLE: {State.COMPLETING_REBALANCE},
    State.DEAD: set(State),
}
"""The states from which each state can be reached."""


class ClassicGroup:
    """The members of a group that uses the classic protocol, with any protocol type."""

    type = GROUP_TYPE

    def __init__(
        self,
        group_id: str,
        now_ms: int,
        *,
        generation_id: int = 0,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
        leader_id: str | None = None,
    ) -> None:
        self.group_id = group_id
        self.state = State.EMPTY
        self.previous_state = State.DEAD
        self.state_timestamp_ms: int | None = now_ms
        """When it came into its state; None if the log did not store that (before Kafka 2.1)."""
        self.generation_id = generation_id
        self.protocol_type = protocol_type
        """That of the first member that joined the empty group; None before."""
        self.protocol_name = protocol_name
        self.leader_id = leader_id
        self.members: dict[str, ClassicMember] = {}
        self.static_members: dict[str, str] = {}
        """Member ids by group instance id."""
        self.pending_members: dict[str, Deadline] = {}
        """The member ids that were returned with MEMBER_ID_REQUIRED and have not joined, with the deadlines for
        that."""
        self.pending_sync: set[str] = set()
        """The members that have not synced in this generation."""
        self.awaiting_join = 0
        """How many members wait for the response to their JoinGroup."""
        self.new_member_added = False
        """A member has joined during the delay of the first rebalance."""
        self.assigned_generation_id = -1
        """The last generation that the leader has sent an assignment for, which may not be written yet."""
        self.subscribed_topics: frozenset[str] | None = None
        """The topics that the consumers of this generation subscribe to; None if that is unknown."""
        self.is_written = False
        """The group has a record. Before that it is not visible."""
        self.join_deadline: Deadline | None = None
        """When the rebalance completes without the members that have not joined."""
        self.sync_deadline: Deadline | None = None
        """When the members that have not synced are removed."""
        self._supporters: dict[str, int] = {}
        self._has_warned_of_subscription = False

    # ------------------------------------------------------------------ state

    def transition_to(self, state: State, now_ms: int) -> None:
        assert self.state in PREVIOUS_STATES[state], f"{self.group_id}: {self.state} -> {state}"
        self.previous_state, self.state = self.state, state
        self.state_timestamp_ms = now_ms

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def is_empty(self) -> bool:
        return self.state is State.EMPTY

    def close(self) -> None:
        """Cancels all deadlines. Members that wait must have got their responses."""
        for member_id in [*self.members, *self.pending_members]:
            self.remove(member_id)
        for deadline in (self.join_deadline, self.sync_deadline):
            if deadline is not None:
                deadline.cancel()
        self.previous_state, self.state = self.state, State.DEAD

    def tombstones(self) -> list[Pair]:
        """Returns the tombstone of the group."""
        return [(GroupMetadataKey(group=self.group_id), None)]

    @property
    def can_rebalance(self) -> bool:
        return self.state in PREVIOUS_STATES[State.PREPARING_REBALANCE]

    @property
    def has_all_members_joined(self) -> bool:
        return len(self.members) == self.awaiting_join and not self.pending_members

    @property
    def rebalance_timeout_ms(self) -> int:
        """The largest rebalance timeout of the members."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def next_generation(self, now_ms: int) -> None:
        """Begins the next generation with the members that have joined: selects a protocol, or becomes empty."""
        self.generation_id += 1
        if self.members:
            self.protocol_name = self.select_protocol()
            self.transition_to(State.COMPLETING_REBALANCE, now_ms)
        else:
            self.protocol_name = None
            self.transition_to(State.EMPTY, now_ms)
        self.compute_subscribed_topics()
        self.pending_sync.clear()

    # ---------------------------------------------------------------- members

    def add(self, member: ClassicMember, protocol_type: str) -> None:
        """Adds a member, and drops its pending id. The first member is the leader, and decides the protocol type."""
        assert member.member_id not in self.members, f"{member.member_id} is a member already"
        if not self.members:
            self.protocol_type = protocol_type
        self.members[member.member_id] = member
        if member.group_instance_id is not None:
            self.static_members[member.group_instance_id] = member.member_id
        if self.leader_id is None:
            self.leader_id = member.member_id
        self._count(member.protocols, 1)
        if member.join_reply is not None:
            self.awaiting_join += 1
        self.forget_pending(member.member_id)

    def remove(self, member_id: str) -> None:
        """Removes a member or a pending id, if it exists, without a response."""
        self.forget_pending(member_id)
        self.pending_sync.discard(member_id)
        member = self.members.pop(member_id, None)
        if member is None:
            return
        member.session.cancel()
        self._count(member.protocols, -1)
        if member.join_reply is not None:
            self.awaiting_join -= 1
        if member.group_instance_id is not None:
            self.static_members.pop(member.group_instance_id, None)
        if self.leader_id == member_id:
            self.leader_id = next(iter(self.members), None)

    def forget_pending(self, member_id: str) -> None:
        deadline = self.pending_members.pop(member_id, None)
        if deadline is not None:
            deadline.cancel()

    def update(
        self,
        member: ClassicMember,
        protocols: Protocols,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        reply: JoinReply,
    ) -> None:
        """Updates a member that has joined again."""
        self.change_protocols(member, protocols)
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms
        if member.join_reply is None:
            self.awaiting_join += 1
        member.join_reply = reply

    def change_protocols(self, member: ClassicMember, protocols: Protocols) -> None:
        self._count(member.protocols, -1)
        member.protocols = protocols
        self._count(protocols, 1)

    def take_join_reply(self, member: ClassicMember) -> JoinReply | None:
        """Returns the callback of the member's JoinGroup if it waits for a response, and clears it."""
        reply, member.join_reply = member.join_reply, None
        if reply is not None:
            self.awaiting_join -= 1
        return reply

    def replace_static(self, member: ClassicMember, member_id: str, session: Deadline) -> ClassicMember:
        """Replaces a static member by a new member id. The successor keeps its place, its assignment and its
        leadership."""
        assert member.group_instance_id is not None
        assert member.join_reply is None and member.sync_reply is None
        member.session.cancel()
        successor = ClassicMember(
            member_id,
            member.group_instance_id,
            member.client_id,
            member.client_host,
            member.rebalance_timeout_ms,
            member.session_timeout_ms,
            member.protocols,
            session,
        )
        successor.assignment = member.assignment
        del self.members[member.member_id]
        self.members[member_id] = successor
        self.static_members[member.group_instance_id] = member_id
        if self.leader_id == member.member_id:
            self.leader_id = member_id
        return successor

    def require_member(self, member_id: str, group_instance_id: str | None) -> ClassicMember:
        """Returns the member.

        :raises UnknownMemberId: there is none with that member id or instance id
        :raises FencedInstanceId: another member id has taken the instance id over
        """
        if group_instance_id is not None:
            current = self.static_members.get(group_instance_id)
            if current is None:
                raise UnknownMemberId
            if current != member_id:
                raise FencedInstanceId
        member = self.members.get(member_id)
        if member is None:
            raise UnknownMemberId
        return member

    def elect_leader(self) -> bool:
        """Makes a member that has joined the leader. Returns False if none has."""
        if self.leader_id is None:
            return False
        if self.members[self.leader_id].is_awaiting_join:
            return True
        joined = next((member.member_id for member in self.members.values() if member.is_awaiting_join), None)
        if joined is None:
            return False
        logger.info("group %s: leader %s has not rejoined, %s is the leader now", self.group_id, self.leader_id, joined)
        self.leader_id = joined
        return True

    # -------------------------------------------------------------- protocols

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        """Returns whether a member with these protocols can join: the group's type, and a protocol that all members
        support."""
        if self.is_empty:
            return bool(protocol_type) and bool(protocols)
        return protocol_type == self.protocol_type and any(
            self._supporters.get(name, 0) == len(self.members) for name, _ in protocols
        )

    def select_protocol(self) -> str:
        """Returns the protocol with the most votes. Each member votes for its first one of those that all support.

        Ties are decided by the order of a Java HashMap, as in Apache Kafka.
        """
        everybody = len(self.members)
        votes: dict[str, int] = {}
        for member in self.members.values():
            choice = next(name for name, _ in member.protocols if self._supporters[name] == everybody)
            votes[choice] = votes.get(choice, 0) + 1
        return max(hash_map_order(votes), key=votes.__getitem__)

    def joined_members(self) -> list[JoinedMember]:
        """Returns the members with their metadata, for the response to the leader."""
        assert self.protocol_name is not None
        return [
            JoinedMember(member.member_id, member.group_instance_id, member.metadata(self.protocol_name))
            for member in self.members.values()
        ]

    def compute_subscribed_topics(self) -> None:
        """Reads the topics that consumers subscribe to out of their metadata for the selected protocol."""
        self.subscribed_topics = None
        if not self.is_consumer_group:
            return
        if not self.members:
            self.subscribed_topics = frozenset()
        elif self.protocol_name is not None:
            try:
                topics = [subscribed_topics(member.metadata(self.protocol_name)) for member in self.members.values()]
            except MalformedMessage as error:
                # Such a client sends it with every rebalance.
                level = logging.DEBUG if self._has_warned_of_subscription else logging.WARNING
                self._has_warned_of_subscription = True
                logger.log(level, "group %s: cannot read a member's subscription: %s", self.group_id, error)
            else:
                self.subscribed_topics = frozenset().union(*topics)

    @property
    def is_consumer_group(self) -> bool:
        return self.protocol_type == CONSUMER_PROTOCOL

    def is_subscribed_to(self, topic: str) -> bool:
        """Returns whether consumers of the group subscribe to the topic; True if their subscription is unknown."""
        if self.subscribed_topics is None:
            return self.is_consumer_group
        return topic in self.subscribed_topics

    def _count(self, protocols: Protocols, change: int) -> None:
        for name in {name for name, _ in protocols}:
            self._supporters[name] = self._supporters.get(name, 0) + change

    # ---------------------------------------------------------------- offsets

    def validate_offset_commit(self, commit: OffsetCommit) -> None:
        """Checks that the member may commit.

        A commit without generation and member comes from a simple consumer, which may commit to a group without
        members, or from a producer before KIP-447, which may always commit.

        :raises KafkaError: it may not
        """
        generation_id, is_transactional = commit.generation_id, commit.producer is not None
        if generation_id < 0 and self.is_empty:
            return
        if generation_id < 0 and not commit.member_id and commit.group_instance_id is None:
            if is_transactional:
                return
            raise UnknownMemberId
        self.require_member(commit.member_id, commit.group_instance_id)
        if generation_id != self.generation_id:
            raise IllegalGeneration
        if self.state is State.COMPLETING_REBALANCE and not is_transactional:
            # The member has joined this generation, and has no assignment yet.
            raise RebalanceInProgress

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Does nothing: everybody may fetch the offsets of a classic group."""

    def expiry_base_ms(self, commit_timestamp_ms: int) -> int | None:
        """Returns the time from which the retention of the offset counts; None if it does not expire."""
        if self.protocol_type is None:
            return commit_timestamp_ms
        if self.is_empty:
            return commit_timestamp_ms if self.state_timestamp_ms is None else self.state_timestamp_ms
        if self.is_consumer_group and self.subscribed_topics is not None and self.state is State.STABLE:
            return commit_timestamp_ms
        return None

    # ------------------------------------------------------------- inspection

    def describe(self) -> DescribedGroup:
        """Returns the group for DescribeGroups."""
        protocol_name = self.protocol_name if self.state is State.STABLE else None
        return DescribedGroup(
            self.state.value,
            self.protocol_type or "",
            protocol_name or "",
            [member.describe(protocol_name) for member in self.members.values()],
        )

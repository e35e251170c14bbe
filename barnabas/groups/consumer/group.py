"""A consumer group: the state that its records describe (Kafka's ``ConsumerGroup``).

Knows nothing of requests and clocks. Only the appliers of records (``replay.py``) change it, except for what is not in
records: deadlines, and when the topics are refreshed.
"""

from collections.abc import Callable, Iterable
from typing import Final

from barnabas.deadlines import Deadline
from barnabas.errors import (
    IllegalGeneration,
    KafkaError,
    StaleMemberEpoch,
    UnknownMemberId,
    UnsupportedVersion,
)
from barnabas.groups.consumer.member import NO_TARGET, Epochs, Member, Target
from barnabas.groups.consumer.records import tombstones_of_group
from barnabas.groups.consumer.resolved_regex import UNRESOLVED, ResolvedRegex
from barnabas.groups.consumer.states import GroupState
from barnabas.groups.java_hash import hash_map_order
from barnabas.groups.ledger import Pair
from barnabas.groups.messages import OffsetCommit

GROUP_TYPE: Final = "consumer"

FIRST_EPOCH: Final = 1
"""The epoch of a group without records."""

REFRESH_INTERVAL_MS: Final = 180_000
"""How often the topics of a group are refreshed if no change is reported."""

NEVER: Final = 0
"""The timestamp of an assignment that was never made."""


class Counts(dict[str, int]):
    """How many members there are for each name; names without members are left out."""

    def add(self, names: Iterable[str], change: int) -> None:
        for name in names:
            count = self.get(name, 0) + change
            if count > 0:
                self[name] = count
            else:
                self.pop(name, None)


class ConsumerGroup:
    """The members of a group, their target assignments, and the partitions that they own."""

    type = GROUP_TYPE
    protocol_type = "consumer"
    is_consumer_group = True
    is_written = True

    def __init__(self, group_id: str, topic_id_of: Callable[[str], bytes | None] = lambda name: None) -> None:
        self.group_id = group_id
        self._topic_id_of = topic_id_of
        self.epoch = FIRST_EPOCH
        """Rises whenever a new assignment is needed."""
        self.metadata_hash = 0
        """The hash of the subscribed topics in that epoch (KIP-1101)."""
        self.assignment_epoch = FIRST_EPOCH
        """The group epoch of the target assignment."""
        self.assignment_time_ms = NEVER
        self.members: dict[str, Member] = {}
        self.static_members: dict[str, str] = {}
        """Member ids by instance id."""
        self.target: dict[str, Target] = {}
        self.topics = Counts()
        """The subscribed topics: by name, and those that resolved regular expressions match."""
        self.regexes = Counts()
        """The subscribed regular expressions."""
        self.resolved: dict[str, ResolvedRegex] = {}
        self.assignors = Counts()
        """The assignors that members prefer."""
        self.classic_members = 0
        """How many members use the classic protocol."""
        self.keeps_partition_metadata = False
        """There is a record of partition metadata, which brokers before 4.1 wrote."""
        self._owners: dict[bytes, dict[int, str]] = {}

        self._refresh_at_ms = 0
        self._refreshed_epoch = FIRST_EPOCH
        self.sessions: dict[str, Deadline] = {}
        self.revocations: dict[str, Deadline] = {}
        """When members that have to revoke partitions are fenced."""
        self.joins: dict[str, Deadline] = {}
        """When members of the classic protocol that have to rejoin are fenced."""
        self.syncs: dict[str, Deadline] = {}
        """When members of the classic protocol that have to sync are fenced."""

    # ------------------------------------------------------------------ state

    @property
    def state(self) -> GroupState:
        if not self.members:
            return GroupState.EMPTY
        if self.epoch > self.assignment_epoch:
            return GroupState.ASSIGNING
        epoch = self.assignment_epoch
        if all(member.is_reconciled_to(epoch) for member in self.members.values()):
            return GroupState.STABLE
        return GroupState.RECONCILING

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def is_empty(self) -> bool:
        return not self.members

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.topics

    def is_free(self, topic_id: bytes, partition: int) -> bool:
        """Returns whether no member owns the partition."""
        owners = self._owners.get(topic_id)
        return owners is None or partition not in owners

    # ---------------------------------------------------------------- members

    def require(self, member_id: str) -> Member:
        """Returns the member.

        :raises UnknownMemberId: there is none with that id
        """
        member = self.members.get(member_id)
        if member is None:
            raise UnknownMemberId(f"Member {member_id} is not a member of group {self.group_id}.")
        return member

    def static_member(self, instance_id: str | None) -> Member | None:
        member_id = self.static_members.get(instance_id) if instance_id is not None else None
        return self.members.get(member_id) if member_id is not None else None

    def target_of(self, member: Member) -> Target:
        """Returns the target assignment of the member, or of the member id whose instance id it takes over."""
        former = self.static_members.get(member.instance_id) if member.instance_id is not None else None
        return self.target.get(former or member.member_id, NO_TARGET)

    def put(self, member: Member) -> None:
        """Adds or updates a member."""
        former = self.members.get(member.member_id)
        self.members[member.member_id] = member
        self._count(former, member)
        if former is None or former.assigned != member.assigned or former.revoking != member.revoking:
            if former is not None:
                self._disown(former)
            self._own(member, member.assigned)
            self._own(member, member.revoking)

    def remove(self, member_id: str) -> None:
        """Removes a member, if there is one with that id."""
        member = self.members.pop(member_id, None)
        if member is not None:
            self._count(member, None)
            self._disown(member)
        self.forget_deadlines(member_id)

    def _count(self, former: Member | None, member: Member | None) -> None:
        if former is not None and self.static_members.get(former.instance_id or "") == former.member_id:
            del self.static_members[former.instance_id or ""]
        if member is not None and member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        for each, change in ((member, 1), (former, -1)):
            if each is None:
                continue
            self.topics.add(each.topic_names, change)
            if each.topic_regex:
                self.regexes.add((each.topic_regex,), change)
            if each.server_assignor is not None:
                self.assignors.add((each.server_assignor,), change)
            self.classic_members += change * (each.classic is not None)

    def _own(self, member: Member, partitions: Epochs) -> None:
        for topic_id, theirs in partitions.items():
            self._owners.setdefault(topic_id, {}).update(dict.fromkeys(theirs, member.member_id))

    def _disown(self, member: Member) -> None:
        for partitions in (member.assigned, member.revoking):
            for topic_id, theirs in partitions.items():
                owners = self._owners.get(topic_id, {})
                for partition in theirs:
                    if owners.get(partition) == member.member_id:
                        del owners[partition]
                if not owners:
                    self._owners.pop(topic_id, None)

    def assignor(self, former: Member | None = None, member: Member | None = None) -> str | None:
        """Returns the assignor that most members prefer, with ``member`` instead of ``former``; None if none prefers
        one.
        """
        counts = Counts(self.assignors)
        for each, change in ((former, -1), (member, 1)):
            if each is not None and each.server_assignor is not None:
                counts.add((each.server_assignor,), change)
        if not counts:
            return None
        return max(hash_map_order(counts), key=counts.__getitem__)

    # ---------------------------------------------------------- subscriptions

    def resolve(self, regex: str, resolved: ResolvedRegex | None) -> None:
        """Stores what a regular expression matches, or removes it."""
        former = self.resolved.pop(regex, UNRESOLVED)
        if resolved is not None:
            self.resolved[regex] = resolved
            self.topics.add(resolved.topics, 1)
        self.topics.add(former.topics, -1)

    def topics_with(self, former: Member | None, member: Member) -> Iterable[str]:
        """Returns the subscribed topics if ``former`` becomes ``member``."""
        names = former.topic_names if former is not None else frozenset()
        regex = (former.topic_regex if former is not None else None) or ""
        if names == member.topic_names and regex == (member.topic_regex or ""):
            return self.topics
        topics = Counts(self.topics)
        topics.add(member.topic_names, 1)
        topics.add(names, -1)
        if regex and regex != member.topic_regex and self.regexes.get(regex) == 1:
            topics.add(self.resolved.get(regex, UNRESOLVED).topics, -1)
        return topics

    def topics_without(self, members: Iterable[Member], regexes: Iterable[str]) -> Iterable[str]:
        """Returns the subscribed topics without these members and regular expressions."""
        topics = Counts(self.topics)
        for member in members:
            topics.add(member.topic_names, -1)
        for regex in regexes:
            topics.add(self.resolved.get(regex, UNRESOLVED).topics, -1)
        return topics

    def regexes_only_of(self, members: Iterable[Member]) -> list[str]:
        """Returns the regular expressions that only these members subscribe by."""
        counts = Counts()
        for member in members:
            if member.topic_regex:
                counts.add((member.topic_regex,), 1)
        return [regex for regex, count in counts.items() if self.regexes.get(regex) == count]

    # ---------------------------------------------------------------- offsets

    def validate_offset_commit(self, commit: OffsetCommit) -> None:
        """Checks that the member may commit.

        :raises KafkaError: it may not
        """
        epoch, is_transactional = commit.generation_id, commit.producer is not None
        if epoch < 0 and not self.members:
            return
        if epoch < 0 and is_transactional and not commit.member_id and commit.group_instance_id is None:
            return
        member = self.require(commit.member_id)
        if member.classic is None and not is_transactional and not commit.knows_member_epochs:
            raise UnsupportedVersion(
                "OffsetCommit version 9 or above must be used by members using the consumer group protocol"
            )
        if epoch == member.epoch:
            return
        if member.classic is not None or is_transactional or epoch > member.epoch:
            raise self._stale(member, epoch)
        for offset in commit.offsets:
            topic_id = offset.topic_id if any(offset.topic_id) else self._topic_id_of(offset.topic)
            since = None if topic_id is None else member.epoch_of(topic_id, offset.partition)
            if since is None or epoch < since:
                raise self._stale(member, epoch)

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Checks that the member may fetch the group's offsets.

        :raises KafkaError: it may not
        """
        if member_id is None and member_epoch < 0:
            return
        member = self.require(member_id or "")
        if member_epoch != member.epoch:
            raise self._stale(member, member_epoch)

    @staticmethod
    def _stale(member: Member, epoch: int) -> KafkaError:
        error = StaleMemberEpoch if member.classic is None else IllegalGeneration
        return error(f"Member {member.member_id} is in epoch {member.epoch}, not in {epoch}.")

    def expiry_base_ms(self, commit_timestamp_ms: int) -> int | None:
        """Returns the timestamp of the commit, from which the retention of offsets of topics without subscribers
        counts.
        """
        return commit_timestamp_ms

    # ----------------------------------------------------------------- topics

    def is_refresh_due(self, now_ms: int) -> bool:
        """Returns whether the topics have to be refreshed.

        They have to if a change was reported, if the interval is over, or if the epoch of the last refresh was not
        written.
        """
        return now_ms >= self._refresh_at_ms or self.epoch < self._refreshed_epoch

    def refreshed(self, now_ms: int, epoch: int) -> None:
        """Notes that the topics were refreshed, and the group epoch that this led to."""
        self._refresh_at_ms, self._refreshed_epoch = now_ms + REFRESH_INTERVAL_MS, epoch

    def request_refresh(self) -> None:
        """Notes that a subscribed topic has changed."""
        self._refresh_at_ms = 0

    # -------------------------------------------------------------- deadlines

    def forget_deadlines(self, member_id: str) -> None:
        for deadlines in (self.sessions, self.revocations, self.joins, self.syncs):
            deadline = deadlines.pop(member_id, None)
            if deadline is not None:
                deadline.cancel()

    def close(self) -> None:
        """Cancels all deadlines."""
        for deadlines in (self.sessions, self.revocations, self.joins, self.syncs):
            for deadline in deadlines.values():
                deadline.cancel()
            deadlines.clear()

    def tombstones(self) -> list[Pair]:
        """Returns the tombstones of all the group's records but its offsets."""
        return tombstones_of_group(self.group_id, self.members, self.target, self.resolved)

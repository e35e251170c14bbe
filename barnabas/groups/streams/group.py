"""A streams group: the state that its records describe, and some state in memory (Kafka's ``StreamsGroup``).

Knows nothing of requests and logs, nor of how tasks are assigned. Only the appliers of records change what is in
records.
"""

import logging
from collections.abc import Collection, Mapping

from barnabas.deadlines import Deadline
from barnabas.errors import StaleMemberEpoch, UnknownMemberId, UnsupportedVersion
from barnabas.groups.java_hash import timeline_order
from barnabas.groups.ledger import Pair
from barnabas.groups.messages import OffsetCommit
from barnabas.groups.streams.configuring import ConfiguredTopology
from barnabas.groups.streams.member import Member
from barnabas.groups.streams.messages import DescribedGroup
from barnabas.groups.streams.records import group_tombstones
from barnabas.groups.streams.states import GroupState
from barnabas.groups.streams.tasks import NO_TARGET, Target
from barnabas.groups.streams.topology import Topology

logger = logging.getLogger(__name__)

GROUP_TYPE = "streams"

FIRST_EPOCH = 1
"""The epoch of a group and of its assignment without records."""

NO_EPOCH = -1


class StreamsGroup:
    """The topology of a group, its members, and their tasks."""

    type = GROUP_TYPE
    protocol_type: str | None = GROUP_TYPE
    is_consumer_group = True
    """Offsets of topics that no member reads may be deleted while the group has members."""

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.is_written = True
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.validated_topology_epoch = 0
        self.assignment_configs: Mapping[str, str] = {}
        """The configs that the last assignment used."""
        self.assignment_epoch = FIRST_EPOCH
        self.assignment_timestamp_ms = 0
        self.topology: Topology | None = None
        self.members: dict[str, Member] = {}
        self.targets: dict[str, Target] = {}
        self._active: dict[tuple[str, int], str] = {}
        """The member id that owns an active task, by task."""
        self._others: dict[tuple[str, int], set[str]] = {}
        """The member ids that own a standby or warm-up task, by task."""
        # This state is in no record:
        self.configured: ConfiguredTopology | None = None
        self.topic_changes = 0
        """How many changes of topics in the topology this broker has seen."""
        self.configured_after = -1
        """The number of those changes when the topology was configured."""
        self.shutdown_requested_by: str | None = None
        self.endpoint_epoch = 0
        self.sessions: dict[str, Deadline] = {}
        self.rebalances: dict[str, Deadline] = {}
        """The deadlines of members that have to revoke tasks, by member id."""
        self.creation_errors: dict[str, tuple[str, float]] = {}
        """The internal topics that could not be created: why, and until when (``monotonic``) they are not tried
        again."""
        self.description: tuple[int, object] | None = None
        """The topology epoch and the description that a member has sent."""

    # ------------------------------------------------------------------ state

    @property
    def state(self) -> GroupState:
        if not self.members:
            return GroupState.EMPTY
        if self.topology is None or self.topology.epoch != self.validated_topology_epoch:
            return GroupState.NOT_READY
        if self.epoch > self.assignment_epoch:
            return GroupState.ASSIGNING
        if all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values()):
            return GroupState.STABLE
        return GroupState.RECONCILING

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def is_empty(self) -> bool:
        return not self.members

    @property
    def is_metadata_stale(self) -> bool:
        """Whether topics may have changed since the topology was configured."""
        return self.configured_after < self.topic_changes

    # ---------------------------------------------------------------- members

    def require_member(self, member_id: str) -> Member:
        """Returns the member.

        :raises UnknownMemberId: there is none with that id
        """
        member = self.members.get(member_id)
        if member is None:
            raise UnknownMemberId(f"Member {member_id} is not a member of group {self.group_id}.")
        return member

    def put_member(self, member: Member) -> None:
        """Adds or updates a member."""
        self._release(self.members.get(member.member_id))
        self.members[member.member_id] = member
        for held in (member.assigned, member.revoking):
            for subtopology, partitions in held.active.items():
                for each in partitions:
                    self._active[subtopology, each] = member.member_id
            for copies in (held.standby, held.warmup):
                for subtopology, others in copies.items():
                    for each in others:
                        self._others.setdefault((subtopology, each), set()).add(member.member_id)

    def remove_member(self, member_id: str) -> None:
        self._release(self.members.pop(member_id, None))
        self.targets.pop(member_id, None)
        for deadlines in (self.sessions, self.rebalances):
            deadline = deadlines.pop(member_id, None)
            if deadline is not None:
                deadline.cancel()
        if not self.members and self.shutdown_requested_by is not None:
            logger.info("group %s: all members have left, the application may start again", self.group_id)
            self.shutdown_requested_by = None

    def _release(self, member: Member | None) -> None:
        if member is None:
            return
        for held in (member.assigned, member.revoking):
            for subtopology, partitions in held.active.items():
                for each in partitions:
                    if self._active.get((subtopology, each)) == member.member_id:
                        del self._active[subtopology, each]
            for copies in (held.standby, held.warmup):
                for subtopology, others in copies.items():
                    for each in others:
                        holders = self._others.get((subtopology, each), set())
                        holders.discard(member.member_id)
                        if not holders:
                            self._others.pop((subtopology, each), None)

    def active_process(self, subtopology: str, partition: int) -> str | None:
        """Returns the process that owns the active task."""
        member_id = self._active.get((subtopology, partition))
        return None if member_id is None else self.members[member_id].process_id

    def other_processes(self, subtopology: str, partition: int) -> Collection[str]:
        """Returns the processes that own the task as standby or warm-up."""
        return {self.members[each].process_id for each in self._others.get((subtopology, partition), ())}

    def target(self, member_id: str) -> Target:
        return self.targets.get(member_id, NO_TARGET)

    # ---------------------------------------------------------------- offsets

    def is_subscribed_to(self, topic: str) -> bool:
        return bool(self.members) and self.topology is not None and topic in self.topology.subtopology_of

    def validate_offset_commit(self, commit: OffsetCommit) -> None:
        """Checks that the member may commit. It may be behind, if it has had its tasks since that epoch (KIP-1251).

        :raises KafkaError: it may not
        """
        is_transactional = commit.producer is not None
        epoch = commit.generation_id
        if epoch < 0 and self.is_empty:
            return
        if is_transactional and epoch == NO_EPOCH and not commit.member_id and commit.group_instance_id is None:
            return
        member = self.require_member(commit.member_id)
        if not is_transactional and not commit.knows_member_epochs:
            raise UnsupportedVersion(
                "OffsetCommit version 9 or above must be used by members using the streams group protocol"
            )
        if epoch > member.epoch:
            raise StaleMemberEpoch(f"Received member epoch {epoch} is newer than current member epoch {member.epoch}.")
        if epoch < member.epoch:
            for offset in commit.offsets:
                self._validate_task(member, epoch, offset.topic, offset.partition)

    def _validate_task(self, member: Member, epoch: int, topic: str, partition: int) -> None:
        subtopology = None if self.topology is None else self.topology.subtopology_of.get(topic)
        if subtopology is None:
            raise StaleMemberEpoch(f"Topic {topic} is not in the topology.")
        for held in (member.assigned, member.revoking):
            given = held.active.get(subtopology, {}).get(partition)
            if given is not None:
                if epoch < given:
                    task = f"task {subtopology}-{partition}"
                    raise StaleMemberEpoch(
                        f"Received member epoch {epoch} is older than assignment epoch {given} for {task}."
                    )
                return
        raise StaleMemberEpoch(f"Task {subtopology}-{partition} is not assigned or pending revocation for member.")

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Checks that the member may fetch the group's offsets.

        :raises KafkaError: it may not
        """
        if member_id is None and member_epoch < 0:
            return
        member = self.require_member(member_id or "")
        if member_epoch != member.epoch:
            raise StaleMemberEpoch(
                f"The received member epoch {member_epoch} does not match the expected member epoch {member.epoch}."
            )

    def expiry_base_ms(self, commit_timestamp_ms: int) -> int | None:
        return commit_timestamp_ms

    # ------------------------------------------------------------- inspection

    def describe(self) -> DescribedGroup:
        """Returns the group for StreamsGroupDescribe."""
        is_ready = self.configured is not None and self.configured.is_ready
        described = self.description
        return DescribedGroup(
            self.state_name,
            self.epoch,
            self.assignment_epoch,
            self.topology,
            self.configured if is_ready else None,
            [(member, self.targets.get(member_id)) for member_id, member in self.members.items()],
            described[1] if described is not None and self._is_current(described[0]) else None,
        )

    def _is_current(self, topology_epoch: int) -> bool:
        return self.topology is not None and self.topology.epoch == topology_epoch

    @property
    def wants_description(self) -> bool:
        """Whether no member has described the current topology."""
        return self.topology is not None and (self.description is None or not self._is_current(self.description[0]))

    def tombstones(self) -> list[Pair]:
        return group_tombstones(self.group_id, timeline_order(self.members))

    def close(self) -> None:
        for deadlines in (self.sessions, self.rebalances):
            for deadline in deadlines.values():
                deadline.cancel()
            deadlines.clear()

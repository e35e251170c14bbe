"""One streams group: what its records say, and the little beside it that lives in memory alone.

Knows nothing of requests, of the log, or of how members get their tasks; nobody changes it but those who apply records.
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
"""Of a group and of its targets, before anything was written."""

NO_EPOCH = -1


class StreamsGroup:
    """Kafka's ``StreamsGroup``."""

    type = GROUP_TYPE
    protocol_type: str | None = GROUP_TYPE
    is_consumer_group = True
    """Its offsets may be deleted while it has members, but for those of topics that it reads."""

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.is_written = True
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.validated_topology_epoch = 0
        self.assignment_configs: Mapping[str, str] = {}
        """Those by which the tasks were last assigned."""
        self.assignment_epoch = FIRST_EPOCH
        self.assignment_timestamp_ms = 0
        self.topology: Topology | None = None
        self.members: dict[str, Member] = {}
        self.targets: dict[str, Target] = {}
        self._active: dict[tuple[str, int], str] = {}
        """Who holds an active task: member id by task."""
        self._others: dict[tuple[str, int], set[str]] = {}
        """Who hold a task as standby or warm-up: member ids by task."""
        # What no record says:
        self.configured: ConfiguredTopology | None = None
        self.topic_changes = 0
        """How often topics that it needs were made, deleted or grown, since this broker has it."""
        self.configured_after = -1
        """After how many of these changes the topology was fitted to the topics."""
        self.shutdown_requested_by: str | None = None
        self.endpoint_epoch = 0
        self.sessions: dict[str, Deadline] = {}
        self.rebalances: dict[str, Deadline] = {}
        """When a member that has to give up tasks is out, by member id."""
        self.creation_errors: dict[str, tuple[str, float]] = {}
        """Internal topics that could not be made: why, and until when (``monotonic``) that is not tried again."""
        self.description: tuple[int, object] | None = None
        """What a member has said of the topology of that epoch."""

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
        """Topics may have changed since the topology was fitted to them."""
        return self.configured_after < self.topic_changes

    # ---------------------------------------------------------------- members

    def require_member(self, member_id: str) -> Member:
        """:raises UnknownMemberId: it is none"""
        member = self.members.get(member_id)
        if member is None:
            raise UnknownMemberId(f"{member_id} is not a member of group {self.group_id}.")
        return member

    def put_member(self, member: Member) -> None:
        """It is new, or not what it was."""
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
            logger.info("group %s: all members are gone: its application may start again", self.group_id)
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
        """The process that holds the active task."""
        member_id = self._active.get((subtopology, partition))
        return None if member_id is None else self.members[member_id].process_id

    def other_processes(self, subtopology: str, partition: int) -> Collection[str]:
        """The processes that hold the task in another role."""
        return {self.members[each].process_id for each in self._others.get((subtopology, partition), ())}

    def target(self, member_id: str) -> Target:
        return self.targets.get(member_id, NO_TARGET)

    # ---------------------------------------------------------------- offsets

    def is_subscribed_to(self, topic: str) -> bool:
        return bool(self.members) and self.topology is not None and topic in self.topology.subtopology_of

    def validate_offset_commit(self, commit: OffsetCommit) -> None:
        """Whether who says so may commit; KafkaError if not.

        A member may be a few epochs behind, as long as it has had its tasks since then (KIP-1251).
        """
        is_transactional = commit.producer is not None
        epoch = commit.generation_id
        if epoch < 0 and self.is_empty:
            return
        if is_transactional and epoch == NO_EPOCH and not commit.member_id and commit.group_instance_id is None:
            return
        member = self.require_member(commit.member_id)
        if not is_transactional and not commit.knows_member_epochs:
            raise UnsupportedVersion("Members of streams groups commit by version 9 of OffsetCommit, or a newer one.")
        if epoch > member.epoch:
            raise StaleMemberEpoch(f"The member is in epoch {member.epoch}, not in {epoch}.")
        if epoch < member.epoch:
            for asked in commit.offsets:
                self._validate_task(member, epoch, asked.topic, asked.partition)

    def _validate_task(self, member: Member, epoch: int, topic: str, partition: int) -> None:
        subtopology = None if self.topology is None else self.topology.subtopology_of.get(topic)
        if subtopology is None:
            raise StaleMemberEpoch(f"The topology does not read {topic}.")
        for held in (member.assigned, member.revoking):
            given = held.active.get(subtopology, {}).get(partition)
            if given is not None:
                if epoch < given:
                    raise StaleMemberEpoch(f"The member has had task {subtopology}-{partition} since epoch {given}.")
                return
        raise StaleMemberEpoch(f"The member does not have task {subtopology}-{partition}.")

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Whether who says so may request; KafkaError if not."""
        if member_id is None and member_epoch < 0:
            return
        member = self.require_member(member_id or "")
        if member_epoch != member.epoch:
            raise StaleMemberEpoch(f"The member is in epoch {member.epoch}, not in {member_epoch}.")

    def expiry_base_ms(self, commit_timestamp_ms: int) -> int | None:
        return commit_timestamp_ms

    # ------------------------------------------------------------- inspection

    def describe(self) -> DescribedGroup:
        """As StreamsGroupDescribe shows it."""
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
        """Nobody has said what its topology looks like."""
        return self.topology is not None and (self.description is None or not self._is_current(self.description[0]))

    def tombstones(self) -> list[Pair]:
        return group_tombstones(self.group_id, timeline_order(self.members))

    def bury(self) -> None:
        for deadlines in (self.sessions, self.rebalances):
            for deadline in deadlines.values():
                deadline.cancel()
            deadlines.clear()

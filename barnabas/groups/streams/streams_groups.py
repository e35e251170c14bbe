"""All streams groups: takes heartbeats, sees to it that what they lead to is written, and watches who falls silent.

Does no I/O and knows no requests. Which records a heartbeat leads to is ``heartbeating.py``'s, what they change
``appliers.py``'s (Kafka's ``GroupMetadataManager``, as far as it is about streams groups).
"""

import logging
from collections.abc import Callable, Collection, Mapping
from typing import Any

from barnabas.deadlines import Deadline
from barnabas.errors import GroupIdNotFound, InvalidRequest, KafkaError, NotCoordinator
from barnabas.groups.classic_group import ClassicGroup
from barnabas.groups.environment import Environment, TopicToMake
from barnabas.groups.ledger import Applier, Pair, log_failure
from barnabas.groups.streams import heartbeating
from barnabas.groups.streams.appliers import Appliers
from barnabas.groups.streams.configuring import BROKERS_DEFAULT, InternalTopic, Problem
from barnabas.groups.streams.endpoints import endpoints_of
from barnabas.groups.streams.group import StreamsGroup
from barnabas.groups.streams.heartbeating import STANDBY_REPLICAS, HeartbeatContext, HeartbeatOutcome
from barnabas.groups.streams.member import Member
from barnabas.groups.streams.member_states import MemberState
from barnabas.groups.streams.messages import (
    JOINING,
    LEAVING,
    LEAVING_STATIC,
    DescribedGroup,
    Heartbeat,
    HeartbeatReply,
    HeartbeatResult,
)
from barnabas.groups.streams.records import group_record, member_tombstones
from barnabas.groups.streams.states import Status
from barnabas.groups.streams.tasks import Tasks, TasksWithEpochs
from barnabas.groups.streams.topology import Topology
from barnabas.groups.streams.validating import validate
from barnabas.wire.coordinator_records import CoordinatorKey

logger = logging.getLogger(__name__)

RETRY_S = 0.5
"""After so long a member is taken out that could not be."""


class StreamsGroups:
    """Those whose coordinator this node is."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._groups = environment.groups
        self._appliers = Appliers(environment.groups, self._removed)
        self._first_assignments: dict[str, Deadline] = {}
        """When the first assignment of a group is due, by group id; a group that is not written has none of its own."""

    @property
    def appliers(self) -> Mapping[type[CoordinatorKey], Applier]:
        """What applies the records of streams groups."""
        return self._appliers.by_key

    # ------------------------------------------------------------- heartbeats

    def heartbeat(self, request: Heartbeat, reply: HeartbeatReply) -> None:
        """StreamsGroupHeartbeat: answered when what it leads to is written."""
        try:
            validate(request)
            if request.member_epoch in (LEAVING, LEAVING_STATIC):
                self._leave(request, reply)
            else:
                self._heartbeat(request, reply)
        except KafkaError as error:
            reply(HeartbeatResult.refused(error))

    def _heartbeat(self, request: Heartbeat, reply: HeartbeatReply) -> None:
        group, first = (
            self._group_to_join(request.group_id)
            if request.member_epoch == JOINING
            else (self._find(request.group_id), [])
        )
        is_new = self._groups.get(request.group_id) is not group
        context = self._context(group)
        topic_changes = group.topic_changes
        outcome = heartbeating.heartbeat(group, request, context, first)

        def written(error: type[KafkaError] | None) -> None:
            if error is not None:
                reply(HeartbeatResult.refused(error()))
                return
            self._set_deadlines(request.group_id, outcome.member)
            if not is_new:
                # Topics that have changed while this was written are for the next heartbeat to see.
                group.configured, group.configured_after = outcome.configured, topic_changes
            reply(self._answer(group, request, outcome, is_new))

        self._environment.ledger.commit(request.group_id, outcome.records, written)

    def _answer(
        self, group: StreamsGroup, request: Heartbeat, outcome: HeartbeatOutcome, is_new: bool
    ) -> HeartbeatResult:
        """What the member is told, and what is remembered of it beside its records.

        A group is not there before its first records are: what the first heartbeat brings beside them is forgotten.
        """
        member = outcome.member
        if request.shutdown_application and group.shutdown_requested_by is None:
            logger.info("group %s: member %s wants the whole application to stop", request.group_id, request.member_id)
            group.shutdown_requested_by = request.member_id
        status = list(outcome.status)
        if outcome.configured.missing:
            self._make_internal_topics(group, outcome.configured.missing, status)
        if group.shutdown_requested_by is not None:
            detail = f"Member {group.shutdown_requested_by} has failed, and wants the whole application to stop."
            status.append(Problem(Status.SHUTDOWN_APPLICATION, detail))
        is_told = request.member_epoch == JOINING or outcome.former.assigned != member.assigned
        if is_told and member.user_endpoint is not None:
            group.endpoint_epoch += 1
        if not is_told:
            is_told = not heartbeating.knows_its_tasks(request, outcome.former)
        endpoints = None
        if group.endpoint_epoch != request.endpoint_epoch:
            others = [each for each in group.members.values() if each.member_id != member.member_id]
            endpoints = endpoints_of([*others, member], outcome.configured, self._environment.image().topics_by_name)
        return HeartbeatResult(
            member_id=member.member_id,
            member_epoch=member.epoch,
            heartbeat_interval_ms=self._setting(request.group_id, "heartbeat.interval.ms"),
            status=status,
            tasks=_tasks(member.assigned) if is_told else None,
            endpoint_epoch=0 if is_new else group.endpoint_epoch,
            endpoints=endpoints,
            wants_description=not is_new
            and group.wants_description
            and all(each.status is not Status.STALE_TOPOLOGY for each in status),
        )

    def _group_to_join(self, group_id: str) -> tuple[StreamsGroup, list[Pair]]:
        """The group to join, which may not be there yet, and the records that take away what gives way to it."""
        group = self._groups.get(group_id)
        if isinstance(group, StreamsGroup):
            return group, []
        if group is None:
            if not self._environment.is_coordinator(group_id):
                raise NotCoordinator
            return StreamsGroup(group_id), []
        if isinstance(group, ClassicGroup) and group.is_empty:
            logger.info("group %s: was an empty classic group, and is a streams group now", group_id)
            return StreamsGroup(group_id), group.tombstones()
        raise GroupIdNotFound(f"Group {group_id} is not a streams group.")

    def _find(self, group_id: str) -> StreamsGroup:
        group = self._groups.get(group_id)
        if isinstance(group, StreamsGroup):
            return group
        if group is None and not self._environment.is_coordinator(group_id):
            raise NotCoordinator
        raise GroupIdNotFound(f"There is no streams group {group_id}.")

    def _context(self, group: StreamsGroup) -> HeartbeatContext:
        topics = self._environment.image().topics_by_name
        return HeartbeatContext(
            topics,
            self._metadata_hash,
            self._environment.clock.time_ms(),
            self._environment.config()["group.streams.max.size"],
            self._setting(group.group_id, STANDBY_REPLICAS),
            self._setting(group.group_id, "assignment.interval.ms"),
            lambda: self._awaits_members(group),
        )

    def _setting(self, group_id: str, name: str) -> Any:
        return self._environment.group_settings(group_id)["streams." + name]

    def _metadata_hash(self, topology: Topology) -> int:
        from barnabas.groups.assigning.topic_hash import group_hash, topic_hash  # hashing is not needed at start

        image = self._environment.image()
        topics = [image.topics_by_name[each] for each in topology.required_topics if each in image.topics_by_name]
        return group_hash({each.name: topic_hash(each, image.brokers) for each in topics})

    # ---------------------------------------------------------------- leaving

    def _leave(self, request: Heartbeat, reply: HeartbeatReply) -> None:
        group = self._find(request.group_id)
        if request.shutdown_application and group.shutdown_requested_by is None:
            group.shutdown_requested_by = request.member_id
        member = group.require_member(request.member_id)
        logger.info("group %s: member %s leaves", request.group_id, request.member_id)

        def written(error: type[KafkaError] | None) -> None:
            if error is None:
                reply(HeartbeatResult(member_id=request.member_id, member_epoch=request.member_epoch, status=()))
            else:
                reply(HeartbeatResult.refused(error()))

        self._remove(group, member, written)

    def _remove(self, group: StreamsGroup, member: Member, done: Callable[[type[KafkaError] | None], object]) -> None:
        """Take the member out: what it had is anybody's, as of the next epoch."""
        bumped = group_record(
            group.group_id,
            group.epoch + 1,
            group.metadata_hash,
            group.validated_topology_epoch,
            group.assignment_configs,
        )
        records = [*member_tombstones(group.group_id, member.member_id), bumped]
        self._environment.ledger.commit(group.group_id, records, done)

    # -------------------------------------------------------------- deadlines

    def _set_deadlines(self, group_id: str, member: Member) -> None:
        """Expect to hear of the member again; and that it gives up what it has to."""
        group = self._groups.get(group_id)
        if not isinstance(group, StreamsGroup) or member.member_id not in group.members:
            return
        deadlines = self._environment.deadlines
        session = group.sessions.get(member.member_id)
        if session is None:
            session = group.sessions[member.member_id] = Deadline(self._session_over, group_id, member.member_id)
        deadlines.set(session, self._setting(group_id, "session.timeout.ms") / 1000)
        rebalance = group.rebalances.pop(member.member_id, None)
        if rebalance is not None and (
            member.state is not MemberState.UNREVOKED_TASKS or rebalance.args[2] != member.epoch
        ):
            rebalance.cancel()
            rebalance = None
        if member.state is MemberState.UNREVOKED_TASKS:
            if rebalance is None:
                rebalance = Deadline(self._rebalance_over, group_id, member.member_id, member.epoch)
                deadlines.set(rebalance, member.rebalance_timeout_ms / 1000)
            group.rebalances[member.member_id] = rebalance

    def _session_over(self, group_id: str, member_id: str) -> None:
        group = self._groups.get(group_id)
        if isinstance(group, StreamsGroup) and (member := group.members.get(member_id)) is not None:
            reason = "has not been heard of for a whole session time-out"
            self._fence(group, member, reason, group.sessions.get(member_id))

    def _rebalance_over(self, group_id: str, member_id: str, epoch: int) -> None:
        group = self._groups.get(group_id)
        member = group.members.get(member_id) if isinstance(group, StreamsGroup) else None
        if isinstance(group, StreamsGroup) and member is not None and member.epoch == epoch:
            self._fence(group, member, "has not given up its tasks in time", group.rebalances.get(member_id))

    def _fence(self, group: StreamsGroup, member: Member, reason: str, deadline: Deadline | None) -> None:
        """Take the member out. Where that cannot be written, ``deadline`` strikes again a little later."""

        def written(error: type[KafkaError] | None) -> None:
            if error is None:
                logger.info("group %s: member %s is out: it %s", group.group_id, member.member_id, reason)
                return
            logger.warning(
                "group %s: member %s cannot be taken out: %s", group.group_id, member.member_id, error.__name__
            )
            if deadline is not None:
                self._environment.deadlines.set(deadline, RETRY_S)

        self._remove(group, member, written)

    def _awaits_members(self, group: StreamsGroup) -> bool:
        """Whether the group's first assignment waits; an empty group begins to."""
        if self._groups.get(group.group_id) is not group:
            self._removed(group.group_id)  # there may have been one of that name, which went with its log
        deadline = self._first_assignments.get(group.group_id)
        if deadline is None and group.is_empty:
            delay_ms = self._setting(group.group_id, "initial.rebalance.delay.ms")
            if delay_ms > 0:
                deadline = self._first_assignments[group.group_id] = Deadline(self._assign_first, group.group_id)
                self._environment.deadlines.set(deadline, delay_ms / 1000)
        return deadline is not None

    def _assign_first(self, group_id: str) -> None:
        """The time for more members to come is over (``computeDelayedTargetAssignment``)."""
        self._first_assignments.pop(group_id, None)
        group = self._groups.get(group_id)
        if not isinstance(group, StreamsGroup) or group.is_empty or group.configured is None:
            return  # whoever comes next is assigned its tasks at once
        now_ms = self._environment.clock.time_ms()
        if group.epoch <= group.assignment_epoch or not heartbeating.may_assign(
            group, now_ms, self._setting(group_id, "assignment.interval.ms")
        ):
            return
        replicas = int(group.assignment_configs.get(STANDBY_REPLICAS, 0))
        records, _ = heartbeating.assignment(group, group.epoch, None, group.configured, replicas, now_ms)
        self._environment.ledger.commit(group_id, records, log_failure(group_id, "what has changed in it"))

    def _removed(self, group_id: str) -> None:
        deadline = self._first_assignments.pop(group_id, None)
        if deadline is not None:
            deadline.cancel()

    # -------------------------------------------------------- internal topics

    def _make_internal_topics(
        self, group: StreamsGroup, missing: Mapping[str, InternalTopic], status: list[Problem]
    ) -> None:
        """Have them made; what could not be is not tried again for two heartbeats, and told meanwhile."""
        now = self._environment.clock.monotonic()
        errors = group.creation_errors
        for name in [name for name, (_, until) in errors.items() if until <= now]:
            del errors[name]
        wanted = [
            TopicToMake(each.name, each.partitions, each.replication_factor or BROKERS_DEFAULT, each.configs)
            for name, each in missing.items()
            if name not in errors
        ]
        if wanted:
            again = now + 2 * self._setting(group.group_id, "heartbeat.interval.ms") / 1000

            def made(failures: Mapping[str, str]) -> None:
                for name, reason in failures.items():
                    logger.warning("group %s: internal topic %s could not be made: %s", group.group_id, name, reason)
                    errors[name] = (reason, again)

            self._environment.create_topics(wanted, made)
        failed = [f"{name} ({errors[name][0]})" for name in sorted(missing) if name in errors]
        if failed:
            for at, each in enumerate(status):
                if each.status is Status.MISSING_INTERNAL_TOPICS:
                    status[at] = each._replace(detail=f"{each.detail}; could not be made: {', '.join(failed)}")

    # ------------------------------------------------------------- inspection

    def describe(self, group_id: str) -> DescribedGroup:
        """StreamsGroupDescribe, one of them. :raises KafkaError: GROUP_ID_NOT_FOUND or NOT_COORDINATOR"""
        return self._find(group_id).describe()

    def describe_topology(self, group_id: str, member_id: str, topology_epoch: int, description: object) -> None:
        """StreamsGroupTopologyDescriptionUpdate: keep what a member says of the topology, for people to read.

        It is kept in memory: after a restart members are asked again.

        :raises KafkaError: there is no such group, member, or topology
        """
        group = self._find(group_id)
        group.require_member(member_id)
        if group.topology is None or group.topology.epoch != topology_epoch:
            raise InvalidRequest(f"The group does not have a topology of epoch {topology_epoch}.")
        group.description = topology_epoch, description

    # ------------------------------------------------------- start, follow

    def start(self) -> None:
        """All is loaded: every member has a whole session's time to say that it is there."""
        for group in list(self._groups.values()):
            if isinstance(group, StreamsGroup):
                for member in list(group.members.values()):
                    self._set_deadlines(group.group_id, member)

    def topics_changed(self, names: Collection[str]) -> None:
        """Topics of these names were made, deleted, or have more partitions: topologies are fitted to them anew."""
        for group in self._groups.values():
            if isinstance(group, StreamsGroup) and group.topology is not None:
                group.topic_changes += not group.topology.required_topics.isdisjoint(names)


def _tasks(held: TasksWithEpochs) -> tuple[Tasks, Tasks, Tasks]:
    active = {subtopology: frozenset(partitions) for subtopology, partitions in held.active.items()}
    return active, held.standby, held.warmup

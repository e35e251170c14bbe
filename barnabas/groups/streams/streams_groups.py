"""All streams groups of a coordinator: heartbeats, deadlines, and internal topics.

Does no I/O and knows no requests. ``heartbeating.py`` computes the records of a heartbeat, ``appliers.py`` applies
them. Follows the parts of Apache Kafka's ``GroupMetadataManager`` for streams groups.
"""

import logging
from collections.abc import Callable, Collection, Mapping
from typing import Any

from barnabas.deadlines import Deadline
from barnabas.errors import GroupIdNotFound, InvalidRequest, KafkaError
from barnabas.groups.assigning.interval import may_assign
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
from barnabas.wire.coordinator_records import CoordinatorKey

logger = logging.getLogger(__name__)

RETRY_S = 0.5
"""After how long the removal of a member is tried again if it could not be written."""


class StreamsGroups:
    """The streams groups whose coordinator this node is."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._groups = environment.groups
        self._appliers = Appliers(environment.groups, self._removed)
        self._first_assignments: dict[str, Deadline] = {}
        """The deadlines of first assignments, by group id. They do not belong to a group, which may not be written
        yet."""

    @property
    def appliers(self) -> Mapping[type[CoordinatorKey], Applier]:
        """The appliers of the records of streams groups."""
        return self._appliers.by_key

    # ------------------------------------------------------------- heartbeats

    def heartbeat(self, request: Heartbeat, reply: HeartbeatReply) -> None:
        """Handles a StreamsGroupHeartbeat. Replies once its records are durable."""
        try:
            if request.member_epoch in (LEAVING, LEAVING_STATIC):
                self._leave(request, reply)
            else:
                self._heartbeat(request, reply)
        except KafkaError as error:
            reply(HeartbeatResult.refused(error))

    def _heartbeat(self, request: Heartbeat, reply: HeartbeatReply) -> None:
        if request.member_epoch == JOINING:
            group, first = self._group_to_join(request.group_id)
        else:
            group, first = self._find(request.group_id, "Streams group"), []
        is_new = self._groups.get(request.group_id) is not group
        context = self._context(group)
        topic_changes = group.topic_changes
        outcome = heartbeating.heartbeat(group, request, context, first)

        def written(error: KafkaError | None) -> None:
            if error is not None:
                reply(HeartbeatResult.refused(error))
                return
            self._set_deadlines(request.group_id, outcome.member)
            if not is_new:
                # The next heartbeat sees changes of topics that happened during the write.
                group.configured, group.configured_after = outcome.configured, topic_changes
            reply(self._answer(group, request, outcome, is_new))

        self._environment.ledger.commit(request.group_id, outcome.records, written)

    def _answer(
        self, group: StreamsGroup, request: Heartbeat, outcome: HeartbeatOutcome, is_new: bool
    ) -> HeartbeatResult:
        """Returns the response, and stores what is in no record.

        A new group does not exist before its first records: state of its first heartbeat that is in no record is lost.
        """
        member = outcome.member
        if request.shutdown_application and group.shutdown_requested_by is None:
            logger.info(
                "group %s: member %s requests the shutdown of the application", request.group_id, request.member_id
            )
            group.shutdown_requested_by = request.member_id
        status = list(outcome.status)
        if outcome.configured.missing:
            missing = outcome.configured.missing
            refused = () if request.creatable is None else sorted(missing.keys() - request.creatable(missing))
            if refused:
                _add_detail(status, f"Unauthorized to CREATE on topics {', '.join(refused)}.")
            else:
                self._make_internal_topics(group, missing, status)
        if group.shutdown_requested_by is not None:
            who = f"Streams group member {group.shutdown_requested_by}"
            detail = f"{who} encountered a fatal error and requested a shutdown for the entire application."
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
        """Returns the group to join, which may be new, and the tombstones of an empty classic group that it
        replaces."""
        group = self._groups.get(group_id)
        if isinstance(group, StreamsGroup):
            return group, []
        if group is None:
            return StreamsGroup(group_id), []
        if isinstance(group, ClassicGroup) and group.is_empty:
            logger.info("group %s: replaces an empty classic group by a streams group", group_id)
            return StreamsGroup(group_id), group.tombstones()
        raise GroupIdNotFound(f"Group {group_id} is not a streams group.")

    def _find(self, group_id: str, kind: str = "Group") -> StreamsGroup:
        """Returns the streams group.

        :param kind: what the error calls a missing group
        :raises GroupIdNotFound: there is no streams group with that id
        """
        group = self._groups.get(group_id)
        if isinstance(group, StreamsGroup):
            return group
        if group is not None:
            raise GroupIdNotFound(f"Group {group_id} is not a streams group.")
        raise GroupIdNotFound(f"{kind} {group_id} not found.")

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

        def written(error: KafkaError | None) -> None:
            if error is None:
                reply(HeartbeatResult(member_id=request.member_id, member_epoch=request.member_epoch, status=()))
            else:
                reply(HeartbeatResult.refused(error))

        self._remove(group, member, written)

    def _remove(self, group: StreamsGroup, member: Member, done: Callable[[KafkaError | None], object]) -> None:
        """Removes a member. Its tasks are assigned in the next epoch."""
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
        """Restarts the member's session, and sets the deadline by which it has to revoke tasks."""
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
            reason = "has sent no heartbeat within the session timeout"
            self._fence(group, member, reason, group.sessions.get(member_id))

    def _rebalance_over(self, group_id: str, member_id: str, epoch: int) -> None:
        group = self._groups.get(group_id)
        member = group.members.get(member_id) if isinstance(group, StreamsGroup) else None
        if isinstance(group, StreamsGroup) and member is not None and member.epoch == epoch:
            self._fence(
                group, member, "has not revoked its tasks within the rebalance timeout", group.rebalances.get(member_id)
            )

    def _fence(self, group: StreamsGroup, member: Member, reason: str, deadline: Deadline | None) -> None:
        """Removes a member that has missed a deadline.

        :param deadline: set again if the removal cannot be written
        """

        def written(error: KafkaError | None) -> None:
            if error is None:
                logger.info("group %s: removed member %s: it %s", group.group_id, member.member_id, reason)
                return
            logger.warning("group %s: cannot remove member %s: %s", group.group_id, member.member_id, error)
            if deadline is not None:
                self._environment.deadlines.set(deadline, RETRY_S)

        self._remove(group, member, written)

    def _awaits_members(self, group: StreamsGroup) -> bool:
        """Returns whether the group's first assignment is delayed. An empty group starts the delay."""
        if self._groups.get(group.group_id) is not group:
            self._removed(group.group_id)  # An earlier group with that id may be gone, as its log was lost.
        deadline = self._first_assignments.get(group.group_id)
        if deadline is None and group.is_empty:
            delay_ms = self._setting(group.group_id, "initial.rebalance.delay.ms")
            if delay_ms > 0:
                deadline = self._first_assignments[group.group_id] = Deadline(self._assign_first, group.group_id)
                self._environment.deadlines.set(deadline, delay_ms / 1000)
        return deadline is not None

    def _assign_first(self, group_id: str) -> None:
        """Computes the first assignment when the initial delay is over (``computeDelayedTargetAssignment``)."""
        self._first_assignments.pop(group_id, None)
        group = self._groups.get(group_id)
        if not isinstance(group, StreamsGroup) or group.is_empty or group.configured is None:
            return  # the next heartbeat computes the assignment
        now_ms = self._environment.clock.time_ms()
        interval_ms: int = self._setting(group_id, "assignment.interval.ms")
        if group.epoch <= group.assignment_epoch:
            return
        if not may_assign(group.assignment_timestamp_ms, interval_ms, now_ms):
            return
        replicas = int(group.assignment_configs.get(STANDBY_REPLICAS, 0))
        records, _ = heartbeating.assignment(group, group.epoch, None, group.configured, replicas, now_ms)
        self._environment.ledger.commit(group_id, records, log_failure(group_id, "the first assignment"))

    def _removed(self, group_id: str) -> None:
        deadline = self._first_assignments.pop(group_id, None)
        if deadline is not None:
            deadline.cancel()

    # -------------------------------------------------------- internal topics

    def _make_internal_topics(
        self, group: StreamsGroup, missing: Mapping[str, InternalTopic], status: list[Problem]
    ) -> None:
        """Creates internal topics. One that cannot be created is reported by the next heartbeats, and tried again
        after two heartbeat intervals."""
        now = self._environment.clock.monotonic()
        # The group of a first heartbeat is a temporary one; its records have created the stored group.
        there = self._groups.get(group.group_id)
        errors = (there if isinstance(there, StreamsGroup) else group).creation_errors
        for name in [name for name, (_, until) in errors.items() if until <= now]:
            del errors[name]
        failed = [f"{name} ({errors[name][0]})" for name in sorted(missing) if name in errors]
        if failed:
            _add_detail(status, f"Creation failed: {', '.join(failed)}.")
        wanted = [
            TopicToMake(each.name, each.partitions, each.replication_factor or BROKERS_DEFAULT, each.configs)
            for name, each in missing.items()
            if name not in errors
        ]
        if wanted:
            again = now + 2 * self._setting(group.group_id, "heartbeat.interval.ms") / 1000

            def made(failures: Mapping[str, str]) -> None:
                for name, reason in failures.items():
                    logger.warning("group %s: cannot create internal topic %s: %s", group.group_id, name, reason)
                    errors[name] = (reason, again)

            self._environment.create_topics(wanted, made)

    # ------------------------------------------------------------- inspection

    def describe(self, group_id: str) -> DescribedGroup:
        """Describes one group. :raises GroupIdNotFound: there is no streams group with that id"""
        return self._find(group_id).describe()

    def describe_topology(self, group_id: str, member_id: str, topology_epoch: int, description: object) -> None:
        """Handles a StreamsGroupTopologyDescriptionUpdate: stores a member's description of the topology.

        It is stored in memory. After a restart members send it again on request.

        :raises KafkaError: the group, the member or the topology does not exist
        """
        group = self._find(group_id)
        group.require_member(member_id)
        if group.topology is None or group.topology.epoch != topology_epoch:
            raise InvalidRequest(f"The group does not have a topology of epoch {topology_epoch}.")
        group.description = topology_epoch, description

    # ------------------------------------------------------- start, follow

    def start(self) -> None:
        """Starts the sessions of all members, once the log is loaded."""
        for group in list(self._groups.values()):
            if isinstance(group, StreamsGroup):
                for member in list(group.members.values()):
                    self._set_deadlines(group.group_id, member)

    def topics_changed(self, names: Collection[str]) -> None:
        """Notes that these topics were created or deleted, or have more partitions: topologies are configured again."""
        for group in self._groups.values():
            if isinstance(group, StreamsGroup) and group.topology is not None:
                group.topic_changes += not group.topology.required_topics.isdisjoint(names)


def _tasks(held: TasksWithEpochs) -> tuple[Tasks, Tasks, Tasks]:
    active = {subtopology: frozenset(partitions) for subtopology, partitions in held.active.items()}
    return active, held.standby, held.warmup


def _add_detail(status: list[Problem], detail: str) -> None:
    """Adds why internal topics are missing."""
    for at, each in enumerate(status):
        if each.status is Status.MISSING_INTERNAL_TOPICS:
            status[at] = each._replace(detail=f"{each.detail}; {detail}")

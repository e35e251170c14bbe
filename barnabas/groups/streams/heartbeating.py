"""Computes one heartbeat of a member that joins or stays: its records, and what the response says.

Knows nothing of when the records are durable, and changes nothing. The steps are those of Apache Kafka 4.3
(``GroupMetadataManager.streamsGroupHeartbeat``).
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from barnabas.errors import FencedMemberEpoch, GroupMaxSizeReached, InvalidRequest, UnknownServerError
from barnabas.groups.assigning.interval import may_assign
from barnabas.groups.environment import TopicView
from barnabas.groups.ledger import Pair
from barnabas.groups.records import has_place_for
from barnabas.groups.streams.configuring import ConfiguredTopology, Problem, configure
from barnabas.groups.streams.group import NO_EPOCH, StreamsGroup
from barnabas.groups.streams.member import Member
from barnabas.groups.streams.messages import JOINING, Heartbeat, TaskIds
from barnabas.groups.streams.reconciling import next_member
from barnabas.groups.streams.records import (
    current_record,
    group_record,
    member_record,
    target_epoch_record,
    target_record,
    topology_record,
)
from barnabas.groups.streams.states import Status
from barnabas.groups.streams.sticky import MemberSpec, assign
from barnabas.groups.streams.tasks import NO_TARGET, Target, tasks_of
from barnabas.groups.streams.topology import Topology
from barnabas.groups.streams.validating import validate_owned

DELAYED = "Assignment delayed due to the configured"
STANDBY_REPLICAS = "num.standby.replicas"
"""The only config that the assignor depends on, under its name in the group's record."""


class HeartbeatContext(NamedTuple):
    """What a heartbeat depends on beside the group and the member."""

    topics: Mapping[str, TopicView]
    hash_of: Callable[[Topology], int]
    """Returns the hash of the topics that the topology needs."""
    now_ms: int
    max_size: int
    standby_replicas: int
    assignment_interval_ms: int
    initial_delay: Callable[[], bool]
    """Returns whether the group's first assignment waits for more members. Called when the group has a new epoch."""


class HeartbeatOutcome(NamedTuple):
    """The result of a heartbeat."""

    records: list[Pair]
    former: Member
    member: Member
    configured: ConfiguredTopology
    status: list[Problem]


def heartbeat(
    group: StreamsGroup, request: Heartbeat, context: HeartbeatContext, first: list[Pair]
) -> HeartbeatOutcome:
    """Computes a heartbeat.

    :param first: records that precede those of the heartbeat
    :raises KafkaError: the request is refused
    """
    if request.member_epoch == JOINING and len(group.members) >= context.max_size:
        raise GroupMaxSizeReached(f"The streams group has reached its maximum capacity of {context.max_size} members.")
    former = _member(group, request)
    member = _updated(former, request)
    _require_place_for(group, member)
    records = list(first)
    status: list[Problem] = []
    if member != former:
        records.append(member_record(group.group_id, member))
    topology = _topology(group, request, records)
    if group.topology is not None and member.topology_epoch < topology.epoch:
        detail = f"The member's topology epoch {member.topology_epoch} is behind"
        detail += f" the group's topology epoch {topology.epoch}."
        status.append(Problem(Status.STALE_TOPOLOGY, detail))
    metadata_hash, configured = _configured(group, topology, context)
    if configured.is_ready:
        validate_owned(request, configured.subtopologies or {})
    validated = topology.epoch if configured.is_ready else NO_EPOCH
    configs = {STANDBY_REPLICAS: str(context.standby_replicas)}
    epoch = group.epoch
    if (
        member != former
        or metadata_hash != group.metadata_hash
        or validated != group.validated_topology_epoch
        or configs != group.assignment_configs
    ):
        epoch += 1
        records.append(group_record(group.group_id, epoch, metadata_hash, validated, configs))
    target_epoch, target = _target(group, member, epoch, configured, context, records, status)
    reconciled = member
    if not member.is_reconciled_to(target_epoch):
        reconciled = next_member(member, target_epoch, target, _owned(request), group)
        if reconciled != member:
            records.append(current_record(group.group_id, reconciled))
    if configured.problem is not None:
        status.append(configured.problem)
    return HeartbeatOutcome(records, former, reconciled, configured, status)


# ---------------------------------------------------------------- the member


def _member(group: StreamsGroup, request: Heartbeat) -> Member:
    """Returns the member before this heartbeat.

    :raises FencedMemberEpoch: the heartbeat has neither its epoch, nor the previous one with tasks that it owns
    """
    if request.member_epoch == JOINING:
        return group.members.get(request.member_id) or Member(request.member_id)
    member = group.require_member(request.member_id)
    if request.member_epoch > member.epoch:
        raise _fenced(request, member, "greater")
    if request.member_epoch < member.epoch:
        # The response with the new epoch may be lost. Then the member owns nothing that it has to revoke.
        owned = _owned(request)
        is_late = (
            request.member_epoch == member.previous_epoch and owned is not None and owned.is_within(member.assigned)
        )
        if not is_late:
            raise _fenced(request, member, "smaller")
    return member


def _fenced(request: Heartbeat, member: Member, greater: str) -> FencedMemberEpoch:
    return FencedMemberEpoch(
        f"The streams group member has a {greater} member epoch ({request.member_epoch}) than the one known by the "
        f"group coordinator ({member.epoch}). The member must abandon all its partitions and rejoin."
    )


def knows_its_tasks(request: Heartbeat, member: Member) -> bool:
    """Returns whether the member knows the tasks that were assigned to it before this heartbeat.

    Apache Kafka 4.3 sends each assignment once, and a member that misses the response never runs its tasks. Here the
    assignment is sent again to a member that is one epoch behind, or reports fewer tasks than it was assigned.
    """
    if request.member_epoch != member.epoch:
        return False
    owned = _owned(request)
    return owned is None or owned.has_all(member.assigned)


def _updated(member: Member, request: Heartbeat) -> Member:
    return member._replace(
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms
        if request.rebalance_timeout_ms == -1
        else request.rebalance_timeout_ms,
        topology_epoch=member.topology_epoch if request.topology is None else request.topology.epoch,
        client_id=request.client_id,
        client_host=request.client_host,
        process_id=member.process_id if request.process_id is None else request.process_id,
        client_tags=member.client_tags if request.client_tags is None else request.client_tags,
        user_endpoint=member.user_endpoint if request.user_endpoint is None else request.user_endpoint,
    )


def _require_place_for(group: StreamsGroup, member: Member) -> None:
    texts = (group.group_id, member.member_id, member.rack_id, member.client_id, member.process_id)
    if not has_place_for(*texts[:2]) or not has_place_for(*texts[2:]):
        raise UnknownServerError("A text is too long for a record.")


def _owned(request: Heartbeat) -> Target | None:
    """Returns the tasks that the member reports; None if it reports nothing."""
    if request.active is None or request.standby is None or request.warmup is None:
        return None
    return Target(_tasks(request.active), _tasks(request.standby), _tasks(request.warmup))


def _tasks(tasks: TaskIds) -> Mapping[str, frozenset[int]]:
    return tasks_of(tasks)


# ---------------------------------------------------------------- the topology


def _topology(group: StreamsGroup, request: Heartbeat, records: list[Pair]) -> Topology:
    """Returns the group's topology. The first member decides it.

    :raises InvalidRequest: the heartbeat brings a different one
    """
    if request.topology is None:
        if group.topology is None:
            raise UnknownServerError("The topology is null and the group topology is also null.")
        return group.topology
    requested = Topology.of(request.topology)
    if group.topology is None:
        records.append(topology_record(group.group_id, request.topology))
        return requested
    if group.topology.epoch <= requested.epoch and requested != group.topology:
        raise InvalidRequest("Topology updates are not supported yet.")
    return group.topology


def _configured(group: StreamsGroup, topology: Topology, context: HeartbeatContext) -> tuple[int, ConfiguredTopology]:
    """Returns the topology as configured, and the hash of its topics. Configures it again if topics have changed."""
    configured = group.configured
    if group.topology is not None and configured is not None and not group.is_metadata_stale:
        return group.metadata_hash, configured
    # Also if the hash is equal: a topology that is being written is not configured yet.
    return context.hash_of(topology), configure(topology, context.topics)


# ---------------------------------------------------------------- targets


def _target(
    group: StreamsGroup,
    member: Member,
    epoch: int,
    configured: ConfiguredTopology,
    context: HeartbeatContext,
    records: list[Pair],
    status: list[Problem],
) -> tuple[int, Target]:
    """Returns the member's target and its epoch. Computes a new assignment if the group epoch is ahead and it is
    time."""
    if context.initial_delay():
        status.append(Problem(Status.ASSIGNMENT_DELAYED, f"{DELAYED} initial rebalance delay."))
        return group.assignment_epoch, NO_TARGET
    if epoch > group.assignment_epoch:
        if may_assign(group.assignment_timestamp_ms, context.assignment_interval_ms, context.now_ms):
            found, targets = assignment(group, epoch, member, configured, context.standby_replicas, context.now_ms)
            records += found
            return epoch, targets[member.member_id]
        status.append(Problem(Status.ASSIGNMENT_DELAYED, f"{DELAYED} assignment interval."))
    return group.assignment_epoch, group.target(member.member_id)


def assignment(
    group: StreamsGroup,
    epoch: int,
    member: Member | None,
    configured: ConfiguredTopology,
    standby_replicas: int,
    now_ms: int,
) -> tuple[list[Pair], dict[str, Target]]:
    """Computes the target of every member. Returns the records of those that change (``TargetAssignmentBuilder``)."""
    members = dict(group.members)
    if member is not None:
        members[member.member_id] = member
    specs = {each.member_id: MemberSpec(each.process_id, group.target(each.member_id)) for each in members.values()}
    subtopologies = configured.subtopologies or {} if configured.is_ready else {}
    targets = assign(specs, subtopologies, standby_replicas)
    records = [
        target_record(group.group_id, member_id, target)
        for member_id, target in targets.items()
        if group.targets.get(member_id) != target
    ]
    records.append(target_epoch_record(group.group_id, epoch, now_ms))
    return records, targets

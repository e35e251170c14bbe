"""The records of streams groups in ``__consumer_offsets`` (``StreamsCoordinatorRecordHelpers``).

Knows nothing of when they are written.
"""

from collections.abc import Mapping, Sequence

from barnabas.groups.ledger import Pair
from barnabas.groups.streams.member import Endpoint, Member
from barnabas.groups.streams.member_states import MemberState
from barnabas.groups.streams.tasks import Epochs, Target, Tasks, TasksWithEpochs, tasks_of
from barnabas.wire.messages.group_records import (
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataKey,
    StreamsGroupMemberMetadataValue,
    StreamsGroupMetadataKey,
    StreamsGroupMetadataValue,
    StreamsGroupTargetAssignmentMemberKey,
    StreamsGroupTargetAssignmentMemberValue,
    StreamsGroupTargetAssignmentMetadataKey,
    StreamsGroupTargetAssignmentMetadataValue,
    StreamsGroupTopologyKey,
    StreamsGroupTopologyValue,
)

TargetTaskIds = StreamsGroupTargetAssignmentMemberValue.TaskIds
CurrentTaskIds = StreamsGroupCurrentMemberAssignmentValue.TaskIds

# ---------------------------------------------------------------- of a group


def group_record(
    group_id: str, epoch: int, metadata_hash: int, validated_topology_epoch: int, configs: Mapping[str, str]
) -> Pair:
    """Returns the record of a group epoch, and of what it depends on."""
    value = StreamsGroupMetadataValue(
        epoch=epoch,
        metadata_hash=metadata_hash,
        validated_topology_epoch=validated_topology_epoch,
        last_assignment_configs=[
            StreamsGroupMetadataValue.LastAssignmentConfig(key=key, value=configs[key]) for key in sorted(configs)
        ],
    )
    return StreamsGroupMetadataKey(group_id=group_id), value


def topology_record(group_id: str, topology: StreamsGroupTopologyValue) -> Pair:
    return StreamsGroupTopologyKey(group_id=group_id), topology


def target_epoch_record(group_id: str, epoch: int, timestamp_ms: int) -> Pair:
    """Returns the record of the epoch and the time of the target assignment."""
    value = StreamsGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=timestamp_ms)
    return StreamsGroupTargetAssignmentMetadataKey(group_id=group_id), value


def group_tombstones(group_id: str, member_ids: Sequence[str]) -> list[Pair]:
    """Returns the tombstones of a group and all its members."""
    return [
        *((_current_key(group_id, each), None) for each in member_ids),
        *((_target_key(group_id, each), None) for each in member_ids),
        (StreamsGroupTargetAssignmentMetadataKey(group_id=group_id), None),
        *((_member_key(group_id, each), None) for each in member_ids),
        (StreamsGroupMetadataKey(group_id=group_id), None),
        (StreamsGroupTopologyKey(group_id=group_id), None),
    ]


# ---------------------------------------------------------------- of a member


def member_record(group_id: str, member: Member) -> Pair:
    """Returns the record that describes the member."""
    endpoint = member.user_endpoint
    value = StreamsGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=None
        if endpoint is None
        else StreamsGroupMemberMetadataValue.Endpoint(host=endpoint.host, port=endpoint.port),
        client_tags=[
            StreamsGroupMemberMetadataValue.KeyValue(key=key, value=member.client_tags[key])
            for key in sorted(member.client_tags)
        ],
    )
    return _member_key(group_id, member.member_id), value


def with_metadata(member: Member, value: StreamsGroupMemberMetadataValue) -> Member:
    """Returns the member with the description in the record."""
    endpoint = value.user_endpoint
    return member._replace(
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        topology_epoch=value.topology_epoch,
        process_id=value.process_id,
        user_endpoint=None if endpoint is None else Endpoint(endpoint.host, endpoint.port),
        client_tags={each.key: each.value for each in value.client_tags},
    )


def target_record(group_id: str, member_id: str, target: Target) -> Pair:
    value = StreamsGroupTargetAssignmentMemberValue(
        active_tasks=_target_ids(target.active),
        standby_tasks=_target_ids(target.standby),
        warmup_tasks=_target_ids(target.warmup),
    )
    return _target_key(group_id, member_id), value


def target_of(value: StreamsGroupTargetAssignmentMemberValue) -> Target:
    return Target(_tasks(value.active_tasks), _tasks(value.standby_tasks), _tasks(value.warmup_tasks))


def current_record(group_id: str, member: Member) -> Pair:
    """Returns the record of the member's epoch, state and tasks."""
    assigned, revoking = member.assigned, member.revoking
    value = StreamsGroupCurrentMemberAssignmentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=member.state,
        active_tasks=_epoch_ids(assigned.active),
        standby_tasks=_current_ids(assigned.standby),
        warmup_tasks=_current_ids(assigned.warmup),
        active_tasks_pending_revocation=_epoch_ids(revoking.active),
        standby_tasks_pending_revocation=_current_ids(revoking.standby),
        warmup_tasks_pending_revocation=_current_ids(revoking.warmup),
    )
    return _current_key(group_id, member.member_id), value


def with_current(member: Member, value: StreamsGroupCurrentMemberAssignmentValue) -> Member:
    """Returns the member with the epoch, state and tasks in the record."""
    epoch = value.member_epoch
    return member._replace(
        epoch=epoch,
        previous_epoch=value.previous_member_epoch,
        state=MemberState.of(value.state),
        assigned=TasksWithEpochs(
            _epochs(value.active_tasks, epoch), _tasks(value.standby_tasks), _tasks(value.warmup_tasks)
        ),
        revoking=TasksWithEpochs(
            _epochs(value.active_tasks_pending_revocation, epoch),
            _tasks(value.standby_tasks_pending_revocation),
            _tasks(value.warmup_tasks_pending_revocation),
        ),
    )


def member_tombstones(group_id: str, member_id: str) -> list[Pair]:
    """Returns the tombstones of a member."""
    return [
        (_current_key(group_id, member_id), None),
        (_target_key(group_id, member_id), None),
        (_member_key(group_id, member_id), None),
    ]


# ---------------------------------------------------------------- tasks


def _target_ids(tasks: Tasks) -> list[TargetTaskIds]:
    return [TargetTaskIds(subtopology_id=each, partitions=sorted(tasks[each])) for each in sorted(tasks)]


def _current_ids(tasks: Tasks) -> list[CurrentTaskIds]:
    return [CurrentTaskIds(subtopology_id=each, partitions=sorted(tasks[each])) for each in sorted(tasks)]


def _epoch_ids(tasks: Epochs) -> list[CurrentTaskIds]:
    return [
        CurrentTaskIds(
            subtopology_id=each,
            partitions=sorted(tasks[each]),
            assignment_epochs=[tasks[each][partition] for partition in sorted(tasks[each])],
        )
        for each in sorted(tasks)
    ]


def _tasks(ids: Sequence[TargetTaskIds] | Sequence[CurrentTaskIds]) -> Tasks:
    return tasks_of((each.subtopology_id, each.partitions) for each in ids)


def _epochs(ids: Sequence[CurrentTaskIds], otherwise: int) -> Epochs:
    """Returns the tasks with their epochs. Releases before 4.3 wrote no epochs: then ``otherwise`` is that of each."""
    found: dict[str, dict[int, int]] = {}
    for each in ids:
        epochs = each.assignment_epochs or ()
        if len(epochs) != len(each.partitions):
            epochs = [otherwise] * len(each.partitions)
        found[each.subtopology_id] = dict(zip(each.partitions, epochs, strict=True))
    return found


def _member_key(group_id: str, member_id: str) -> StreamsGroupMemberMetadataKey:
    return StreamsGroupMemberMetadataKey(group_id=group_id, member_id=member_id)


def _target_key(group_id: str, member_id: str) -> StreamsGroupTargetAssignmentMemberKey:
    return StreamsGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)


def _current_key(group_id: str, member_id: str) -> StreamsGroupCurrentMemberAssignmentKey:
    return StreamsGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id)

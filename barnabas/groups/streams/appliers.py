"""Applies the records of streams groups: those that were just written, and those that a log has.

Knows nothing of why they are written.
"""

from collections.abc import Callable, Mapping

from barnabas.groups.classic_group import ClassicGroup
from barnabas.groups.group import Group
from barnabas.groups.ledger import Applier
from barnabas.groups.streams.group import NO_EPOCH, StreamsGroup
from barnabas.groups.streams.member import Member
from barnabas.groups.streams.member_states import MemberState
from barnabas.groups.streams.records import target_of, with_current, with_metadata
from barnabas.groups.streams.tasks import NONE_ASSIGNED
from barnabas.groups.streams.topology import Topology
from barnabas.wire.coordinator_records import CoordinatorKey
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


class Appliers:
    """The appliers by record key, in :attr:`by_key`."""

    def __init__(self, groups: dict[str, Group], on_removed: Callable[[str], object]) -> None:
        self._groups = groups
        self._on_removed = on_removed
        self.by_key: Mapping[type[CoordinatorKey], Applier] = {
            StreamsGroupMetadataKey: self._group,
            StreamsGroupMemberMetadataKey: self._member,
            StreamsGroupTargetAssignmentMetadataKey: self._target_epoch,
            StreamsGroupTargetAssignmentMemberKey: self._target,
            StreamsGroupCurrentMemberAssignmentKey: self._current,
            StreamsGroupTopologyKey: self._topology,
        }

    def _find(self, group_id: str) -> StreamsGroup | None:
        group = self._groups.get(group_id)
        return group if isinstance(group, StreamsGroup) else None

    def _make(self, group_id: str) -> StreamsGroup:
        """Returns the group. It replaces a classic group that has nothing but offsets, which may precede it in the
        log."""
        group = self._groups.get(group_id)
        if isinstance(group, StreamsGroup):
            return group
        if isinstance(group, ClassicGroup):
            group.close()
        made = self._groups[group_id] = StreamsGroup(group_id)
        return made

    def _group(self, key: StreamsGroupMetadataKey, value: StreamsGroupMetadataValue | None) -> None:
        if value is None:
            group = self._find(key.group_id)
            if group is not None:
                group.close()
                del self._groups[key.group_id]
                self._on_removed(key.group_id)
            return
        group = self._make(key.group_id)
        group.epoch = value.epoch
        group.metadata_hash = value.metadata_hash
        group.validated_topology_epoch = value.validated_topology_epoch
        group.assignment_configs = {each.key: each.value for each in value.last_assignment_configs or ()}

    def _topology(self, key: StreamsGroupTopologyKey, value: StreamsGroupTopologyValue | None) -> None:
        if value is not None:
            self._make(key.group_id).topology = Topology.of(value)
        elif (group := self._find(key.group_id)) is not None:
            group.topology = None

    def _member(self, key: StreamsGroupMemberMetadataKey, value: StreamsGroupMemberMetadataValue | None) -> None:
        if value is not None:
            group = self._make(key.group_id)
            group.put_member(with_metadata(group.members.get(key.member_id) or Member(key.member_id), value))
        elif (found := self._find(key.group_id)) is not None:
            found.remove_member(key.member_id)

    def _target_epoch(
        self, key: StreamsGroupTargetAssignmentMetadataKey, value: StreamsGroupTargetAssignmentMetadataValue | None
    ) -> None:
        if value is not None:
            group = self._make(key.group_id)
            group.assignment_epoch = value.assignment_epoch
            group.assignment_timestamp_ms = value.assignment_timestamp
        elif (found := self._find(key.group_id)) is not None:
            found.assignment_epoch, found.assignment_timestamp_ms = NO_EPOCH, 0

    def _target(
        self, key: StreamsGroupTargetAssignmentMemberKey, value: StreamsGroupTargetAssignmentMemberValue | None
    ) -> None:
        if value is not None:
            self._make(key.group_id).targets[key.member_id] = target_of(value)
        elif (group := self._find(key.group_id)) is not None:
            group.targets.pop(key.member_id, None)

    def _current(
        self, key: StreamsGroupCurrentMemberAssignmentKey, value: StreamsGroupCurrentMemberAssignmentValue | None
    ) -> None:
        if value is not None:
            group = self._make(key.group_id)
            group.put_member(with_current(group.members.get(key.member_id) or Member(key.member_id), value))
        elif (found := self._find(key.group_id)) is not None and key.member_id in found.members:
            left = found.members[key.member_id]._replace(
                epoch=NO_EPOCH,
                previous_epoch=NO_EPOCH,
                state=MemberState.STABLE,
                assigned=NONE_ASSIGNED,
                revoking=NONE_ASSIGNED,
            )
            found.put_member(left)

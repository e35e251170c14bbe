"""Applies the records of consumer groups: those that were just written, and those that a log has.

Knows nothing of logs. Compaction may have removed any record but the last one of a key. So a record of a group or a
member that does not exist creates it, and a tombstone of one that does not exist has no effect.
"""

from collections.abc import Callable

from barnabas.groups.consumer import records
from barnabas.groups.consumer.group import FIRST_EPOCH, NEVER, ConsumerGroup
from barnabas.groups.consumer.member import NOTHING, Member
from barnabas.groups.consumer.member_states import STABLE
from barnabas.groups.consumer.messages import LEAVING
from barnabas.groups.consumer.resolved_regex import ResolvedRegex
from barnabas.groups.group import Group
from barnabas.groups.ledger import Applier
from barnabas.wire.coordinator_records import CoordinatorKey
from barnabas.wire.messages.group_records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)


class Replay:
    """Applies records to ``groups``; ``new_group`` returns an empty one."""

    def __init__(self, groups: dict[str, Group], new_group: Callable[[str], ConsumerGroup]) -> None:
        self._groups = groups
        self._new_group = new_group
        self.deleted: dict[str, int] | None = {}
        """The groups that were deleted while the log was loaded, and their epochs; None once it is loaded."""
        self.appliers: dict[type[CoordinatorKey], Applier] = {
            ConsumerGroupMetadataKey: self._group,
            ConsumerGroupPartitionMetadataKey: self._partition_metadata,
            ConsumerGroupMemberMetadataKey: self._member,
            ConsumerGroupTargetAssignmentMetadataKey: self._target_epoch,
            ConsumerGroupTargetAssignmentMemberKey: self._target,
            ConsumerGroupCurrentMemberAssignmentKey: self._assignment,
            ConsumerGroupRegularExpressionKey: self._regex,
        }

    def _find(self, group_id: str) -> ConsumerGroup | None:
        group = self._groups.get(group_id)
        return group if isinstance(group, ConsumerGroup) else None

    def _obtain(self, group_id: str) -> ConsumerGroup:
        """Returns the group. It replaces a group of another type that has nothing but offsets."""
        group = self._groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            return group
        if group is not None:
            group.close()
        made = self._groups[group_id] = self._new_group(group_id)
        return made

    def _group(self, key: ConsumerGroupMetadataKey, value: ConsumerGroupMetadataValue | None) -> None:
        if value is not None:
            group = self._obtain(key.group_id)
            group.epoch, group.metadata_hash = value.epoch, value.metadata_hash
        elif (gone := self._find(key.group_id)) is not None:
            del self._groups[key.group_id]
            if self.deleted is not None:
                self.deleted[key.group_id] = gone.epoch
            gone.close()

    def _partition_metadata(
        self, key: ConsumerGroupPartitionMetadataKey, value: ConsumerGroupPartitionMetadataValue | None
    ) -> None:
        group = self._obtain(key.group_id) if value is not None else self._find(key.group_id)
        if group is not None:
            group.keeps_partition_metadata = value is not None

    def _member(self, key: ConsumerGroupMemberMetadataKey, value: ConsumerGroupMemberMetadataValue | None) -> None:
        if value is not None:
            group = self._obtain(key.group_id)
            group.put(records.described(group.members.get(key.member_id) or Member(key.member_id), value))
        elif (former := self._find(key.group_id)) is not None:
            former.remove(key.member_id)

    def _target_epoch(
        self, key: ConsumerGroupTargetAssignmentMetadataKey, value: ConsumerGroupTargetAssignmentMetadataValue | None
    ) -> None:
        if value is not None:
            group = self._obtain(key.group_id)
            group.assignment_epoch, group.assignment_time_ms = value.assignment_epoch, value.assignment_timestamp
        elif (former := self._find(key.group_id)) is not None:
            former.assignment_epoch, former.assignment_time_ms = FIRST_EPOCH, NEVER

    def _target(
        self, key: ConsumerGroupTargetAssignmentMemberKey, value: ConsumerGroupTargetAssignmentMemberValue | None
    ) -> None:
        if value is not None:
            self._obtain(key.group_id).target[key.member_id] = records.target_of(value)
        elif (former := self._find(key.group_id)) is not None:
            former.target.pop(key.member_id, None)

    def _assignment(
        self, key: ConsumerGroupCurrentMemberAssignmentKey, value: ConsumerGroupCurrentMemberAssignmentValue | None
    ) -> None:
        if value is not None:
            group = self._obtain(key.group_id)
            group.put(records.assigned(group.members.get(key.member_id) or Member(key.member_id), value))
            return
        former = self._find(key.group_id)
        member = former.members.get(key.member_id) if former is not None else None
        if former is not None and member is not None:
            # The member's other tombstones follow.
            former.put(
                member._replace(state=STABLE, epoch=LEAVING, previous_epoch=LEAVING, assigned=NOTHING, revoking=NOTHING)
            )

    def _regex(self, key: ConsumerGroupRegularExpressionKey, value: ConsumerGroupRegularExpressionValue | None) -> None:
        if value is not None:
            resolved = ResolvedRegex(frozenset(value.topics), value.version, value.timestamp)
            self._obtain(key.group_id).resolve(key.regular_expression, resolved)
        elif (former := self._find(key.group_id)) is not None:
            former.resolve(key.regular_expression, None)

"""Applies the records of share groups: those that were just written, and those that a log has.

Knows nothing of why they are written. After compaction the records of a group may come in any order, and each may be
the first. Follows Apache Kafka's ``GroupMetadataManager.replay``.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from barnabas.groups.group import Group
from barnabas.groups.share.share_group import ALWAYS_DUE, FIRST_EPOCH, ShareGroup
from barnabas.groups.share.share_member import ShareMember
from barnabas.groups.share.state_metadata import StateMetadata, Topic
from barnabas.wire.coordinator_records import CoordinatorKey
from barnabas.wire.messages.group_records import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataKey,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupStatePartitionMetadataValue,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMemberValue,
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupTargetAssignmentMetadataValue,
)


class Replay:
    """Applies records to ``groups``."""

    def __init__(self, groups: dict[str, Group]) -> None:
        self._groups = groups
        self.appliers: Mapping[type[CoordinatorKey], Callable[[Any, Any], None]] = {
            ShareGroupMemberMetadataKey: self._member,
            ShareGroupMetadataKey: self._epoch,
            ShareGroupTargetAssignmentMetadataKey: self._target_epoch,
            ShareGroupTargetAssignmentMemberKey: self._target,
            ShareGroupCurrentMemberAssignmentKey: self._assigned,
            ShareGroupStatePartitionMetadataKey: self._state,
        }

    def _group(self, group_id: str, value: object | None) -> ShareGroup | None:
        """Returns the group of a record. Creates it unless the record is a tombstone."""
        group = self._groups.get(group_id)
        if isinstance(group, ShareGroup) or value is None:
            return group if isinstance(group, ShareGroup) else None
        if group is not None:
            group.close()
        made = self._groups[group_id] = ShareGroup(group_id)
        return made

    def _member(self, key: ShareGroupMemberMetadataKey, value: ShareGroupMemberMetadataValue | None) -> None:
        group = self._group(key.group_id, value)
        if group is None:
            return
        if value is None:
            group.members.pop(key.member_id, None)
            session = group.sessions.pop(key.member_id, None)
            if session is not None:
                session.cancel()
            return
        member = group.members.get(key.member_id) or ShareMember(key.member_id)
        group.members[key.member_id] = member._replace(
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            subscribed_topic_names=tuple(value.subscribed_topic_names),
        )

    def _epoch(self, key: ShareGroupMetadataKey, value: ShareGroupMetadataValue | None) -> None:
        group = self._group(key.group_id, value)
        if group is None:
            return
        if value is None:
            del self._groups[key.group_id]
            group.close()
        else:
            group.epoch, group.metadata_hash = value.epoch, value.metadata_hash

    def _target_epoch(
        self, key: ShareGroupTargetAssignmentMetadataKey, value: ShareGroupTargetAssignmentMetadataValue | None
    ) -> None:
        group = self._group(key.group_id, value)
        if group is not None:
            group.assignment_epoch = FIRST_EPOCH if value is None else value.assignment_epoch
            group.assigned_at_ms = ALWAYS_DUE if value is None else value.assignment_timestamp

    def _target(
        self, key: ShareGroupTargetAssignmentMemberKey, value: ShareGroupTargetAssignmentMemberValue | None
    ) -> None:
        group = self._group(key.group_id, value)
        if group is None:
            return
        if value is None:
            group.target.pop(key.member_id, None)
        else:
            group.target[key.member_id] = _partitions(value.topic_partitions)

    def _assigned(
        self, key: ShareGroupCurrentMemberAssignmentKey, value: ShareGroupCurrentMemberAssignmentValue | None
    ) -> None:
        group = self._group(key.group_id, value)
        if group is None:
            return
        member = group.members.get(key.member_id)
        if value is not None:
            group.members[key.member_id] = (member or ShareMember(key.member_id))._replace(
                epoch=value.member_epoch,
                previous_epoch=value.previous_member_epoch,
                assigned=_partitions(value.assigned_partitions),
            )
        elif member is not None:
            group.members[key.member_id] = member._replace(epoch=0, previous_epoch=0, assigned={})

    def _state(
        self, key: ShareGroupStatePartitionMetadataKey, value: ShareGroupStatePartitionMetadataValue | None
    ) -> None:
        group = self._group(key.group_id, value)
        if group is None:
            return
        if value is None:
            group.state = StateMetadata()
            return
        group.state = StateMetadata(
            _topics(value.initializing_topics),
            _topics(value.initialized_topics),
            {bytes(each.topic_id): each.topic_name for each in value.deleting_topics},
        )


def _partitions(topics: Iterable[Any]) -> dict[bytes, tuple[int, ...]]:
    return {bytes(each.topic_id): tuple(sorted(each.partitions)) for each in topics}


def _topics(topics: Iterable[ShareGroupStatePartitionMetadataValue.TopicPartitionsInfo]) -> dict[bytes, Topic]:
    return {bytes(each.topic_id): Topic(each.topic_name, frozenset(each.partitions)) for each in topics}

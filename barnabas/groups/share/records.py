"""The records of share groups in ``__consumer_offsets``.

Knows nothing of when they are written. They equal those of Apache Kafka's ``GroupCoordinatorRecordHelpers``, with
topics in the order of its hash tables.
"""

from collections.abc import Iterable

from barnabas.groups.java_hash import table_order, uuid_code
from barnabas.groups.ledger import Pair
from barnabas.groups.share.messages import Partitions
from barnabas.groups.share.share_member import ShareMember
from barnabas.groups.share.state_metadata import StateMetadata, Topic
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

STABLE = 0
"""The only state of a member of a share group (``MemberState``)."""


def uuid_order(ids: Iterable[bytes]) -> list[bytes]:
    """Returns topic ids in the order of a ``HashMap`` of Kafka's ``Uuid`` into which they were put in this order."""
    return table_order({each: uuid_code(each) for each in ids})


def member_record(group_id: str, member: ShareMember) -> Pair:
    """Returns the record that describes the member."""
    return (
        ShareGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id),
        ShareGroupMemberMetadataValue(
            rack_id=member.rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topic_names=list(member.subscribed_topic_names),
        ),
    )


def epoch_record(group_id: str, epoch: int, metadata_hash: int) -> Pair:
    """Returns the record of the group epoch, and of the hash of its topics."""
    return ShareGroupMetadataKey(group_id=group_id), ShareGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)


def target_record(group_id: str, member_id: str, target: Partitions) -> Pair:
    """Returns the record of a member's target."""
    value = ShareGroupTargetAssignmentMemberValue
    return (
        ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id),
        value(
            topic_partitions=[
                value.TopicPartition(topic_id=each, partitions=list(target[each])) for each in uuid_order(target)
            ]
        ),
    )


def target_epoch_record(group_id: str, assignment_epoch: int, now_ms: int) -> Pair:
    """Returns the record of the epoch and the time of the target assignment."""
    return (
        ShareGroupTargetAssignmentMetadataKey(group_id=group_id),
        ShareGroupTargetAssignmentMetadataValue(assignment_epoch=assignment_epoch, assignment_timestamp=now_ms),
    )


def assigned_record(group_id: str, member: ShareMember) -> Pair:
    """Returns the record of a member's epoch and assignment."""
    value = ShareGroupCurrentMemberAssignmentValue
    return (
        ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id),
        value(
            member_epoch=member.epoch,
            previous_member_epoch=member.previous_epoch,
            state=STABLE,
            assigned_partitions=[
                value.TopicPartitions(topic_id=each, partitions=list(member.assigned[each]))
                for each in uuid_order(member.assigned)
            ],
        ),
    )


def state_record(group_id: str, state: StateMetadata) -> Pair:
    """Returns the record of which share partitions have state."""
    value = ShareGroupStatePartitionMetadataValue

    def infos(topics: dict[bytes, Topic]) -> list[ShareGroupStatePartitionMetadataValue.TopicPartitionsInfo]:
        return [
            value.TopicPartitionsInfo(
                topic_id=each, topic_name=topics[each].name, partitions=sorted(topics[each].partitions)
            )
            for each in uuid_order(topics)
        ]

    return (
        ShareGroupStatePartitionMetadataKey(group_id=group_id),
        value(
            initializing_topics=infos(dict(state.initializing)),
            initialized_topics=infos(dict(state.initialized)),
            deleting_topics=[
                value.TopicInfo(topic_id=each, topic_name=state.deleting[each]) for each in uuid_order(state.deleting)
            ],
        ),
    )


def member_tombstones(group_id: str, member_id: str) -> list[Pair]:
    """Returns the tombstones of a member."""
    return [
        (ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None),
        (ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None),
        (ShareGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None),
    ]


def group_tombstones(group_id: str) -> list[Pair]:
    """Returns the tombstones of a group without members."""
    return [
        (ShareGroupTargetAssignmentMetadataKey(group_id=group_id), None),
        (ShareGroupStatePartitionMetadataKey(group_id=group_id), None),
        (ShareGroupMetadataKey(group_id=group_id), None),
    ]

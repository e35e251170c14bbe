"""The records of consumer groups in ``__consumer_offsets``.

Knows nothing of when they are written. They equal the ones of Apache Kafka's ``GroupCoordinatorRecordHelpers``, to the
byte where those do not depend on the order of a hash table.
"""

from collections.abc import Iterable, Mapping, Sequence

from barnabas.groups.consumer.member import ClassicProtocols, Epochs, Member, Target
from barnabas.groups.consumer.member_states import MemberState
from barnabas.groups.consumer.resolved_regex import ResolvedRegex
from barnabas.groups.java_hash import table_order, uuid_code
from barnabas.groups.ledger import Pair
from barnabas.wire.messages.group_records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    GroupMetadataKey,
)

Classic = ConsumerGroupMemberMetadataValue.ClassicMemberMetadata
Has = ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions
ToHave = ConsumerGroupTargetAssignmentMemberValue.TopicPartition

# ------------------------------------------------------------------- groups


def epoch_record(group_id: str, epoch: int, metadata_hash: int) -> Pair:
    key = ConsumerGroupMetadataKey(group_id=group_id)
    return key, ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)


def partition_metadata_tombstone(group_id: str) -> Pair:
    """Returns the tombstone of what brokers before 4.1 wrote of the topics. Since then there is a hash (KIP-1101)."""
    return ConsumerGroupPartitionMetadataKey(group_id=group_id), None


def classic_group_tombstone(group_id: str) -> Pair:
    """Returns the tombstone of an empty classic group that a consumer group replaces."""
    return GroupMetadataKey(group=group_id), None


def tombstones_of_group(
    group_id: str, members: Iterable[str], targets: Iterable[str], regexes: Iterable[str]
) -> list[Pair]:
    """Returns the tombstones of a whole group."""
    members = list(members)
    return [
        *((_has_key(group_id, member_id), None) for member_id in members),
        *((_target_key(group_id, member_id), None) for member_id in targets),
        (ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), None),
        *((_member_key(group_id, member_id), None) for member_id in members),
        *(regex_record(group_id, regex, None) for regex in regexes),
        partition_metadata_tombstone(group_id),
        (ConsumerGroupMetadataKey(group_id=group_id), None),
    ]


# ------------------------------------------------------------------ members


def member_record(group_id: str, member: Member) -> Pair:
    """Returns the record that describes the member."""
    classic = member.classic
    return _member_key(group_id, member.member_id), ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topic_names),
        subscribed_topic_regex=member.topic_regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.server_assignor,
        classic_member_metadata=None
        if classic is None
        else Classic(
            session_timeout_ms=classic.session_timeout_ms,
            supported_protocols=[
                Classic.ClassicProtocol(name=name, metadata=metadata) for name, metadata in classic.protocols
            ],
        ),
    )


def described(member: Member, value: ConsumerGroupMemberMetadataValue) -> Member:
    """Returns the member with the description in the record."""
    classic = value.classic_member_metadata
    return member._replace(
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        topic_names=frozenset(value.subscribed_topic_names),
        topic_regex=value.subscribed_topic_regex,
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        server_assignor=value.server_assignor,
        classic=None
        if classic is None
        else ClassicProtocols(
            classic.session_timeout_ms,
            tuple((each.name, bytes(each.metadata)) for each in classic.supported_protocols),
        ),
    )


def assignment_record(group_id: str, member: Member) -> Pair:
    """Returns the record of the member's epoch and partitions."""
    return _has_key(group_id, member.member_id), ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=int(member.state),
        assigned_partitions=_has(member.assigned),
        partitions_pending_revocation=_has(member.revoking),
    )


def assigned(member: Member, value: ConsumerGroupCurrentMemberAssignmentValue) -> Member:
    """Returns the member with the epoch and partitions in the record."""
    return member._replace(
        state=MemberState.of(value.state),
        epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        assigned=_epochs(value.assigned_partitions, value.member_epoch),
        revoking=_epochs(value.partitions_pending_revocation, value.member_epoch),
    )


def tombstones_of_member(group_id: str, member_id: str) -> list[Pair]:
    """Returns the tombstones of a member, in the order that Kafka's appliers need."""
    return [
        (_has_key(group_id, member_id), None),
        (_target_key(group_id, member_id), None),
        (_member_key(group_id, member_id), None),
    ]


# ------------------------------------------------------------------ targets


def target_record(group_id: str, member_id: str, target: Target) -> Pair:
    return _target_key(group_id, member_id), ConsumerGroupTargetAssignmentMemberValue(
        topic_partitions=[
            ToHave(topic_id=topic_id, partitions=sorted(target[topic_id])) for topic_id in in_order(target)
        ]
    )


def target_of(value: ConsumerGroupTargetAssignmentMemberValue) -> dict[bytes, frozenset[int]]:
    return {each.topic_id: frozenset(each.partitions) for each in value.topic_partitions}


def target_epoch_record(group_id: str, epoch: int, time_ms: int) -> Pair:
    """Returns the last record of a target assignment."""
    key = ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id)
    return key, ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=time_ms)


# ----------------------------------------------------------------- patterns


def regex_record(group_id: str, regex: str, resolved: ResolvedRegex | None) -> Pair:
    """Returns the record of what a regular expression matches; a tombstone if no member subscribes by it."""
    key = ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex)
    if resolved is None:
        return key, None
    return key, ConsumerGroupRegularExpressionValue(
        topics=sorted(resolved.topics), version=resolved.image_offset, timestamp=resolved.time_ms
    )


# -------------------------------------------------------------------- parts


def in_order(topic_ids: Iterable[bytes]) -> Sequence[bytes]:
    """Returns topic ids in the order of a HashMap of Kafka's ``Uuid``."""
    ids = list(topic_ids)
    return ids if len(ids) < 2 else table_order({topic_id: uuid_code(topic_id) for topic_id in ids})


def _has(partitions: Epochs) -> list[Has]:
    return [
        Has(
            topic_id=topic_id,
            partitions=(indexes := sorted(partitions[topic_id])),
            assignment_epochs=[partitions[topic_id][index] for index in indexes],
        )
        for topic_id in in_order(partitions)
    ]


def _epochs(partitions: Sequence[Has], otherwise: int) -> dict[bytes, Mapping[int, int]]:
    """Returns partitions with their epochs. Brokers before 4.2 wrote no epochs: then ``otherwise`` is that of each."""
    return {
        each.topic_id: dict(zip(each.partitions, each.assignment_epochs, strict=True))
        if each.assignment_epochs and len(each.assignment_epochs) == len(each.partitions)
        else dict.fromkeys(each.partitions, otherwise)
        for each in partitions
    }


def _member_key(group_id: str, member_id: str) -> ConsumerGroupMemberMetadataKey:
    return ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id)


def _has_key(group_id: str, member_id: str) -> ConsumerGroupCurrentMemberAssignmentKey:
    return ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id)


def _target_key(group_id: str, member_id: str) -> ConsumerGroupTargetAssignmentMemberKey:
    return ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)

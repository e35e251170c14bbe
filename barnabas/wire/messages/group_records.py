"""The records of ``__consumer_offsets``: committed offsets, and groups of all types.

OffsetCommitValue: v1 expire_timestamp, in v1 only · v3 leader_epoch (KIP-320) · v4 flexible, topic_id.
GroupMetadataValue: v1 rebalance_timeout · v2 current_state_timestamp · v3 group_instance_id (KIP-345) · v4 flexible.
Types 3 to 8 are the consumer protocol's (KIP-848), 10 to 15 share groups' (KIP-932), 17 to 23 streams groups'
(KIP-1071). A null value is a tombstone.
"""

from barnabas.wire.coordinator_records import (
    CoordinatorKey,
    CoordinatorValue,
    decode_value,
    encode_key,
    encode_value,
    read_key,
)
from barnabas.wire.schema import Struct, field
from barnabas.wire.types import ZERO_UUID, Buffer, int8, int16, int32, int64, string, uint16, uuid

__all__ = ["CoordinatorKey", "CoordinatorValue", "decode_key", "decode_value", "encode_key", "encode_value"]


class GroupKey(CoordinatorKey):
    """The base class of the keys of this topic."""


def decode_key(data: Buffer) -> CoordinatorKey | None:
    """Decodes a key; returns None for an unknown type. :raises MalformedMessage: it cannot be decoded

    >>> decode_key(bytes.fromhex("0002000167"))
    GroupMetadataKey(group='g')
    """
    return read_key(GroupKey, data)


class LegacyOffsetCommitKey(GroupKey, record_type=0):
    group: string
    topic: string
    partition: int32


class LegacyOffsetCommitValue(CoordinatorValue, key=LegacyOffsetCommitKey, versions="0", flexible="none"):
    offset: int64
    metadata: string
    commit_timestamp: int64


class OffsetCommitKey(GroupKey, record_type=1):
    group: string
    topic: string
    partition: int32


class OffsetCommitValue(CoordinatorValue, key=OffsetCommitKey, versions="0-4", flexible="4+"):
    offset: int64
    leader_epoch: int32 = field("3+", default=-1)  #: of the last record read; -1: unknown
    metadata: string
    commit_timestamp: int64
    expire_timestamp: int64 = field(
        "1", default=-1
    )  #: -1: when the group has been empty for ``offsets.retention.minutes``
    topic_id: uuid = field("4+", tag=0, default=ZERO_UUID)


class GroupMetadataKey(GroupKey, record_type=2):
    group: string


class GroupMetadataValue(CoordinatorValue, key=GroupMetadataKey, versions="0-4", flexible="4+"):
    class MemberMetadata(Struct):
        member_id: string
        group_instance_id: string | None = field("3+", default=None)
        client_id: string
        client_host: string
        rebalance_timeout: int32 = field("1+", default=-1)
        session_timeout: int32
        subscription: bytes
        assignment: bytes

    protocol_type: string  #: "consumer", "connect" …; empty for simple consumers
    generation: int32
    protocol: string | None
    leader: string | None
    current_state_timestamp: int64 = field("2+", default=-1)  #: the time of the last change of the state; -1: unknown
    members: list[MemberMetadata]


class ConsumerGroupMetadataKey(GroupKey, record_type=3):
    group_id: string


class ConsumerGroupMetadataValue(CoordinatorValue, key=ConsumerGroupMetadataKey, versions="0", flexible="0+"):
    epoch: int32
    metadata_hash: int64 = field(tag=0, default=0)


class ConsumerGroupPartitionMetadataKey(GroupKey, record_type=4):
    group_id: string


class ConsumerGroupPartitionMetadataValue(
    CoordinatorValue, key=ConsumerGroupPartitionMetadataKey, versions="0", flexible="0+"
):
    class TopicMetadata(Struct):
        class PartitionMetadata(Struct):
            partition: int32
            racks: list[string]

        topic_id: uuid
        topic_name: string
        num_partitions: int32
        partition_metadata: list[PartitionMetadata]

    topics: list[TopicMetadata]


class ConsumerGroupMemberMetadataKey(GroupKey, record_type=5):
    group_id: string
    member_id: string


class ConsumerGroupMemberMetadataValue(
    CoordinatorValue, key=ConsumerGroupMemberMetadataKey, versions="0", flexible="0+"
):
    class ClassicMemberMetadata(Struct):
        class ClassicProtocol(Struct):
            name: string
            metadata: bytes

        session_timeout_ms: int32 = 0
        supported_protocols: list[ClassicProtocol] = field(default=())

    instance_id: string | None
    rack_id: string | None
    client_id: string
    client_host: string
    subscribed_topic_names: list[string]
    subscribed_topic_regex: string | None
    rebalance_timeout_ms: int32 = -1
    server_assignor: string | None
    classic_member_metadata: ClassicMemberMetadata | None = field(tag=0, default_factory=ClassicMemberMetadata)


class ConsumerGroupTargetAssignmentMetadataKey(GroupKey, record_type=6):
    group_id: string


class ConsumerGroupTargetAssignmentMetadataValue(
    CoordinatorValue, key=ConsumerGroupTargetAssignmentMetadataKey, versions="0", flexible="0+"
):
    assignment_epoch: int32
    assignment_timestamp: int64 = field(tag=0, default=0)


class ConsumerGroupTargetAssignmentMemberKey(GroupKey, record_type=7):
    group_id: string
    member_id: string


class ConsumerGroupTargetAssignmentMemberValue(
    CoordinatorValue, key=ConsumerGroupTargetAssignmentMemberKey, versions="0", flexible="0+"
):
    class TopicPartition(Struct):
        topic_id: uuid
        partitions: list[int32]

    topic_partitions: list[TopicPartition]


class ConsumerGroupCurrentMemberAssignmentKey(GroupKey, record_type=8):
    group_id: string
    member_id: string


class ConsumerGroupCurrentMemberAssignmentValue(
    CoordinatorValue, key=ConsumerGroupCurrentMemberAssignmentKey, versions="0", flexible="0+"
):
    class TopicPartitions(Struct):
        topic_id: uuid
        partitions: list[int32]
        assignment_epochs: list[int32] | None = field(tag=0, default=())

    member_epoch: int32
    previous_member_epoch: int32
    state: int8
    assigned_partitions: list[TopicPartitions]
    partitions_pending_revocation: list[TopicPartitions]


class ShareGroupMemberMetadataKey(GroupKey, record_type=10):
    group_id: string
    member_id: string


class ShareGroupMemberMetadataValue(CoordinatorValue, key=ShareGroupMemberMetadataKey, versions="0", flexible="0+"):
    rack_id: string | None
    client_id: string
    client_host: string
    subscribed_topic_names: list[string]


class ShareGroupMetadataKey(GroupKey, record_type=11):
    group_id: string


class ShareGroupMetadataValue(CoordinatorValue, key=ShareGroupMetadataKey, versions="0", flexible="0+"):
    epoch: int32
    metadata_hash: int64


class ShareGroupTargetAssignmentMetadataKey(GroupKey, record_type=12):
    group_id: string


class ShareGroupTargetAssignmentMetadataValue(
    CoordinatorValue, key=ShareGroupTargetAssignmentMetadataKey, versions="0", flexible="0+"
):
    assignment_epoch: int32
    assignment_timestamp: int64 = field(tag=0, default=0)


class ShareGroupTargetAssignmentMemberKey(GroupKey, record_type=13):
    group_id: string
    member_id: string


class ShareGroupTargetAssignmentMemberValue(
    CoordinatorValue, key=ShareGroupTargetAssignmentMemberKey, versions="0", flexible="0+"
):
    class TopicPartition(Struct):
        topic_id: uuid
        partitions: list[int32]

    topic_partitions: list[TopicPartition]


class ShareGroupCurrentMemberAssignmentKey(GroupKey, record_type=14):
    group_id: string
    member_id: string


class ShareGroupCurrentMemberAssignmentValue(
    CoordinatorValue, key=ShareGroupCurrentMemberAssignmentKey, versions="0", flexible="0+"
):
    class TopicPartitions(Struct):
        topic_id: uuid
        partitions: list[int32]

    member_epoch: int32
    previous_member_epoch: int32
    state: int8
    assigned_partitions: list[TopicPartitions]


class ShareGroupStatePartitionMetadataKey(GroupKey, record_type=15):
    group_id: string


class ShareGroupStatePartitionMetadataValue(
    CoordinatorValue, key=ShareGroupStatePartitionMetadataKey, versions="0", flexible="0+"
):
    class TopicPartitionsInfo(Struct):
        topic_id: uuid
        topic_name: string
        partitions: list[int32]

    class TopicInfo(Struct):
        topic_id: uuid
        topic_name: string

    initializing_topics: list[TopicPartitionsInfo]
    initialized_topics: list[TopicPartitionsInfo]
    deleting_topics: list[TopicInfo]


class ConsumerGroupRegularExpressionKey(GroupKey, record_type=16):
    group_id: string
    regular_expression: string


class ConsumerGroupRegularExpressionValue(
    CoordinatorValue, key=ConsumerGroupRegularExpressionKey, versions="0", flexible="0+"
):
    topics: list[string]
    version: int64
    timestamp: int64


class StreamsGroupMetadataKey(GroupKey, record_type=17):
    group_id: string


class StreamsGroupMetadataValue(CoordinatorValue, key=StreamsGroupMetadataKey, versions="0", flexible="0+"):
    class LastAssignmentConfig(Struct):
        key: string
        value: string

    epoch: int32
    metadata_hash: int64
    validated_topology_epoch: int32 = field(tag=0, default=-1)
    last_assignment_configs: list[LastAssignmentConfig] | None = field(tag=1, default=())
    stored_description_topology_epoch: int32 = field(tag=2, default=-1)
    failed_description_topology_epoch: int32 = field(tag=3, default=-1)


class StreamsGroupMemberMetadataKey(GroupKey, record_type=19):
    group_id: string
    member_id: string


class StreamsGroupMemberMetadataValue(CoordinatorValue, key=StreamsGroupMemberMetadataKey, versions="0", flexible="0+"):
    class Endpoint(Struct):
        host: string
        port: uint16

    class KeyValue(Struct):
        key: string
        value: string

    instance_id: string | None
    rack_id: string | None
    client_id: string
    client_host: string
    rebalance_timeout_ms: int32 = -1
    topology_epoch: int32
    process_id: string
    user_endpoint: Endpoint | None = None
    client_tags: list[KeyValue]


class StreamsGroupTargetAssignmentMetadataKey(GroupKey, record_type=20):
    group_id: string


class StreamsGroupTargetAssignmentMetadataValue(
    CoordinatorValue, key=StreamsGroupTargetAssignmentMetadataKey, versions="0", flexible="0+"
):
    assignment_epoch: int32
    assignment_timestamp: int64 = field(tag=0, default=0)


class StreamsGroupTargetAssignmentMemberKey(GroupKey, record_type=21):
    group_id: string
    member_id: string


class StreamsGroupTargetAssignmentMemberValue(
    CoordinatorValue, key=StreamsGroupTargetAssignmentMemberKey, versions="0", flexible="0+"
):
    class TaskIds(Struct):
        subtopology_id: string
        partitions: list[int32]

    active_tasks: list[TaskIds]
    standby_tasks: list[TaskIds]
    warmup_tasks: list[TaskIds]


class StreamsGroupCurrentMemberAssignmentKey(GroupKey, record_type=22):
    group_id: string
    member_id: string


class StreamsGroupCurrentMemberAssignmentValue(
    CoordinatorValue, key=StreamsGroupCurrentMemberAssignmentKey, versions="0", flexible="0+"
):
    class TaskIds(Struct):
        subtopology_id: string
        partitions: list[int32]
        assignment_epochs: list[int32] | None = field(tag=0, default=())

    member_epoch: int32
    previous_member_epoch: int32
    state: int8
    active_tasks: list[TaskIds]
    standby_tasks: list[TaskIds]
    warmup_tasks: list[TaskIds]
    active_tasks_pending_revocation: list[TaskIds]
    standby_tasks_pending_revocation: list[TaskIds]
    warmup_tasks_pending_revocation: list[TaskIds]


class StreamsGroupTopologyKey(GroupKey, record_type=23):
    group_id: string


class StreamsGroupTopologyValue(CoordinatorValue, key=StreamsGroupTopologyKey, versions="0", flexible="0+"):
    class TopicConfig(Struct):
        key: string
        value: string

    class TopicInfo(Struct):
        name: string
        partitions: int32
        replication_factor: int16
        topic_configs: list["StreamsGroupTopologyValue.TopicConfig"]

    class Subtopology(Struct):
        class CopartitionGroup(Struct):
            source_topics: list[int16]
            source_topic_regex: list[int16]
            repartition_source_topics: list[int16]

        subtopology_id: string
        source_topics: list[string]
        source_topic_regex: list[string]
        state_changelog_topics: list["StreamsGroupTopologyValue.TopicInfo"]
        repartition_sink_topics: list[string]
        repartition_source_topics: list["StreamsGroupTopologyValue.TopicInfo"]
        copartition_groups: list[CopartitionGroup]

    epoch: int32
    subtopologies: list[Subtopology]

"""ListOffsets (API key 2): the first and last offsets of partitions, and the first offset of a timestamp.

Knows nothing of how a log looks up a timestamp. Rules of Apache Kafka's ``ReplicaManager.fetchOffset``; of its
``UnifiedLog.legacyFetchOffsetsBefore`` for version 0, which lists the base offsets of segments.
"""

from barnabas.api_handlers.by_topic import by_topic
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.registry import api
from barnabas.cluster.replication.partition import READ_COMMITTED, READ_LOG_END, READ_UNCOMMITTED, Partition
from barnabas.errors import (
    InvalidRequest,
    KafkaError,
    LeaderNotAvailable,
    OffsetNotAvailable,
    UnknownServerError,
    UnsupportedVersion,
)
from barnabas.log.partition_log import PartitionLog
from barnabas.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse

RequestedPartition = ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition
Topic = ListOffsetsResponse.ListOffsetsTopicResponse
Answer = Topic.ListOffsetsPartitionResponse

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6

KNOWN_SINCE = {
    LATEST: 0,
    EARLIEST: 0,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
"""The first version that knows each of the special timestamps."""

CONSUMER = -1
"""The replica id of a consumer, which sees only committed records; brokers and tools see the whole log."""

DEBUGGING = -2
"""The replica id of a tool, which may ask any replica."""

OFFSET_NOT_AVAILABLE_SINCE = 5
"""The first version that knows OFFSET_NOT_AVAILABLE (KIP-207)."""

Found = tuple[int, int, int]
"""Timestamp, offset and leader epoch."""

NOT_FOUND: Found = (-1, -1, -1)


@api(ListOffsetsRequest)
def list_offsets(request: ListOffsetsRequest, context: Context) -> ListOffsetsResponse:
    """Looks up the offset of each partition. A duplicate partition is an error, except in version 0."""
    if context.api_version == 0:
        return ListOffsetsResponse(
            topics=[
                Topic(
                    name=topic.name,
                    partitions=[starts(topic.name, requested, context) for requested in topic.partitions],
                )
                for topic in request.topics
            ]
        )
    answers: dict[tuple[str, int], Answer] = {}
    for topic in request.topics:
        for requested in topic.partitions:
            key = topic.name, requested.partition_index
            if key in answers:
                answers[key] = Answer(partition_index=requested.partition_index, error_code=InvalidRequest.code)
            else:
                answers[key] = answer(topic.name, requested, request, context)
    return ListOffsetsResponse(
        topics=[Topic(name=name, partitions=partitions) for name, partitions in by_topic(answers)]
    )


def answer(topic: str, requested: RequestedPartition, request: ListOffsetsRequest, context: Context) -> Answer:
    try:
        is_consumer = request.replica_id == CONSUMER
        if is_consumer and request.isolation_level not in (READ_UNCOMMITTED, READ_COMMITTED):
            raise UnknownServerError(f"there is no isolation level {request.isolation_level}")
        check_timestamp(requested.timestamp, context.api_version)
        partition = context.broker.partition(topic, requested.partition_index)
        if request.replica_id == DEBUGGING:
            partition.check_epoch(requested.current_leader_epoch)
        else:
            partition.check_leader(requested.current_leader_epoch)
        up_to = partition.readable_up_to(request.isolation_level if is_consumer else READ_LOG_END)
        found = find(partition, requested.timestamp, up_to)
        if is_consumer and partition.followers is not None and not partition.followers.has_high_watermark:
            check_available(partition, requested.timestamp, found, context.api_version)
        timestamp, offset, leader_epoch = found
    except KafkaError as error:
        return Answer(partition_index=requested.partition_index, error_code=error.code)
    return Answer(
        partition_index=requested.partition_index, timestamp=timestamp, offset=offset, leader_epoch=leader_epoch
    )


def check_available(partition: Partition, timestamp: int, found: Found, version: int) -> None:
    """Checks the offset after an election, while the high watermark is below the start offset of the leader epoch
    (KIP-207): the previous leader may have returned a higher offset to consumers.

    :raises OffsetNotAvailable: the offset could go backwards
    """
    if timestamp == LATEST or found != find(partition, timestamp, partition.log.log_end_offset):
        raise OffsetNotAvailable if version >= OFFSET_NOT_AVAILABLE_SINCE else LeaderNotAvailable


def check_timestamp(timestamp: int, version: int) -> None:
    """Checks that the version knows the timestamp.

    :raises UnsupportedVersion: it is negative, and not a special one of that version
    """
    if timestamp < 0 and version < KNOWN_SINCE.get(timestamp, version + 1):
        raise UnsupportedVersion(f"version {version} does not know the timestamp {timestamp}")


def find(partition: Partition, timestamp: int, up_to: int) -> Found:
    """Returns the offset for a timestamp, or for a special one, among the records below ``up_to``."""
    log = partition.log
    if timestamp == LATEST:
        return -1, up_to, partition.leader_epoch
    if timestamp in (EARLIEST, EARLIEST_LOCAL):  # there is no tiered storage: all records are local
        return -1, log.log_start_offset, log.leader_epochs.epoch_of(log.log_start_offset)
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):  # and none are uploaded
        return NOT_FOUND
    if timestamp == MAX_TIMESTAMP:
        return log.max_timestamp_offset(up_to) or NOT_FOUND
    return log.offset_for_timestamp(timestamp, up_to) or NOT_FOUND


def starts(topic: str, requested: RequestedPartition, context: Context) -> Answer:
    """Returns the result of version 0: the base offsets of the segments at a timestamp, newest first."""
    try:
        check_timestamp(requested.timestamp, 0)
        partition = context.broker.partition(topic, requested.partition_index)
        partition.check_leader()
        if requested.max_num_offsets < 0:
            raise UnknownServerError(f"{requested.max_num_offsets} offsets cannot be listed")
        offsets = starts_before(partition.log, requested.timestamp, context.time_ms)
    except KafkaError as error:
        return Answer(partition_index=requested.partition_index, error_code=error.code)
    high_watermark = partition.log.high_watermark
    if offsets and offsets[0] > high_watermark:
        offsets = [high_watermark, *(offset for offset in offsets if offset <= high_watermark)]
    return Answer(partition_index=requested.partition_index, old_style_offsets=offsets[: requested.max_num_offsets])


def starts_before(log: PartitionLog, timestamp: int, now_ms: int) -> list[int]:
    """Returns the base offsets of segments not modified after ``timestamp`` (ms) and the log end, newest first."""
    places = [(max(segment.base_offset, log.log_start_offset), segment.modified_ms()) for segment in log.segments]
    if log.segments.active.size:
        places.append((log.log_end_offset, now_ms))
    if timestamp == EARLIEST:
        return [places[0][0]]
    newest = len(places)
    if timestamp != LATEST:
        while newest and places[newest - 1][1] > timestamp:
            newest -= 1
    return [offset for offset, _ in reversed(places[:newest])]

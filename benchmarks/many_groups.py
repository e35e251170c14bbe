"""Ten thousand groups in a data directory: classic groups, consumer groups, and groups that only commit offsets.

Knows nothing of how they are loaded. Each group has three members or none, and has committed five offsets twice. Its
records are written as a coordinator writes them: one batch for each command.
"""

import uuid
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

from barnabas.config.topic import TopicConfig
from barnabas.groups.java_hash import partition_of
from barnabas.log.files import DiskFiles
from barnabas.log.log_directory import LogDirectory
from barnabas.log.partition_log import LogServices
from barnabas.log.recovery import open_log
from barnabas.records.batch import RecordBatch
from barnabas.records.builder import build_batch
from barnabas.wire.coordinator_records import CoordinatorKey, CoordinatorValue, encode_key, encode_value
from barnabas.wire.messages import group_records as written
from benchmarks.members import SUBSCRIPTION, consumer_assignment

TOPIC, PARTITIONS = "many", 6
TOPIC_ID = uuid.UUID(int=0x6D616E79).bytes
OFFSET_PARTITIONS = 50
MEMBERS, OFFSETS, COMMITS = 3, 5, 2
NOW_MS = 1_700_000_000_000

Pair = tuple[CoordinatorKey, CoordinatorValue, int]
"""Key, value, and the value's version."""


def fill(directory: Path, groups: int) -> int:
    """Writes groups to the logs of a stopped broker; returns the number of records."""
    count = 0
    logs = [
        open_log(
            LogServices(LogDirectory(DiskFiles(), "/data")),
            str(directory / f"__consumer_offsets-{index}"),
            "__consumer_offsets",
            index,
            TopicConfig(),
            clean=True,
            recovery_point=0,
            now_ms=NOW_MS,
        )
        for index in range(OFFSET_PARTITIONS)
    ]
    now_ms = NOW_MS + 400 * 24 * 3_600_000 * 100  # nothing has expired
    for number, commands in zip(range(groups), cycle((classic, consumer, simple)), strict=False):
        group_id = f"group-{number}"
        log = logs[partition_of(group_id, OFFSET_PARTITIONS)]
        for command in commands(group_id, now_ms):
            records = [(encode_key(key), encode_value(value, version), now_ms) for key, value, version in command]
            batch = build_batch(records, base_sequence=0)
            log.append_as_leader(RecordBatch.parse(batch), leader_epoch=0, now_ms=now_ms)
            count += len(records)
    for log in logs:
        log.close()
    return count


def classic(group_id: str, now_ms: int) -> Iterator[list[Pair]]:
    """Yields the records of a stable group of the classic protocol."""
    member = written.GroupMetadataValue.MemberMetadata
    members = [
        member(
            member_id=member_id(index),
            client_id="reader",
            client_host="/127.0.0.1",
            rebalance_timeout=300_000,
            session_timeout=45_000,
            subscription=SUBSCRIPTION,
            assignment=consumer_assignment(share(index)),
        )
        for index in range(MEMBERS)
    ]
    value = written.GroupMetadataValue(
        protocol_type="consumer",
        generation=7,
        protocol="range",
        leader=members[0].member_id,
        current_state_timestamp=now_ms,
        members=members,
    )
    yield [(written.GroupMetadataKey(group=group_id), value, 3)]
    yield from simple(group_id, now_ms)


def consumer(group_id: str, now_ms: int) -> Iterator[list[Pair]]:
    """Yields the records of a stable group of the consumer protocol."""
    members: list[Pair] = []
    for index in range(MEMBERS):
        key = {"group_id": group_id, "member_id": member_id(index)}
        about = written.ConsumerGroupMemberMetadataValue(
            instance_id=None,
            rack_id=None,
            client_id="reader",
            client_host="/127.0.0.1",
            subscribed_topic_names=[TOPIC],
            subscribed_topic_regex="",
            rebalance_timeout_ms=300_000,
            server_assignor=None,
            classic_member_metadata=None,
        )
        members.append((written.ConsumerGroupMemberMetadataKey(**key), about, 0))
    epoch = written.ConsumerGroupMetadataValue(epoch=MEMBERS)
    yield [*members, (written.ConsumerGroupMetadataKey(group_id=group_id), epoch, 0)]
    yield list(assigned(group_id))
    yield from simple(group_id, now_ms)


def assigned(group_id: str) -> Iterator[Pair]:
    """Yields each member's target assignment and its equal current assignment."""
    target = written.ConsumerGroupTargetAssignmentMemberValue
    current = written.ConsumerGroupCurrentMemberAssignmentValue
    for index in range(MEMBERS):
        key = {"group_id": group_id, "member_id": member_id(index)}
        assignment = target(topic_partitions=[target.TopicPartition(topic_id=TOPIC_ID, partitions=share(index))])
        yield written.ConsumerGroupTargetAssignmentMemberKey(**key), assignment, 0
        epochs = [MEMBERS] * len(share(index))
        owned = current.TopicPartitions(topic_id=TOPIC_ID, partitions=share(index), assignment_epochs=epochs)
        now = current(
            member_epoch=MEMBERS,
            previous_member_epoch=MEMBERS - 1,
            state=0,
            assigned_partitions=[owned],
            partitions_pending_revocation=[],
        )
        yield written.ConsumerGroupCurrentMemberAssignmentKey(**key), now, 0
    target_epoch = written.ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=MEMBERS)
    yield written.ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), target_epoch, 0


def simple(group_id: str, now_ms: int) -> Iterator[list[Pair]]:
    """Yields the records of repeated offset commits."""
    for commit in range(COMMITS):
        yield [
            (
                written.OffsetCommitKey(group=group_id, topic=TOPIC, partition=partition),
                written.OffsetCommitValue(
                    offset=1000 * commit, leader_epoch=0, metadata="", commit_timestamp=now_ms, topic_id=TOPIC_ID
                ),
                4,
            )
            for partition in range(OFFSETS)
        ]


def member_id(index: int) -> str:
    return f"reader-{uuid.UUID(int=index)}"


def share(index: int) -> list[int]:
    return list(range(index, PARTITIONS, MEMBERS))

"""The state of share partitions as records of ``__share_group_state``.

Knows nothing of logs and batches. A snapshot has the whole state, an update the changes since a snapshot
(``ShareCoordinatorRecordHelpers``).
"""

import base64
import functools
from collections.abc import Sequence

from barnabas.share.messages import SharePartitionKey, StateBatch
from barnabas.wire.messages.share_records import (
    ShareKey,
    ShareSnapshotKey,
    ShareSnapshotValue,
    ShareUpdateKey,
    ShareUpdateValue,
)

CACHED_IDS = 4096
"""How many topic ids are cached as text: each write of a state needs that of its topic twice."""

Pair = tuple[ShareKey, ShareSnapshotValue | ShareUpdateValue | None]
"""A decoded record. A snapshot key without a value is a tombstone."""


def coordinator_key(key: SharePartitionKey) -> str:
    """Returns the key by which FindCoordinator finds the share partition. Its hash chooses the partition of the topic.

    >>> coordinator_key(SharePartitionKey("g", bytes(15) + b"a", 3))
    'g:AAAAAAAAAAAAAAAAAAAAYQ:3'
    """
    return f"{key.group_id}:{_text_of(key.topic_id)}:{key.partition}"


@functools.lru_cache(maxsize=CACHED_IDS)
def _text_of(topic_id: bytes) -> str:
    return base64.urlsafe_b64encode(topic_id).decode().rstrip("=")


def snapshot(
    key: SharePartitionKey,
    *,
    snapshot_epoch: int,
    state_epoch: int,
    leader_epoch: int,
    start_offset: int,
    delivery_complete_count: int,
    batches: Sequence[StateBatch],
    created_ms: int,
    written_ms: int,
) -> Pair:
    """Returns a snapshot, with the whole state.

    :param created_ms: earlier than ``written_ms`` if the snapshot repeats an unchanged state
    """
    value = ShareSnapshotValue(
        snapshot_epoch=snapshot_epoch,
        state_epoch=state_epoch,
        leader_epoch=leader_epoch,
        start_offset=start_offset,
        delivery_complete_count=delivery_complete_count,
        create_timestamp=created_ms,
        write_timestamp=written_ms,
        state_batches=[
            ShareSnapshotValue.StateBatch(
                first_offset=first, last_offset=last, delivery_state=state, delivery_count=count
            )
            for first, last, state, count in batches
        ],
    )
    return ShareSnapshotKey(group_id=key.group_id, topic_id=key.topic_id, partition=key.partition), value


def update(
    key: SharePartitionKey,
    *,
    snapshot_epoch: int,
    leader_epoch: int,
    start_offset: int,
    delivery_complete_count: int,
    batches: Sequence[StateBatch],
) -> Pair:
    """Returns an update, with the changes. A start offset of -1 does not change it."""
    value = ShareUpdateValue(
        snapshot_epoch=snapshot_epoch,
        leader_epoch=leader_epoch,
        start_offset=start_offset,
        delivery_complete_count=delivery_complete_count,
        state_batches=[
            ShareUpdateValue.StateBatch(
                first_offset=first, last_offset=last, delivery_state=state, delivery_count=count
            )
            for first, last, state, count in batches
        ],
    )
    return ShareUpdateKey(group_id=key.group_id, topic_id=key.topic_id, partition=key.partition), value


def tombstone(key: SharePartitionKey) -> Pair:
    """Returns the record that deletes the state."""
    return ShareSnapshotKey(group_id=key.group_id, topic_id=key.topic_id, partition=key.partition), None


def batches_of(value: ShareSnapshotValue | ShareUpdateValue) -> list[StateBatch]:
    """Returns the batches of a record's value."""
    return [
        StateBatch(each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
        for each in value.state_batches
    ]

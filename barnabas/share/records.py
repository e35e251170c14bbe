"""What is kept of a share partition as records of ``__share_group_state``, there and back.

Knows nothing of logs or batches. A snapshot says everything; an update what a write has brought since, and to which
snapshot that belongs (``ShareCoordinatorRecordHelpers``).
"""

import base64
from collections.abc import Sequence

from barnabas.share.messages import SharePartitionKey, StateBatch
from barnabas.wire.messages.share_records import (
    ShareKey,
    ShareSnapshotKey,
    ShareSnapshotValue,
    ShareUpdateKey,
    ShareUpdateValue,
)

Pair = tuple[ShareKey, ShareSnapshotValue | ShareUpdateValue | None]
"""A record, decoded; a snapshot without a value takes the share partition away."""


def coordinator_key(key: SharePartitionKey) -> str:
    """The share partition as FindCoordinator names it; its hash decides which partition of the topic keeps it.

    >>> coordinator_key(SharePartitionKey("g", bytes(15) + b"a", 3))
    'g:AAAAAAAAAAAAAAAAAAAAYQ:3'
    """
    topic_id = base64.urlsafe_b64encode(key.topic_id).decode().rstrip("=")
    return f"{key.group_id}:{topic_id}:{key.partition}"


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
    """All that is known. ``created_ms`` is older than ``written_ms`` where nothing was new to be told."""
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
    """What is new. A start offset of -1 leaves it where it is."""
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
    """There is nothing to be known any more."""
    return ShareSnapshotKey(group_id=key.group_id, topic_id=key.topic_id, partition=key.partition), None


def batches_of(value: ShareSnapshotValue | ShareUpdateValue) -> list[StateBatch]:
    """The batches that a record tells of."""
    return [
        StateBatch(each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
        for each in value.state_batches
    ]

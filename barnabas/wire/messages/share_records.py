"""The records of ``__share_group_state``: the states of share partitions (KIP-932).

A snapshot is the whole state of a share partition, an update a change to it. A snapshot with a null value is a
tombstone.
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
from barnabas.wire.types import Buffer, int8, int16, int32, int64, string, uuid

__all__ = ["CoordinatorKey", "CoordinatorValue", "decode_key", "decode_value", "encode_key", "encode_value"]


class ShareKey(CoordinatorKey):
    """The base class of the keys of this topic."""


def decode_key(data: Buffer) -> CoordinatorKey | None:
    """Decodes a key; returns None for an unknown type. :raises MalformedMessage: it cannot be decoded"""
    return read_key(ShareKey, data)


class ShareSnapshotKey(ShareKey, record_type=0):
    group_id: string
    topic_id: uuid
    partition: int32


class ShareSnapshotValue(CoordinatorValue, key=ShareSnapshotKey, versions="0", flexible="0+"):
    class StateBatch(Struct):
        first_offset: int64
        last_offset: int64
        delivery_state: int8
        delivery_count: int16

    snapshot_epoch: int32
    state_epoch: int32
    leader_epoch: int32
    start_offset: int64
    delivery_complete_count: int32 = field(tag=0, default=-1)
    create_timestamp: int64
    write_timestamp: int64
    state_batches: list[StateBatch]


class ShareUpdateKey(ShareKey, record_type=1):
    group_id: string
    topic_id: uuid
    partition: int32


class ShareUpdateValue(CoordinatorValue, key=ShareUpdateKey, versions="0", flexible="0+"):
    class StateBatch(Struct):
        first_offset: int64
        last_offset: int64
        delivery_state: int8
        delivery_count: int16

    snapshot_epoch: int32
    leader_epoch: int32
    start_offset: int64
    delivery_complete_count: int32 = field(tag=0, default=-1)
    state_batches: list[StateBatch]

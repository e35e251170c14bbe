"""The records of ``__transaction_state``: the states of transactional ids.

TransactionLogValue: v1 flexible, with the ids and epochs to either side of a change (KIP-890).
A null value is a tombstone.
"""

import struct
from functools import lru_cache

from barnabas.errors import MalformedMessage
from barnabas.wire.message import Message
from barnabas.wire.schema import Struct, field
from barnabas.wire.types import Buffer, int8, int16, int32, int64, string

KEY_TYPE = 0
"""The type that precedes a key."""


class TransactionLogKey(Message, versions="0", flexible="none"):
    transactional_id: string


class TransactionLogValue(Message, versions="0-1", flexible="1+"):
    class PartitionsSchema(Struct):
        topic: string
        partition_ids: list[int32]

    producer_id: int64
    previous_producer_id: int64 = field(
        "1+", tag=0, default=-1
    )  #: of the previous transaction, if its epochs were exhausted
    next_producer_id: int64 = field("1+", tag=1, default=-1)  #: for the next transaction
    producer_epoch: int16
    next_producer_epoch: int16 = field("1+", tag=3, default=-1)
    transaction_timeout_ms: int32
    transaction_status: int8
    transaction_partitions: list[PartitionsSchema] | None
    transaction_last_update_timestamp_ms: int64
    transaction_start_timestamp_ms: int64
    client_transaction_version: int16 = field("1+", tag=2, default=0)


@lru_cache(maxsize=1024)
def encode_key(transactional_id: str) -> bytes:
    """Encodes the key of a record: its type as an int16, then the id. A transaction writes it three times or more.

    >>> encode_key("t").hex()
    '0000000174'
    """
    return struct.pack(">h", KEY_TYPE) + TransactionLogKey(transactional_id=transactional_id).encode(version=0)


def encode_value(value: TransactionLogValue, version: int) -> bytes:
    """Encodes the value of a record: its version as an int16, then its fields."""
    return struct.pack(">h", version) + value.encode(version=version)


def decode_key(data: Buffer) -> str | None:
    """Decodes a key; returns None for an unknown type. :raises MalformedMessage: it cannot be decoded"""
    if len(data) < 2:
        raise MalformedMessage("a record's key without its type")
    (key_type,) = struct.unpack_from(">h", data)
    return None if key_type != KEY_TYPE else TransactionLogKey.decode(data, version=0, at=2).transactional_id


def decode_value(data: Buffer) -> TransactionLogValue:
    """Decodes the value of a record in any version. :raises MalformedMessage: it cannot be decoded"""
    if len(data) < 2:
        raise MalformedMessage("a record's value without its version")
    (version,) = struct.unpack_from(">h", data)
    return TransactionLogValue.decode(data, version=version, at=2)

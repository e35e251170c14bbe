"""The records of internal topics: keys with their type, and values with their version.

Knows nothing of any topic. Each topic has a base class for its keys, and its own numbers of types.
"""

import struct
from typing import ClassVar

from barnabas.errors import MalformedMessage
from barnabas.wire.message import Message
from barnabas.wire.types import Buffer


class CoordinatorKey(Message):
    """The key of a record, which begins with its type. The base class of a topic's keys is declared without a type."""

    record_type: ClassVar[int]
    value: ClassVar[type["CoordinatorValue"]]
    by_type: ClassVar[dict[int, type["CoordinatorKey"]]] = {}
    """The classes of the topic's keys by type."""

    def __init_subclass__(cls, *, record_type: int | None = None) -> None:
        if record_type is None:
            super().__init_subclass__()
            cls.by_type = {}
            return
        super().__init_subclass__(versions="0", flexible="none")
        assert record_type not in cls.by_type, f"{cls.__name__} has a type that another key has"
        cls.record_type = record_type
        cls.by_type[record_type] = cls


class CoordinatorValue(Message):
    """The value of a record."""

    key: ClassVar[type[CoordinatorKey]]

    def __init_subclass__(cls, *, key: type[CoordinatorKey], versions: str, flexible: str) -> None:
        super().__init_subclass__(versions=versions, flexible=flexible)
        cls.key, key.value = key, cls


def encode_key(key: CoordinatorKey) -> bytes:
    """Encodes the key of a record: its type as an int16, then its fields."""
    return struct.pack(">h", key.record_type) + key.encode(version=0)


def encode_value(value: CoordinatorValue, version: int) -> bytes:
    """Encodes the value of a record: its version as an int16, then its fields."""
    return struct.pack(">h", version) + value.encode(version=version)


def read_key(base: type[CoordinatorKey], data: Buffer) -> CoordinatorKey | None:
    """Decodes a key of the topic with that base class of keys; returns None for an unknown type.

    :raises MalformedMessage: ``data`` cannot be decoded
    """
    if len(data) < 2:
        raise MalformedMessage("a record's key without its type")
    (record_type,) = struct.unpack_from(">h", data)
    cls = base.by_type.get(record_type)
    return None if cls is None else cls.decode(data, version=0, at=2)


def decode_value(key: CoordinatorKey, data: Buffer) -> CoordinatorValue:
    """Decodes the value of a record with that key. :raises MalformedMessage: ``data`` cannot be decoded"""
    if len(data) < 2:
        raise MalformedMessage("a record's value without its version")
    (version,) = struct.unpack_from(">h", data)
    return key.value.decode(data, version=version, at=2)

"""Records of coordinators' internal topics: a key whose type stands in front, and a value whose version does.

Knows nothing of any topic: each has a base of its own for its keys, and numbers their types by itself.
"""

import struct
from typing import ClassVar

from barnabas.errors import MalformedMessage
from barnabas.wire.message import Message
from barnabas.wire.types import Buffer


class CoordinatorKey(Message):
    """What a record is about; its type stands in front, where a version would.

    The base of a topic's keys is declared without a type.
    """

    record_type: ClassVar[int]
    value: ClassVar[type["CoordinatorValue"]]
    by_type: ClassVar[dict[int, type["CoordinatorKey"]]] = {}
    """The keys of the topic."""

    def __init_subclass__(cls, *, record_type: int | None = None) -> None:
        if record_type is None:
            super().__init_subclass__()
            cls.by_type = {}
            return
        super().__init_subclass__(versions="0", flexible="none")
        assert record_type not in cls.by_type, f"{cls.__name__} has a type that is taken"
        cls.record_type = record_type
        cls.by_type[record_type] = cls


class CoordinatorValue(Message):
    """What is known about a key."""

    key: ClassVar[type[CoordinatorKey]]

    def __init_subclass__(cls, *, key: type[CoordinatorKey], versions: str, flexible: str) -> None:
        super().__init_subclass__(versions=versions, flexible=flexible)
        cls.key, key.value = key, cls


def encode_key(key: CoordinatorKey) -> bytes:
    """The key of a record: its type as an int16, then its fields."""
    return struct.pack(">h", key.record_type) + key.encode(version=0)


def encode_value(value: CoordinatorValue, version: int) -> bytes:
    """The value of a record: its version as an int16, then its fields."""
    return struct.pack(">h", version) + value.encode(version=version)


def read_key(base: type[CoordinatorKey], data: Buffer) -> CoordinatorKey | None:
    """The key in ``data``, of the topic whose keys have that base; None for a type that nobody declared.

    :raises MalformedMessage: it is none
    """
    if len(data) < 2:
        raise MalformedMessage("a record's key without its type")
    (record_type,) = struct.unpack_from(">h", data)
    cls = base.by_type.get(record_type)
    return None if cls is None else cls.decode(data, version=0, at=2)


def decode_value(key: CoordinatorKey, data: Buffer) -> CoordinatorValue:
    """The value in ``data``, of a record with that key. Raises MalformedMessage."""
    if len(data) < 2:
        raise MalformedMessage("a record's value without its version")
    (version,) = struct.unpack_from(">h", data)
    return key.value.decode(data, version=version, at=2)

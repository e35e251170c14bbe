"""The keys of control records, which brokers write between the records of producers.

Knows nothing of the values, which ``wire/messages/control_records.py`` declares.
"""

from enum import IntEnum
from struct import Struct

from barnabas.errors import InvalidRecord

_KEY = Struct(">hh")


class ControlType(IntEnum):
    """What a control record is, by the number in its key (Apache Kafka's ``ControlRecordType``)."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


def control_key(kind: ControlType) -> bytes:
    """The key of a control record: int16 version 0, int16 type."""
    return _KEY.pack(0, kind)


def control_type(key: bytes | None) -> ControlType | None:
    """What the record under ``key`` is; None for a type of the future. Raises InvalidRecord if it is no control key."""
    if key is None or len(key) < _KEY.size:
        raise InvalidRecord(f"A control record's key has 4 bytes, not {key!r}.")
    version, number = _KEY.unpack_from(key)
    if version < 0:
        raise InvalidRecord(f"A control record's key has version {version}.")
    return ControlType(number) if number in ControlType._value2member_map_ else None

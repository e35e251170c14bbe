"""The keys of control records, which brokers write between the records of producers.

Knows nothing of the values, which ``wire/messages/control_records.py`` declares.
"""

from enum import IntEnum
from struct import Struct

from barnabas.errors import InvalidRecord

_KEY = Struct(">hh")


class ControlRecordType(IntEnum):
    """The types of control records (Apache Kafka's ``ControlRecordType``)."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


def control_key(type: ControlRecordType) -> bytes:
    """Encodes the key of a control record: version 0 and the type, each an int16.

    >>> control_key(ControlRecordType.LEADER_CHANGE).hex()
    '00000002'
    """
    return _KEY.pack(0, type)


def control_record_type(key: bytes | None) -> ControlRecordType | None:
    """Decodes the type in a control record's key; returns None for an unknown type.

    :raises InvalidRecord: it is not a key of a control record
    """
    if key is None or len(key) < _KEY.size:
        raise InvalidRecord(f"A control record's key has 4 bytes, not {key!r}.")
    version, number = _KEY.unpack_from(key)
    if version < 0:
        raise InvalidRecord(f"A control record's key has version {version}.")
    return ControlRecordType(number) if number in ControlRecordType._value2member_map_ else None

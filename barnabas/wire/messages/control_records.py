"""The records of control batches: ends of transactions, and what KRaft says in between the metadata records.

A control record's key is an int16 0 and an int16 with its type. LeaderChangeMessage: v1 directory ids (KIP-853).
"""

import struct
from enum import IntEnum

from barnabas.errors import MalformedMessage
from barnabas.wire.message import Message
from barnabas.wire.schema import Struct, field
from barnabas.wire.types import ZERO_UUID, Buffer, int16, int32, int64, string, uint16, uuid


class ControlRecordType(IntEnum):
    """The second half of a control record's key."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


def encode_control_key(type: ControlRecordType) -> bytes:
    """The key of a control record.

    >>> encode_control_key(ControlRecordType.LEADER_CHANGE).hex()
    '00000002'
    """
    return struct.pack(">hh", 0, type)


def decode_control_key(key: Buffer) -> int:
    """The type in a control record's key, one of ControlRecordType or a newer one's; raises MalformedMessage."""
    if len(key) < 4:
        raise MalformedMessage("a control record's key without its type")
    _version, type = struct.unpack_from(">hh", key)
    return int(type)


class LeaderChangeMessage(Message, versions="0-1", flexible="0+"):
    class Voter(Struct):
        voter_id: int32
        voter_directory_id: uuid = field("1+", default=ZERO_UUID)

    version: int16
    leader_id: int32
    voters: list[Voter]
    granting_voters: list[Voter]


class SnapshotHeaderRecord(Message, versions="0", flexible="0+"):
    version: int16
    last_contained_log_timestamp: int64


class SnapshotFooterRecord(Message, versions="0", flexible="0+"):
    version: int16


class KRaftVersionRecord(Message, versions="0", flexible="0+"):
    version: int16
    kraft_version: int16


class VotersRecord(Message, versions="0", flexible="0+"):
    class Voter(Struct):
        class Endpoint(Struct):
            name: string
            host: string
            port: uint16

        class KRaftVersionFeature(Struct):
            min_supported_version: int16
            max_supported_version: int16

        voter_id: int32
        voter_directory_id: uuid
        endpoints: list[Endpoint]
        kraft_version_feature: KRaftVersionFeature

    version: int16
    voters: list[Voter]


class EndTxnMarker(Message, versions="0", flexible="none"):
    coordinator_epoch: int32

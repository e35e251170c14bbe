"""The values of control records: the markers of transactions, and the control records of KRaft.

LeaderChangeMessage: v1 directory ids (KIP-853). ``records/control.py`` has the keys.
"""

from barnabas.wire.message import Message
from barnabas.wire.schema import Struct, field
from barnabas.wire.types import ZERO_UUID, int16, int32, int64, string, uint16, uuid


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

"""The records of the metadata log: changes of a cluster's metadata.

Written since Kafka 3.3 and flexible from the start. v1 of the partition records: directories (KIP-858); v2: eligible
leader replicas (KIP-966).
"""

from typing import ClassVar

from barnabas.errors import MalformedMessage
from barnabas.wire.message import Message
from barnabas.wire.schema import Struct, field
from barnabas.wire.types import Buffer, float64, int8, int16, int32, int64, read_uvarint, string, uint16, uuid, uvarint

FRAME_VERSION = 1


class MetadataRecord(Message):
    """A record of the metadata log, with its API key."""

    api_key: ClassVar[int]
    by_key: ClassVar[dict[int, type["MetadataRecord"]]] = {}

    def __init_subclass__(cls, *, api_key: int, versions: str, flexible: str) -> None:
        super().__init_subclass__(versions=versions, flexible=flexible)
        assert api_key not in MetadataRecord.by_key, f"{cls.__name__} has a key that another record has"
        cls.api_key = api_key
        MetadataRecord.by_key[api_key] = cls


def encode_metadata_record(record: MetadataRecord, version: int | None = None) -> bytes:
    """Encodes the value of a record: frame version, API key and version as varints, then the message.

    The layout is that of Apache Kafka's ``MetadataRecordSerde``.

    :param version: chosen by the cluster's metadata.version; None takes the newest

    >>> encode_metadata_record(FenceBrokerRecord(id=1, epoch=2)).hex()
    '01070000000001000000000000000200'
    """
    if version is None:
        version = record.versions.last
    return uvarint(FRAME_VERSION) + uvarint(record.api_key) + uvarint(version) + record.encode(version=version)


def decode_metadata_record(value: Buffer) -> MetadataRecord:
    """Decodes the value of a record. :raises MalformedMessage: it cannot be decoded, or record or version are unknown

    >>> decode_metadata_record(bytes.fromhex("01070000000001000000000000000200"))
    FenceBrokerRecord(id=1, epoch=2)
    """
    try:
        frame_version, at = read_uvarint(value, 0)
        api_key, at = read_uvarint(value, at)
        version, at = read_uvarint(value, at)
    except IndexError:
        raise MalformedMessage("the frame of a metadata record is truncated") from None
    if frame_version != FRAME_VERSION:
        raise MalformedMessage(f"a metadata record in a frame of version {frame_version}")
    cls = MetadataRecord.by_key.get(api_key)
    if cls is None:
        raise MalformedMessage(f"no metadata record has the key {api_key}")
    return cls.decode(value, version=version, at=at)


class RegisterBrokerRecord(MetadataRecord, api_key=0, versions="0-4", flexible="0+"):
    class BrokerEndpoint(Struct):
        name: string
        host: string
        port: uint16
        security_protocol: int16

    class BrokerFeature(Struct):
        name: string
        min_supported_version: int16
        max_supported_version: int16

    broker_id: int32
    is_migrating_zk_broker: bool = field("2+", default=False)
    incarnation_id: uuid
    broker_epoch: int64
    end_points: list[BrokerEndpoint]
    features: list[BrokerFeature]
    rack: string | None
    fenced: bool = True  #: registered, but must not lead yet
    in_controlled_shutdown: bool = field("1+", default=False)
    log_dirs: list[uuid] = field("3+", tag=0, default=())
    cordoned_log_dirs: list[uuid] | None = field("4+", tag=1, default=None)


class UnregisterBrokerRecord(MetadataRecord, api_key=1, versions="0", flexible="0+"):
    broker_id: int32
    broker_epoch: int64


class TopicRecord(MetadataRecord, api_key=2, versions="0", flexible="0+"):
    name: string
    topic_id: uuid


class PartitionRecord(MetadataRecord, api_key=3, versions="0-2", flexible="0+"):
    partition_id: int32 = -1
    topic_id: uuid
    replicas: list[int32]
    isr: list[int32]
    removing_replicas: list[int32]
    adding_replicas: list[int32]
    leader: int32 = -1
    leader_recovery_state: int8 = field(tag=0, default=0)  #: 1: elected unclean, must recover
    leader_epoch: int32 = -1
    partition_epoch: int32 = -1
    directories: list[uuid] = field("1+", default=())  #: of the replicas, in their order
    eligible_leader_replicas: list[int32] | None = field("2+", tag=1, default=None)
    last_known_elr: list[int32] | None = field("2+", tag=2, default=None)


class ConfigRecord(MetadataRecord, api_key=4, versions="0", flexible="0+"):
    resource_type: int8  #: 2: topic; 4: broker; 16: client metrics; 32: group
    resource_name: string  #: empty for all brokers
    name: string
    value: string | None  #: null: back to the default


class PartitionChangeRecord(MetadataRecord, api_key=5, versions="0-2", flexible="0+"):
    partition_id: int32 = -1
    topic_id: uuid
    isr: list[int32] | None = field(tag=0, default=None)  #: null, here and below: unchanged
    leader: int32 = field(tag=1, default=-2)  #: -1: none; -2: unchanged
    replicas: list[int32] | None = field(tag=2, default=None)
    removing_replicas: list[int32] | None = field(tag=3, default=None)
    adding_replicas: list[int32] | None = field(tag=4, default=None)
    leader_recovery_state: int8 = field(tag=5, default=-1)  #: -1: unchanged
    directories: list[uuid] | None = field("1+", tag=8, default=None)
    eligible_leader_replicas: list[int32] | None = field("2+", tag=6, default=None)
    last_known_elr: list[int32] | None = field("2+", tag=7, default=None)


class FenceBrokerRecord(MetadataRecord, api_key=7, versions="0", flexible="0+"):
    id: int32
    epoch: int64


class UnfenceBrokerRecord(MetadataRecord, api_key=8, versions="0", flexible="0+"):
    id: int32
    epoch: int64


class RemoveTopicRecord(MetadataRecord, api_key=9, versions="0", flexible="0+"):
    topic_id: uuid


class DelegationTokenRecord(MetadataRecord, api_key=10, versions="0", flexible="0+"):
    owner: string
    requester: string
    renewers: list[string]
    issue_timestamp: int64
    max_timestamp: int64
    expiration_timestamp: int64
    token_id: string


class UserScramCredentialRecord(MetadataRecord, api_key=11, versions="0", flexible="0+"):
    name: string
    mechanism: int8
    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int32


class FeatureLevelRecord(MetadataRecord, api_key=12, versions="0", flexible="0+"):
    name: string
    feature_level: int16  #: 0: no longer finalized


class ClientQuotaRecord(MetadataRecord, api_key=14, versions="0", flexible="0+"):
    class EntityData(Struct):
        entity_type: string
        entity_name: string | None

    entity: list[EntityData]
    key: string
    value: float64
    remove: bool


class ProducerIdsRecord(MetadataRecord, api_key=15, versions="0", flexible="0+"):
    broker_id: int32
    broker_epoch: int64 = -1
    next_producer_id: int64  #: the start of the next block


class BrokerRegistrationChangeRecord(MetadataRecord, api_key=17, versions="0-3", flexible="0+"):
    broker_id: int32
    broker_epoch: int64
    fenced: int8 = field(tag=0, default=0)  #: 1: fence; -1: unfence; 0: unchanged
    in_controlled_shutdown: int8 = field("1+", tag=1, default=0)  #: 1: begin a controlled shutdown; 0: unchanged
    log_dirs: list[uuid] = field("2+", tag=2, default=())
    cordoned_log_dirs: list[uuid] | None = field("3+", tag=3, default=None)


class AccessControlEntryRecord(MetadataRecord, api_key=18, versions="0", flexible="0+"):
    id: uuid
    resource_type: int8
    resource_name: string
    pattern_type: int8
    principal: string
    host: string
    operation: int8
    permission_type: int8


class RemoveAccessControlEntryRecord(MetadataRecord, api_key=19, versions="0", flexible="0+"):
    id: uuid


class NoOpRecord(MetadataRecord, api_key=20, versions="0", flexible="0+"):
    pass


class ZkMigrationStateRecord(MetadataRecord, api_key=21, versions="0", flexible="0+"):
    zk_migration_state: int8


class RemoveUserScramCredentialRecord(MetadataRecord, api_key=22, versions="0", flexible="0+"):
    name: string
    mechanism: int8


class BeginTransactionRecord(MetadataRecord, api_key=23, versions="0", flexible="0+"):
    name: string | None = field(tag=0, default=None)


class EndTransactionRecord(MetadataRecord, api_key=24, versions="0", flexible="0+"):
    pass


class AbortTransactionRecord(MetadataRecord, api_key=25, versions="0", flexible="0+"):
    reason: string | None = field(tag=0, default=None)


class RemoveDelegationTokenRecord(MetadataRecord, api_key=26, versions="0", flexible="0+"):
    token_id: string


class RegisterControllerRecord(MetadataRecord, api_key=27, versions="0", flexible="0+"):
    class ControllerEndpoint(Struct):
        name: string
        host: string
        port: uint16
        security_protocol: int16

    class ControllerFeature(Struct):
        name: string
        min_supported_version: int16
        max_supported_version: int16

    controller_id: int32
    incarnation_id: uuid
    zk_migration_ready: bool
    end_points: list[ControllerEndpoint]
    features: list[ControllerFeature]


class ClearElrRecord(MetadataRecord, api_key=28, versions="0", flexible="0+"):
    topic_name: string


class UnregisterControllerRecord(MetadataRecord, api_key=29, versions="0", flexible="0+"):
    controller_id: int32

"""Snapshots: an image written out as the records that add up to it, and read back.

Knows nothing of when one is due. A file ``<end offset>-<epoch>.checkpoint`` in the directory of the metadata log holds
a control batch with a header, batches of records and a control batch with a footer (KIP-630); ``bootstrap.checkpoint``,
which ``kafka-storage format`` leaves beside that directory, is one more of the kind.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from barnabas.cluster.features import METADATA_VERSION
from barnabas.cluster.image import BrokerImage, MetadataImage
from barnabas.cluster.record_batches import Control, control_batch, decode_batches, encode_batches
from barnabas.config.endpoints import SECURITY_PROTOCOLS, Endpoint
from barnabas.errors import CorruptMessage, KafkaError, MalformedMessage
from barnabas.wire.message import Message
from barnabas.wire.messages.control_records import (
    ControlRecordType,
    KRaftVersionRecord,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from barnabas.wire.messages.metadata_records import (
    ConfigRecord,
    FeatureLevelRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    TopicRecord,
)

SUFFIX = ".checkpoint"


class SnapshotId(NamedTuple):
    """The first offset that is not in it, and the epoch of the last one that is."""

    end_offset: int
    epoch: int

    @property
    def file_name(self) -> str:
        return f"{self.end_offset:020d}-{self.epoch:010d}{SUFFIX}"


class KRaftState(NamedTuple):
    """What control records say of the quorum itself (KIP-853); with version 0 the voters are the node's config."""

    version: int = 0
    voters: VotersRecord | None = None


class Snapshot(NamedTuple):
    """What a snapshot file holds."""

    records: list[Any]
    kraft: KRaftState
    timestamp: int  #: of the last record that is in it


def parse_file_name(name: str) -> SnapshotId | None:
    """The id in the name of a snapshot file; None for any other file."""
    offset, dash, epoch = name.removesuffix(SUFFIX).partition("-")
    if not name.endswith(SUFFIX) or not dash or not (offset.isdecimal() and epoch.isdecimal()):
        return None
    return SnapshotId(int(offset), int(epoch))


# ---------------------------------------------------------------- reading


def decode_snapshot(data: bytes) -> Snapshot:
    """The records of a snapshot, in their order.

    :raises CorruptMessage: the file is damaged, or was not written to its end
    """
    records: list[Any] = []
    kraft = KRaftState()
    timestamp, is_whole, begun, size = -1, False, False, 0
    try:
        for batch, found in decode_batches(data):
            size += batch.size_in_bytes
            for record in found:
                if not isinstance(record, Control):
                    records.append(record)
                elif record.type == ControlRecordType.SNAPSHOT_HEADER:
                    header = SnapshotHeaderRecord.decode(record.value, version=0)
                    timestamp, begun = header.last_contained_log_timestamp, True
                elif record.type == ControlRecordType.SNAPSHOT_FOOTER:
                    is_whole = begun
                else:
                    kraft = after_control(kraft, record)
    except (MalformedMessage, KafkaError) as error:
        raise CorruptMessage(f"a snapshot with a damaged batch at byte {size}: {error}") from error
    if not is_whole:
        raise CorruptMessage("a snapshot without an end")
    return Snapshot(records, kraft, timestamp)


def after_control(kraft: KRaftState, record: Control) -> KRaftState:
    """The state of the quorum after a control record; most say nothing of it."""
    if record.type == ControlRecordType.KRAFT_VERSION:
        return kraft._replace(version=KRaftVersionRecord.decode(record.value, version=0).kraft_version)
    if record.type == ControlRecordType.KRAFT_VOTERS:
        return kraft._replace(voters=VotersRecord.decode(record.value, version=0))
    return kraft


# ---------------------------------------------------------------- writing


def control_records(kraft: KRaftState) -> list[tuple[ControlRecordType, Message, int]]:
    """The state of the quorum as control records, each with the version to write it in; none for version 0."""
    if not kraft.version:
        return []
    raised = KRaftVersionRecord(version=0, kraft_version=kraft.version)
    records: list[tuple[ControlRecordType, Message, int]] = [(ControlRecordType.KRAFT_VERSION, raised, 0)]
    if kraft.voters is not None:
        records.append((ControlRecordType.KRAFT_VOTERS, kraft.voters, 0))
    return records


def encode_snapshot(
    records: Iterable[Any], *, kraft: KRaftState, metadata_version: int, epoch: int, last_timestamp: int, now_ms: int
) -> bytes:
    """The file that holds these records."""
    header = SnapshotHeaderRecord(version=0, last_contained_log_timestamp=last_timestamp)
    head: list[tuple[ControlRecordType, Message, int]] = [(ControlRecordType.SNAPSHOT_HEADER, header, 0)]
    head += control_records(kraft)
    parts: list[bytearray] = [control_batch(head, timestamp=now_ms, epoch=epoch)]
    listed = list(records)
    parts += encode_batches(
        listed, metadata_version=metadata_version, timestamp=now_ms, epoch=epoch, base_offset=len(head)
    )
    footer = [(ControlRecordType.SNAPSHOT_FOOTER, SnapshotFooterRecord(version=0), 0)]
    parts.append(control_batch(footer, timestamp=now_ms, epoch=epoch, base_offset=len(head) + len(listed)))
    return b"".join(parts)


def records_of_image(image: MetadataImage) -> Iterator[Any]:
    """The records that, applied to nothing, make the image."""
    if METADATA_VERSION in image.features:
        yield FeatureLevelRecord(name=METADATA_VERSION, feature_level=image.features[METADATA_VERSION])
    for name, level in image.features.items():
        if name != METADATA_VERSION:
            yield FeatureLevelRecord(name=name, feature_level=level)
    yield from broker_records(image)
    yield from controller_records(image)
    yield from topic_records(image)
    for (resource_type, resource_name), configs in image.configs.items():
        for name, value in configs.items():
            yield ConfigRecord(resource_type=resource_type, resource_name=resource_name, name=name, value=value)
    if image.next_producer_id:
        yield ProducerIdsRecord(broker_id=-1, broker_epoch=-1, next_producer_id=image.next_producer_id)
    yield from image.others.values()


def broker_records(image: MetadataImage) -> Iterator[RegisterBrokerRecord]:
    yield from map(broker_record, image.brokers.values())


def broker_record(broker: BrokerImage) -> RegisterBrokerRecord:
    """The record that registers the broker as it is."""
    return RegisterBrokerRecord(
        broker_id=broker.id,
        incarnation_id=broker.incarnation_id,
        broker_epoch=broker.epoch,
        end_points=endpoint_records(RegisterBrokerRecord.BrokerEndpoint, broker.endpoints.values()),
        features=[
            RegisterBrokerRecord.BrokerFeature(name=name, min_supported_version=first, max_supported_version=last)
            for name, (first, last) in broker.features.items()
        ],
        rack=broker.rack,
        fenced=broker.fenced,
        in_controlled_shutdown=broker.in_controlled_shutdown,
        log_dirs=list(broker.log_dirs),
        cordoned_log_dirs=list(broker.cordoned_log_dirs),
    )


def controller_records(image: MetadataImage) -> Iterator[RegisterControllerRecord]:
    for controller in image.controllers.values():
        yield RegisterControllerRecord(
            controller_id=controller.id,
            incarnation_id=controller.incarnation_id,
            zk_migration_ready=controller.zk_migration_ready,
            end_points=endpoint_records(RegisterControllerRecord.ControllerEndpoint, controller.endpoints.values()),
            features=[
                RegisterControllerRecord.ControllerFeature(
                    name=name, min_supported_version=first, max_supported_version=last
                )
                for name, (first, last) in controller.features.items()
            ],
        )


def endpoint_records(cls: type, endpoints: Iterable[Endpoint]) -> list[Any]:
    """Endpoints as a registration lists them; ``cls`` is its struct for one."""
    return [
        cls(
            name=each.name,
            host=each.host,
            port=each.port,
            security_protocol=SECURITY_PROTOCOLS.index(each.security_protocol),
        )
        for each in endpoints
    ]


def topic_records(image: MetadataImage) -> Iterator[TopicRecord | PartitionRecord]:
    for topic in image.topics_by_id.values():
        yield TopicRecord(name=topic.name, topic_id=topic.id)
        for index, partition in topic.partitions.items():
            yield PartitionRecord(
                partition_id=index,
                topic_id=topic.id,
                replicas=list(partition.replicas),
                isr=list(partition.isr),
                removing_replicas=list(partition.removing),
                adding_replicas=list(partition.adding),
                leader=partition.leader,
                leader_recovery_state=partition.leader_recovery_state,
                leader_epoch=partition.leader_epoch,
                partition_epoch=partition.partition_epoch,
                directories=list(partition.directories),
                eligible_leader_replicas=list(partition.elr) or None,
                last_known_elr=list(partition.last_known_elr) or None,
            )

"""Decides on nodes: the registration of brokers and controllers, and blocks of producer ids.

Knows nothing of the state of a registered broker: ``heartbeat_decisions`` does. The rules are those of Apache Kafka's
``ClusterControlManager`` and ``ProducerIdControlManager``.
"""

from collections.abc import Iterator, Mapping
from typing import TypeVar

from barnabas.cluster.controller.commands.nodes import (
    AllocateProducerIds,
    RegisterBroker,
    RegisterController,
    UnregisterBroker,
    WriteNoOp,
    WriteRecords,
)
from barnabas.cluster.controller.decision import Decision, Surroundings
from barnabas.cluster.controller.heartbeats import Heard
from barnabas.cluster.controller.partition_changes import Terms, changes_where, led_by_others
from barnabas.cluster.controller.replicas import is_reserved
from barnabas.cluster.features import CONTROLLER_REGISTRATION, DIRECTORIES, METADATA_VERSION
from barnabas.cluster.image.image import BrokerImage, MetadataImage
from barnabas.cluster.image.records import endpoint_records
from barnabas.errors import (
    BrokerIdNotRegistered,
    DuplicateBrokerRegistration,
    InconsistentClusterId,
    InvalidRegistration,
    StaleBrokerEpoch,
    UnsupportedVersion,
)
from barnabas.uuids import uuid_text
from barnabas.wire.messages.metadata_records import (
    NoOpRecord,
    PartitionChangeRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    UnregisterBrokerRecord,
)

PRODUCER_IDS_IN_A_BLOCK = 1000

Ranges = TypeVar("Ranges")


def feature_records(cls: type[Ranges], features: Mapping[str, tuple[int, int]]) -> list[Ranges]:
    make: type = cls
    return [
        make(name=name, min_supported_version=first, max_supported_version=last)
        for name, (first, last) in features.items()
    ]


def registered(broker_id: int, epoch: int, image: MetadataImage) -> BrokerImage:
    """Returns the broker that has sent a request.

    :raises StaleBrokerEpoch: it is not registered, or has another epoch
    """
    broker = image.brokers.get(broker_id)
    if broker is None:
        raise StaleBrokerEpoch(f"No broker registration found for broker id {broker_id}")
    if broker.epoch != epoch:
        raise StaleBrokerEpoch(f"Expected broker epoch {broker.epoch}, but got broker epoch {epoch}")
    return broker


# ---------------------------------------------------------------- brokers


def register_broker(command: RegisterBroker, image: MetadataImage, around: Surroundings) -> Decision:
    """Registers a broker that has started, fenced. Its epoch is the offset of the first record.

    An earlier incarnation leaves the ISRs; after an unclean shutdown, in which it may have lost acknowledged records,
    it leaves the ELRs, too (KIP-966). The same incarnation may register again, and keeps its epoch and state.
    """
    if command.cluster_id != around.cluster_id:
        text = f"Expected cluster ID {around.cluster_id}, but got cluster ID {command.cluster_id}"
        raise InconsistentClusterId(text)
    known = image.brokers.get(command.id)
    is_same = known is not None and known.incarnation_id == command.incarnation_id
    if known is not None and not is_same and around.heartbeats.has_session(known.id, known.epoch):
        raise DuplicateBrokerRegistration(
            "Another broker is registered with that broker id. If the broker was recently restarted this should "
            "self-resolve once the heartbeat manager expires the broker's session."
        )
    if command.is_migrating:
        raise BrokerIdNotRegistered("Controller does not support registering ZK brokers.")
    if image.metadata_version >= DIRECTORIES:
        check_directories(command, image)
    check_features(command, image)
    record = RegisterBrokerRecord(
        broker_id=command.id,
        incarnation_id=command.incarnation_id,
        broker_epoch=around.next_offset,
        end_points=endpoint_records(RegisterBrokerRecord.BrokerEndpoint, command.endpoints),
        features=feature_records(RegisterBrokerRecord.BrokerFeature, command.features),
        rack=command.rack,
        fenced=True,
        log_dirs=list(command.log_dirs) if image.metadata_version >= DIRECTORIES else [],
    )
    records: list[object] = [record]
    if known is not None and is_same:
        record.broker_epoch = known.epoch
        record.fenced, record.in_controlled_shutdown = known.fenced, known.in_controlled_shutdown
    else:
        was_clean = known is not None and known.epoch == command.previous_epoch
        after, _ = image.apply([record])
        records = [*left_behind(command.id, Terms(after, around), was_clean=was_clean), record]
    heard = Heard(command.id, record.broker_epoch, registers=True, fenced=record.fenced)
    return Decision(records, record.broker_epoch, heard=heard)


def check_directories(command: RegisterBroker, image: MetadataImage) -> None:
    """Checks the directories of a broker.

    :raises InvalidRegistration: there are none, one is a duplicate or reserved, or is registered by another broker
    """
    log_dirs = command.log_dirs
    if not log_dirs:
        raise InvalidRegistration("No directories specified in request")
    if any(map(is_reserved, log_dirs)):
        raise InvalidRegistration("Reserved directory ID in request")
    if len(set(log_dirs)) != len(log_dirs):
        raise InvalidRegistration("Duplicate directory ID in request")
    for broker in image.brokers.values():
        for directory in broker.log_dirs:
            if broker.id != command.id and directory in log_dirs:
                text = f"Broker {broker.id} is already registered with directory {uuid_text(directory)}"
                raise InvalidRegistration(text)


def check_features(command: RegisterBroker, image: MetadataImage) -> None:
    """Checks that the broker supports the feature levels of the cluster.

    :raises UnsupportedVersion: a level is not supported
    :raises InvalidRegistration: metadata.version is missing
    """
    for name, (first, last) in command.features.items():
        check_range(name, image.features.get(name, 0), first, last)
    if METADATA_VERSION not in command.features:
        raise InvalidRegistration("Request features do not contain 'metadata.version'")
    for name, level in image.features.items():
        if name not in command.features:
            check_range(name, level, 0, 0)


def check_range(name: str, level: int, first: int, last: int) -> None:
    if not first <= level <= last:
        raise UnsupportedVersion(
            f"Unable to register because the broker does not support finalized version {level} of {name}. The broker "
            f"wants a version between {first} and {last}, inclusive."
        )


def left_behind(broker_id: int, terms: Terms, *, was_clean: bool) -> Iterator[PartitionChangeRecord]:
    """Returns the changes that remove an earlier incarnation from ISRs, and after an unclean shutdown from ELRs."""
    if was_clean or not terms.keeps_eligible:
        yield from led_by_others(broker_id, terms)
    else:
        yield from changes_where(
            lambda each: broker_id in each.isr or broker_id in each.elr, terms, stopped_uncleanly=broker_id
        )


def unregister_broker(command: UnregisterBroker, image: MetadataImage, around: Surroundings) -> Decision:
    """Unregisters a broker. It may register again."""
    broker = image.brokers.get(command.id)
    if broker is None:
        raise BrokerIdNotRegistered(f"Broker ID {command.id} is not currently registered")
    record = UnregisterBrokerRecord(broker_id=broker.id, broker_epoch=broker.epoch)
    after, _ = image.apply([record])
    changes = changes_where(
        lambda each: broker.id in each.isr or broker.id in each.elr, Terms(after, around), without=broker.id
    )
    return Decision([*changes, record], None, heard=Heard(broker.id, broker.epoch, is_gone=True))


# ---------------------------------------------------------------- controllers


def write_no_op(command: WriteNoOp, image: MetadataImage, around: Surroundings) -> Decision:
    """Writes a NoOpRecord, by which brokers see that the controller is alive (KIP-835)."""
    return Decision([NoOpRecord()], None)


def write_records(command: WriteRecords, image: MetadataImage, around: Surroundings) -> Decision:
    """Writes the given records."""
    return Decision(list(command.records), None)


def register_controller(command: RegisterController, image: MetadataImage, around: Surroundings) -> Decision:
    """Registers a controller that has started (KIP-919).

    :raises UnsupportedVersion: the metadata.version has no such record
    """
    if image.metadata_version < CONTROLLER_REGISTRATION:
        text = "The current MetadataVersion is too old to support controller registrations."
        raise UnsupportedVersion(text)
    record = RegisterControllerRecord(
        controller_id=command.id,
        incarnation_id=command.incarnation_id,
        zk_migration_ready=False,
        end_points=endpoint_records(RegisterControllerRecord.ControllerEndpoint, command.endpoints),
        features=feature_records(RegisterControllerRecord.ControllerFeature, command.features),
    )
    return Decision([record], None)


def allocate_producer_ids(command: AllocateProducerIds, image: MetadataImage, around: Surroundings) -> Decision:
    """Allocates the next block of ids to a broker. Ids that it does not use are lost."""
    broker = registered(command.broker_id, command.broker_epoch, image)
    first = image.next_producer_id
    record = ProducerIdsRecord(
        broker_id=broker.id, broker_epoch=broker.epoch, next_producer_id=first + PRODUCER_IDS_IN_A_BLOCK
    )
    return Decision([record], (first, PRODUCER_IDS_IN_A_BLOCK))

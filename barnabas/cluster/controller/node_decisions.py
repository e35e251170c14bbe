"""Decides on nodes: registration and fencing of brokers, registration of controllers, blocks of producer ids.

Knows nothing of heartbeats and sessions. Rules of Apache Kafka's ``ClusterControlManager``, ``BrokerHeartbeatManager``
and ``ProducerIdControlManager``.
"""

from typing import TypeVar

from barnabas.cluster.controller.commands import (
    AllocateProducerIds,
    AmendBroker,
    RegisterBroker,
    RegisterController,
    ShutDownBroker,
    UnfenceBroker,
)
from barnabas.cluster.controller.decision import Decision, Surroundings
from barnabas.cluster.controller.leader_decisions import led_again, led_by_others
from barnabas.cluster.features import CONTROLLER_REGISTRATION, DIRECTORIES, ELIGIBLE_LEADER_REPLICAS, SUPPORTED
from barnabas.cluster.image.image import NO_LEADER, MetadataImage
from barnabas.cluster.image.records import broker_record, endpoint_records
from barnabas.errors import BrokerIdNotRegistered
from barnabas.wire.messages.metadata_records import (
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
)

PRODUCER_IDS_IN_A_BLOCK = 1000


Ranges = TypeVar("Ranges")


def feature_records(cls: type[Ranges]) -> list[Ranges]:
    make: type = cls
    return [
        make(name=name, min_supported_version=feature.first, max_supported_version=feature.last)
        for name, feature in sorted(SUPPORTED.items())
    ]


def register_broker(command: RegisterBroker, image: MetadataImage, around: Surroundings) -> Decision:
    """Registers a broker that has started, fenced. Its epoch is the offset of the record.

    A broker that did not stop cleanly may have lost its last acknowledged records. It is removed from ISR and ELR then
    (KIP-966), and its partitions have no leader until it is unfenced, in a new leader epoch. After a clean stop,
    leaders stay leaders.
    """
    epoch = around.next_offset
    record = RegisterBrokerRecord(
        broker_id=command.id,
        incarnation_id=command.incarnation_id,
        broker_epoch=epoch,
        end_points=endpoint_records(RegisterBrokerRecord.BrokerEndpoint, command.endpoints),
        features=feature_records(RegisterBrokerRecord.BrokerFeature),
        rack=command.rack,
        fenced=True,
        log_dirs=list(command.log_dirs),
    )
    known = image.brokers.get(command.id)
    was_clean = known is not None and known.epoch == command.previous_epoch
    records: list[object] = [record]
    if known is not None and not was_clean:
        records += left_without(command.id, image)
    return Decision(records, epoch)


def amend_broker(command: AmendBroker, image: MetadataImage, around: Surroundings) -> Decision:
    """Registers a broker again with its directories, if the metadata.version can record them now (KIP-858)."""
    broker = image.brokers.get(command.id)
    if broker is None:
        raise BrokerIdNotRegistered(f"Broker {command.id} is not registered")
    if image.metadata_version < DIRECTORIES or broker.log_dirs:
        return Decision([], None)
    return Decision([broker_record(broker._replace(log_dirs=tuple(command.log_dirs)))], None)


def left_without(broker_id: int, image: MetadataImage) -> list[PartitionChangeRecord]:
    """Returns the changes that remove a broker from leaders, ISRs and ELRs after an unclean stop."""
    keeps_elr = bool(image.features.get(ELIGIBLE_LEADER_REPLICAS))
    records = []
    for topic in image.topics_by_id.values():
        for index, partition in topic.partitions.items():
            if partition.leader != broker_id and broker_id not in partition.isr and broker_id not in partition.elr:
                continue
            isr = [replica for replica in partition.isr if replica != broker_id]
            change = PartitionChangeRecord(partition_id=index, topic_id=topic.id)
            if partition.leader == broker_id:
                change.leader = NO_LEADER
            if keeps_elr and (not isr or broker_id in partition.elr):
                change.eligible_leader_replicas = [replica for replica in partition.elr if replica != broker_id]
                change.last_known_elr = [broker_id]
            if len(isr) < len(partition.isr) and (isr or keeps_elr):
                change.isr = isr
            records.append(change)
    return records


def unfence_broker(command: UnfenceBroker, image: MetadataImage, around: Surroundings) -> Decision:
    """Unfences a broker, and elects it where a partition has no leader and it is eligible."""
    broker = image.brokers.get(command.id)
    if broker is None:
        raise BrokerIdNotRegistered(f"Broker {command.id} is not registered")
    if not broker.fenced:
        return Decision([], None)
    lift = BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, fenced=-1)
    after, _ = image.apply([lift])
    records: list[object] = [lift]
    for topic in after.topics_by_id.values():
        for index, partition in topic.partitions.items():
            if partition.leader == NO_LEADER and broker.id in partition.replicas:
                change = led_again(topic, index, after)
                if change is not None:
                    records.append(change)
    return Decision(records, None)


def shut_down_broker(command: ShutDownBroker, image: MetadataImage, around: Surroundings) -> Decision:
    """Moves leadership away from a stopping broker, and fences it (KIP-966).

    These are the records of Apache Kafka's controller at a controlled shutdown and at the end of the broker's session.
    A fenced broker can register again at once; otherwise Apache Kafka waits until the session has timed out.
    """
    broker = image.brokers.get(command.id)
    if broker is None or broker.fenced:
        return Decision([], None)
    epoch = broker.epoch
    leaving = BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=epoch, in_controlled_shutdown=1)
    after, _ = image.apply([leaving])
    fenced = BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=epoch, fenced=1)
    return Decision([leaving, *led_by_others(broker.id, after), fenced], None)


def register_controller(command: RegisterController, image: MetadataImage, around: Surroundings) -> Decision:
    """Registers a controller that has started, if the metadata.version can record it (KIP-919)."""
    if image.metadata_version < CONTROLLER_REGISTRATION:
        return Decision([], None)
    record = RegisterControllerRecord(
        controller_id=command.id,
        incarnation_id=command.incarnation_id,
        zk_migration_ready=False,
        end_points=endpoint_records(RegisterControllerRecord.ControllerEndpoint, command.endpoints),
        features=feature_records(RegisterControllerRecord.ControllerFeature),
    )
    return Decision([record], None)


def allocate_producer_ids(command: AllocateProducerIds, image: MetadataImage, around: Surroundings) -> Decision:
    """Allocates the next block of ids to a broker. Ids that it does not use are never used."""
    broker = image.brokers.get(command.broker_id)
    if broker is None:
        raise BrokerIdNotRegistered(f"Broker {command.broker_id} is not registered")
    first = image.next_producer_id
    record = ProducerIdsRecord(
        broker_id=broker.id, broker_epoch=broker.epoch, next_producer_id=first + PRODUCER_IDS_IN_A_BLOCK
    )
    return Decision([record], (first, PRODUCER_IDS_IN_A_BLOCK))

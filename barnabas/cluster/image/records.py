"""Encodes an image as records.

Knows nothing of what the records are for: snapshots, and repeated registrations.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from barnabas.cluster.features import METADATA_VERSION
from barnabas.cluster.image.image import BrokerImage, MetadataImage
from barnabas.config.endpoints import SECURITY_PROTOCOLS, Endpoint
from barnabas.wire.messages.metadata_records import (
    AccessControlEntryRecord,
    ConfigRecord,
    FeatureLevelRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    TopicRecord,
)

if TYPE_CHECKING:
    from barnabas.security.acls import Acl


def records_of_image(image: MetadataImage) -> Iterator[Any]:
    """Yields the records of an image: applied to an empty one, they result in the same image."""
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
    yield from image.credentials.values()
    yield from image.quotas.values()
    yield from (acl_record(acl_id, acl) for acl_id, acl in image.acls.items())
    yield from image.tokens.values()


def acl_record(acl_id: bytes, acl: "Acl") -> AccessControlEntryRecord:
    """Returns the record that creates the ACL."""
    return AccessControlEntryRecord(
        id=acl_id,
        resource_type=acl.resource_type,
        resource_name=acl.resource_name,
        pattern_type=acl.pattern_type,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission,
    )


def broker_records(image: MetadataImage) -> Iterator[RegisterBrokerRecord]:
    yield from map(broker_record, image.brokers.values())


def broker_record(broker: BrokerImage) -> RegisterBrokerRecord:
    """Returns the record that registers the broker with its current state."""
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
        cordoned_log_dirs=None if broker.cordoned_log_dirs is None else list(broker.cordoned_log_dirs),
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
    """Returns endpoints as structs of a registration record; ``cls`` is the class of the structs."""
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

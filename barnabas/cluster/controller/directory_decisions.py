"""Decides on the log directories of replicas: a broker chooses them, and reports its choice (KIP-858).

Knows nothing of what is in a directory. Rules of Apache Kafka's ``ReplicationControlManager``
(``handleAssignReplicasToDirs``), and of its ``ClusterControlManager`` where directories take nothing new (KIP-1066).
"""

from barnabas.cluster.controller.commands import AssignReplicasToDirs, CordonLogDirs
from barnabas.cluster.controller.decision import Decision, Surroundings
from barnabas.cluster.features import CORDONED_DIRECTORIES, DIRECTORIES
from barnabas.cluster.image.image import MetadataImage
from barnabas.errors import (
    BrokerIdNotRegistered,
    KafkaError,
    NotLeaderOrFollower,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from barnabas.wire.messages.metadata_records import BrokerRegistrationChangeRecord, PartitionChangeRecord


def assign_replicas_to_dirs(command: AssignReplicasToDirs, image: MetadataImage, around: Surroundings) -> Decision:
    """Records each assignment that is new, if the metadata.version can. The result has an error or None for each."""
    if command.broker_id not in image.brokers:
        raise BrokerIdNotRegistered(f"Broker {command.broker_id} is not registered")
    if image.metadata_version < DIRECTORIES:
        return Decision([], [None] * len(command.assignments))
    records: list[object] = []
    results: list[KafkaError | None] = []
    for topic_id, index, directory_id in command.assignments:
        try:
            change = assigned(command.broker_id, topic_id, index, directory_id, image)
        except KafkaError as error:
            results.append(error)
        else:
            results.append(None)
            if change is not None:
                records.append(change)
    return Decision(records, results)


def assigned(
    broker_id: int, topic_id: bytes, index: int, directory_id: bytes, image: MetadataImage
) -> PartitionChangeRecord | None:
    topic = image.topics_by_id.get(topic_id)
    if topic is None:
        raise UnknownTopicId
    partition = topic.partitions.get(index)
    if partition is None:
        raise UnknownTopicOrPartition
    if broker_id not in partition.replicas:
        raise NotLeaderOrFollower(f"Broker {broker_id} has no replica of this partition")
    directories = [
        directory_id if replica == broker_id else before
        for replica, before in zip(partition.replicas, partition.directories, strict=True)
    ]
    if directories == list(partition.directories):
        return None
    return PartitionChangeRecord(partition_id=index, topic_id=topic_id, directories=directories)


def cordon_log_dirs(command: CordonLogDirs, image: MetadataImage, around: Surroundings) -> Decision:
    """Records the cordoned directories if they have changed. A broker with no others gets no new partitions."""
    broker = image.brokers.get(command.broker_id)
    if broker is None:
        raise BrokerIdNotRegistered(f"Broker {command.broker_id} is not registered")
    if image.metadata_version < CORDONED_DIRECTORIES or list(command.log_dirs) == list(broker.cordoned_log_dirs):
        return Decision([], None)
    change = BrokerRegistrationChangeRecord(
        broker_id=broker.id, broker_epoch=broker.epoch, cordoned_log_dirs=list(command.log_dirs)
    )
    return Decision([change], None)

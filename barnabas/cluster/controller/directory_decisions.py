"""Decides on the log directories of replicas, as brokers report their assignments and failures (KIP-858).

Knows nothing of the content of directories. The rules are those of Apache Kafka's ``ReplicationControlManager``
(``handleAssignReplicasToDirs``, ``handleDirectoriesOffline``, ``handleDirectoriesCordoned``).
"""

from collections.abc import Collection, Sequence

from barnabas.cluster.controller.commands.nodes import AssignReplicasToDirs
from barnabas.cluster.controller.decision import Decision, Surroundings
from barnabas.cluster.controller.node_decisions import registered
from barnabas.cluster.controller.partition_changes import PartitionChange, Terms, changed, changes_where
from barnabas.cluster.controller.replicas import is_online
from barnabas.cluster.features import CORDONED_DIRECTORIES, DIRECTORIES
from barnabas.cluster.image.image import BrokerImage, MetadataImage, PartitionImage, TopicImage
from barnabas.errors import (
    KafkaError,
    NotLeaderOrFollower,
    UnknownTopicId,
    UnknownTopicOrPartition,
    UnsupportedVersion,
)
from barnabas.wire.messages.metadata_records import BrokerRegistrationChangeRecord


def assign_replicas_to_dirs(command: AssignReplicasToDirs, image: MetadataImage, around: Surroundings) -> Decision:
    """Records each new assignment. The result has an error or None for each.

    A replica in an offline directory leaves the ISR.
    """
    if image.metadata_version < DIRECTORIES:
        raise UnsupportedVersion("Directory assignment is not supported yet.")
    broker = registered(command.broker_id, command.broker_epoch, image)
    terms = Terms(image, around)
    records: list[object] = []
    results: list[KafkaError | None] = []
    offline: dict[tuple[bytes, int], None] = {}
    for topic_id, index, directory_id in command.assignments:
        try:
            topic = hosted(topic_id, index, broker.id, image)
        except KafkaError as error:
            results.append(error)
            continue
        results.append(None)
        change = PartitionChange(topic, index, terms)
        change.directories[broker.id] = directory_id
        if (record := change.record()) is not None:
            records.append(record)
        if not is_online(directory_id, broker.log_dirs):
            offline[topic_id, index] = None
    after = Terms(image.apply(records)[0], around) if offline else terms
    for topic_id, index in offline:
        record = changed(after.image.topics_by_id[topic_id], index, after, without=broker.id)
        if record is not None:
            records.append(record)
    return Decision(records, results)


def hosted(topic_id: bytes, index: int, broker_id: int, image: MetadataImage) -> TopicImage:
    """Returns the topic of a partition with a replica on the broker.

    :raises NotLeaderOrFollower: the broker has no replica of it
    """
    topic = image.topics_by_id.get(topic_id)
    if topic is None:
        raise UnknownTopicId
    partition = topic.partitions.get(index)
    if partition is None:
        raise UnknownTopicOrPartition
    if broker_id not in partition.replicas:
        raise NotLeaderOrFollower(f"Broker {broker_id} has no replica of this partition")
    return topic


def taken_offline(broker_id: int, offline: Collection[bytes], terms: Terms) -> list[object]:
    """Returns the records for failed directories: their replicas leave ISRs, and no longer lead.

    There are none at a metadata.version without directories: there the broker itself answers KAFKA_STORAGE_ERROR.
    """
    image = terms.image
    broker = image.brokers[broker_id]
    failed = [each for each in broker.log_dirs if each in offline]
    if not failed or image.metadata_version < DIRECTORIES:
        return []
    left = [each for each in broker.log_dirs if each not in offline]
    record = BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, log_dirs=left)
    after = Terms(image.apply([record])[0], terms.around)

    def was_there(partition: PartitionImage) -> bool:
        return any(directory in failed for directory in partition.directories)

    return [*changes_where(was_there, after, without=broker_id), record]


def cordoned(broker: BrokerImage, log_dirs: Sequence[bytes], image: MetadataImage) -> list[object]:
    """Returns the record of the cordoned directories, if they are new. They get no new replicas (KIP-1066)."""
    known = broker.cordoned_log_dirs
    if image.metadata_version < CORDONED_DIRECTORIES or (known is not None and set(log_dirs) == set(known)):
        return []
    return [
        BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, cordoned_log_dirs=list(log_dirs))
    ]

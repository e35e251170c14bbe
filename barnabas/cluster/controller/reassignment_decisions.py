"""Decides on reassignments of partitions, and their cancellation (KIP-455).

Knows nothing of how replicas catch up: a reassignment starts here, and is completed by the ISR change that adds the new
replicas. The errors are those of Apache Kafka's ``ReplicationControlManager``.
"""

from collections.abc import Sequence

from barnabas.cluster.controller.commands.replicas import AlterPartitionReassignments, PartitionResult, PartitionResults
from barnabas.cluster.controller.decision import Decision, Surroundings
from barnabas.cluster.controller.partition_changes import PartitionChange, Terms
from barnabas.cluster.controller.topic_decisions import check_assignment
from barnabas.cluster.image.image import MetadataImage, PartitionImage, TopicImage
from barnabas.errors import (
    InvalidReplicaAssignment,
    InvalidReplicationFactor,
    KafkaError,
    NoReassignmentInProgress,
    UnknownTopicOrPartition,
)
from barnabas.wire.messages.metadata_records import PartitionChangeRecord


def alter_partition_reassignments(
    command: AlterPartitionReassignments, image: MetadataImage, around: Surroundings
) -> Decision:
    """Starts or cancels reassignments, each partition independently."""
    terms = Terms(image, around)
    records: list[object] = []
    results: PartitionResults = []
    for name, partitions in command.topics:
        of_topic = []
        for index, target in partitions:
            try:
                topic = reassigned(name, index, image)
                if target is None:
                    change = called_off(topic, index, terms)
                else:
                    check_assignment(target, image, None)
                    if not command.allow_replication_factor_change:
                        check_factor(topic.partitions[index], target)
                    change = moved(topic, index, target, terms)
            except KafkaError as error:
                of_topic.append(PartitionResult(index, error))
            else:
                if change is not None:
                    records.append(change)
                of_topic.append(PartitionResult(index))
        results.append((name, of_topic))
    return Decision(records, results)


def reassigned(name: str, index: int, image: MetadataImage) -> TopicImage:
    """Returns the topic of a partition to reassign. :raises UnknownTopicOrPartition: there is no such partition"""
    topic = image.topics_by_name.get(name)
    if topic is None:
        raise UnknownTopicOrPartition(f"Unable to find a topic named {name}.")
    if index not in topic.partitions:
        raise UnknownTopicOrPartition(f"Unable to find partition {name}:{index}.")
    return topic


def check_factor(partition: PartitionImage, target: Sequence[int]) -> None:
    """Checks that a reassignment keeps the replication factor, without the replicas that are being added (KIP-860).

    :raises InvalidReplicationFactor: the replication factor changes
    """
    before = len(partition.replicas) - len(partition.adding)
    if len(target) != before:
        raise InvalidReplicationFactor(f"The replication factor is changed from {before} to {len(target)}")


def moved(topic: TopicImage, index: int, target: Sequence[int], terms: Terms) -> PartitionChangeRecord | None:
    """Returns the change to the target replicas, followed by those that leave once the others are in sync.

    The reassignment is complete immediately if no other replica has to be in sync.
    """
    change = PartitionChange(topic, index, terms)
    current = set(change.replicas)
    removing, adding = sorted(current - set(target)), sorted(set(target) - current)
    change.replicas = [*target, *removing]
    change.removing = removing or change.removing
    change.adding = adding or change.adding
    return change.record()


def called_off(topic: TopicImage, index: int, terms: Terms) -> PartitionChangeRecord | None:
    """Returns the change back to the replicas before a reassignment (``PartitionReassignmentRevert``)."""
    change = PartitionChange(topic, index, terms)
    partition = change.partition
    if not partition.is_reassigning:
        raise NoReassignmentInProgress
    change.replicas = [replica for replica in partition.replicas if replica not in partition.adding]
    change.isr = [replica for replica in partition.isr if replica not in partition.adding]
    if not change.replicas:
        raise InvalidReplicaAssignment("Invalid replica assignment: addingReplicas contains all replicas.")
    if not change.isr:
        if not terms.unclean(topic):
            raise InvalidReplicaAssignment(
                f"Unable to revert partition assignment for {topic.name}:{index} because it would require an unclean "
                "leader election."
            )
        change.isr = change.replicas[:1]
    change.election = terms.election(topic)
    change.removing = change.adding = ()
    return change.record()

"""Decides on changes of ISRs that the leaders of partitions propose (KIP-497).

Knows nothing of how a leader decides who is in sync. Rules of Apache Kafka's
``ReplicationControlManager.alterPartition``.
"""

from collections.abc import Sequence

from barnabas.cluster.controller.commands.replicas import AlteredPartition, AlterPartition, IsrChange
from barnabas.cluster.controller.decision import Decision, Surroundings
from barnabas.cluster.controller.node_decisions import registered
from barnabas.cluster.controller.partition_changes import RECOVERED, RECOVERING, PartitionChange, Terms
from barnabas.cluster.image.image import NO_LEADER_CHANGE, MetadataImage, PartitionImage, TopicImage, changed
from barnabas.errors import (
    FencedLeaderEpoch,
    IneligibleReplica,
    InvalidRequest,
    InvalidUpdateVersion,
    KafkaError,
    NewLeaderElected,
    NotController,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from barnabas.wire.messages.metadata_records import PartitionChangeRecord


def alter_partition(command: AlterPartition, image: MetadataImage, around: Surroundings) -> Decision:
    """Changes ISRs, each partition independently.

    :raises StaleBrokerEpoch: the broker epoch is not that of the registration
    """
    leader = registered(command.broker_id, command.broker_epoch, image).id
    terms = Terms(image, around)
    records: list[PartitionChangeRecord] = []
    results = []
    for topic_id, wanted in command.topics:
        topic = image.topics_by_id.get(topic_id)
        results.append((topic_id, [altered(topic, each, leader, terms, records) for each in wanted]))
    return Decision(records, results)


def altered(
    topic: TopicImage | None, wanted: IsrChange, leader: int, terms: Terms, records: list[PartitionChangeRecord]
) -> AlteredPartition:
    """Returns the result for one partition, and appends its record to ``records``."""
    try:
        if topic is None:
            raise UnknownTopicId
        partition = checked(topic, wanted, leader, terms.image)
    except KafkaError as error:
        return AlteredPartition(wanted.partition, error)
    change = PartitionChange(topic, wanted.partition, terms)
    change.election = terms.election(topic)
    change.isr = [broker_id for broker_id, _ in wanted.isr]
    change.leader_recovery_state = wanted.leader_recovery_state
    record = change.record()
    if record is not None:
        records.append(record)
        partition = changed(partition, record)
        if record.leader not in (leader, NO_LEADER_CHANGE):
            # The ISR has completed a reassignment that removes the leader.
            return AlteredPartition(wanted.partition, NewLeaderElected())
    return AlteredPartition(wanted.partition, None, partition)


def checked(topic: TopicImage, wanted: IsrChange, leader: int, image: MetadataImage) -> PartitionImage:
    """Returns the partition, after checking the proposal.

    :raises NotController: the leader knows a newer epoch, so another controller is active
    :raises KafkaError: the proposal is not valid
    """
    partition = topic.partitions.get(wanted.partition)
    if partition is None:
        raise UnknownTopicOrPartition
    if wanted.leader_epoch > partition.leader_epoch or wanted.partition_epoch > partition.partition_epoch:
        raise NotController
    if wanted.leader_epoch < partition.leader_epoch:
        raise FencedLeaderEpoch
    if leader != partition.leader:
        raise InvalidRequest
    if wanted.partition_epoch < partition.partition_epoch:
        raise InvalidUpdateVersion
    isr = [broker_id for broker_id, _ in wanted.isr]
    if leader not in isr or len(set(isr)) != len(isr) or not set(isr) <= set(partition.replicas):
        raise InvalidRequest
    if wanted.leader_recovery_state not in (RECOVERED, RECOVERING):
        raise InvalidRequest
    if wanted.leader_recovery_state == RECOVERING and (len(isr) > 1 or partition.leader_recovery_state == RECOVERED):
        raise InvalidRequest
    check_eligible(wanted.isr, image)
    return partition


def check_eligible(isr: Sequence[tuple[int, int]], image: MetadataImage) -> None:
    """Checks that brokers may be in the ISR.

    :raises IneligibleReplica: a broker is fenced, shutting down, or has been restarted since
    """
    for broker_id, epoch in isr:
        broker = image.brokers.get(broker_id)
        if broker is None or broker.fenced or broker.in_controlled_shutdown or epoch not in (-1, broker.epoch):
            raise IneligibleReplica

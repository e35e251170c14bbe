"""Decides on leaders and replicas of partitions: elections and reassignments.

Knows nothing of how replicas catch up: a reassignment starts here, and is completed when the new replicas are in sync.
Errors are those of Apache Kafka's ``ReplicationControlManager``.
"""

from collections.abc import Iterator, Sequence

from barnabas.cluster.controller.commands import (
    PREFERRED,
    UNCLEAN,
    AlterPartitionReassignments,
    ElectLeaders,
    PartitionResult,
    PartitionResults,
)
from barnabas.cluster.controller.decision import Decision, Surroundings
from barnabas.cluster.controller.topic_decisions import (
    check_assignment,
    directories_of,
    has_online_directory,
    is_active,
)
from barnabas.cluster.features import ELIGIBLE_LEADER_REPLICAS
from barnabas.cluster.image.image import NO_LEADER, MetadataImage, PartitionImage, TopicImage
from barnabas.errors import (
    ElectionNotNeeded,
    EligibleLeadersNotAvailable,
    InvalidReplicationFactor,
    InvalidRequest,
    KafkaError,
    NoReassignmentInProgress,
    PreferredLeaderNotAvailable,
    UnknownTopicOrPartition,
)
from barnabas.wire.messages.metadata_records import PartitionChangeRecord

RECOVERED, UNCHANGED = 0, -1
"""Values of ``leader_recovery_state`` (KIP-704). A leader of ours has recovered when it starts to lead."""


def elect_leaders(command: ElectLeaders, image: MetadataImage, around: Surroundings) -> Decision:
    """Elects the preferred leaders of partitions, or any leader where there is none.

    When all partitions are requested, the ones that need no election are left out of the result; their topics are not.

    :raises InvalidRequest: there is no such type of election
    """
    if command.election_type not in (PREFERRED, UNCLEAN):
        raise InvalidRequest(f"Unknown election type {command.election_type}")
    everywhere = command.partitions is None
    requested = command.partitions
    if requested is None:
        requested = [(topic.name, list(topic.partitions)) for topic in image.topics_by_name.values()]
    records: list[object] = []
    results: PartitionResults = []
    for name, indexes in requested:
        of_topic = []
        for index in indexes:
            try:
                records.append(elected(name, index, command.election_type, image))
            except KafkaError as error:
                if not (everywhere and isinstance(error, ElectionNotNeeded)):
                    of_topic.append(PartitionResult(index, error))
            else:
                of_topic.append(PartitionResult(index))
        results.append((name, of_topic))
    return Decision(records, results)


def elected(name: str, index: int, election_type: int, image: MetadataImage) -> PartitionChangeRecord:
    topic = image.topics_by_name.get(name)
    if topic is None:
        raise UnknownTopicOrPartition(f"No such topic as {name}")
    partition = topic.partitions.get(index)
    if partition is None:
        raise UnknownTopicOrPartition(f"No such partition as {name}-{index}")
    preferred = partition.replicas[0]
    if election_type == PREFERRED:
        if partition.leader == preferred:
            raise ElectionNotNeeded
        if preferred not in partition.isr or not is_active(preferred, image):
            raise PreferredLeaderNotAvailable
        return PartitionChangeRecord(partition_id=index, topic_id=topic.id, leader=preferred)
    if partition.leader != NO_LEADER:
        raise ElectionNotNeeded
    change = led_again(topic, index, image, unclean=True)
    if change is None:
        raise EligibleLeadersNotAvailable
    return change


def led_again(
    topic: TopicImage, index: int, image: MetadataImage, *, unclean: bool = False
) -> PartitionChangeRecord | None:
    """Returns the change that elects a leader for a partition without one; None when no replica is eligible (KIP-966).

    Candidates are, in this order, the ISR, the eligible leader replicas, the last known leader if there are no others,
    and with ``unclean`` any replica.
    """
    partition = topic.partitions[index]
    leader = next(candidates(partition, image, unclean=unclean), None)
    if leader is None:
        return None
    in_sync = leader in partition.isr
    return PartitionChangeRecord(
        partition_id=index,
        topic_id=topic.id,
        leader=leader,
        isr=None if in_sync else [leader],
        eligible_leader_replicas=[each for each in partition.elr if each != leader] if partition.elr else None,
        last_known_elr=[] if partition.last_known_elr else None,
        leader_recovery_state=RECOVERED if partition.leader_recovery_state != RECOVERED else UNCHANGED,
    )


def candidates(partition: PartitionImage, image: MetadataImage, *, unclean: bool) -> Iterator[int]:
    """Returns the replicas that may lead, the best first."""
    able = [
        replica
        for replica in partition.replicas
        if is_active(replica, image) and has_online_directory(replica, partition, image)
    ]
    for group in (partition.isr, partition.elr):
        for replica in able:
            if replica in group:
                yield replica
    last = partition.last_known_elr
    if not partition.isr and not partition.elr and len(last) == 1 and last[0] in able:
        yield last[0]
    if unclean:
        yield from able


def led_by_others(broker_id: int, image: MetadataImage) -> Iterator[PartitionChangeRecord]:
    """Returns the changes that remove a stopping, fully replicated broker from leaders and ISRs.

    A partition without other in-sync replicas has no leader then. The broker stays eligible, and leads it again when
    it is back (KIP-966).
    """
    keeps_elr = bool(image.features.get(ELIGIBLE_LEADER_REPLICAS))
    for topic in image.topics_by_id.values():
        for index, partition in topic.partitions.items():
            if partition.leader != broker_id and broker_id not in partition.isr:
                continue
            isr = [replica for replica in partition.isr if replica != broker_id]
            change = PartitionChangeRecord(partition_id=index, topic_id=topic.id)
            if isr or keeps_elr:
                change.isr = isr
            if partition.leader == broker_id:
                others = (each for each in partition.replicas if each in isr and is_active(each, image))
                change.leader = next(others, NO_LEADER)
            if not isr and keeps_elr:
                change.eligible_leader_replicas = [*(each for each in partition.elr if each != broker_id), broker_id]
                change.last_known_elr = [broker_id]
            yield change


# ---------------------------------------------------------------- reassignment


def alter_partition_reassignments(
    command: AlterPartitionReassignments, image: MetadataImage, around: Surroundings
) -> Decision:
    """Starts or cancels reassignments, each partition by itself (KIP-455)."""
    records: list[object] = []
    results: PartitionResults = []
    for name, partitions in command.topics:
        of_topic = []
        for index, target in partitions:
            try:
                topic, partition = reassigned(name, index, image)
                change: PartitionChangeRecord | None
                if target is None:
                    change = called_off(topic, index, partition)
                else:
                    check_assignment(target, image, None)
                    if not command.allow_replication_factor_change:
                        check_factor(partition, target)
                    change = moved(topic, index, partition, target, image)
            except KafkaError as error:
                of_topic.append(PartitionResult(index, error))
            else:
                if change is not None:
                    records.append(change)
                of_topic.append(PartitionResult(index))
        results.append((name, of_topic))
    return Decision(records, results)


def reassigned(name: str, index: int, image: MetadataImage) -> tuple[TopicImage, PartitionImage]:
    """Returns the partition that is to be reassigned. :raises UnknownTopicOrPartition: there is none"""
    topic = image.topics_by_name.get(name)
    if topic is None:
        raise UnknownTopicOrPartition(f"Unable to find a topic named {name}.")
    partition = topic.partitions.get(index)
    if partition is None:
        raise UnknownTopicOrPartition(f"Unable to find partition {name}:{index}.")
    return topic, partition


def called_off(topic: TopicImage, index: int, partition: PartitionImage) -> PartitionChangeRecord:
    if not partition.is_reassigning:
        raise NoReassignmentInProgress
    replicas = [replica for replica in partition.replicas if replica not in partition.adding]
    return PartitionChangeRecord(
        partition_id=index,
        topic_id=topic.id,
        replicas=replicas,
        isr=[replica for replica in partition.isr if replica in replicas],
        removing_replicas=[] if partition.removing else None,
        adding_replicas=[] if partition.adding else None,
    )


def check_factor(partition: PartitionImage, target: Sequence[int]) -> None:
    """Returns the replication factor before a reassignment: replicas that are being added do not count (KIP-860)."""
    before = len(partition.replicas) - len(partition.adding)
    if len(target) != before:
        raise InvalidReplicationFactor(f"The replication factor is changed from {before} to {len(target)}")


def moved(
    topic: TopicImage, index: int, partition: PartitionImage, target: Sequence[int], image: MetadataImage
) -> PartitionChangeRecord | None:
    """Returns the target replicas, followed by the ones that leave once the others are in sync."""
    current = [replica for replica in partition.replicas if replica not in partition.adding]
    adding = [replica for replica in target if replica not in current]
    removing = [replica for replica in current if replica not in target]
    replicas = [*target, *removing]
    if replicas == list(partition.replicas) and not adding and not removing and not partition.is_reassigning:
        return None
    known = dict(zip(partition.replicas, partition.directories, strict=True))
    directories = [known[replica] if replica in known else directories_of([replica], image)[0] for replica in replicas]
    return PartitionChangeRecord(
        partition_id=index,
        topic_id=topic.id,
        replicas=replicas,
        removing_replicas=removing,
        adding_replicas=adding,
        directories=directories,
    )

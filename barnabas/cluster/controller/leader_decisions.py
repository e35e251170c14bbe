"""Decides on elections: requested ones, and the periodic ones of the controller.

Knows nothing of how one partition changes: ``partition_changes`` does. The errors and limits are those of Apache
Kafka's ``ReplicationControlManager``.
"""

from collections.abc import Callable

from barnabas.cluster.controller import partition_changes
from barnabas.cluster.controller.commands.replicas import (
    PREFERRED,
    UNCLEAN,
    BalanceLeaders,
    ElectLeaders,
    ElectUncleanLeaders,
    PartitionResult,
    PartitionResults,
)
from barnabas.cluster.controller.decision import MAX_RECORDS, Decision, Surroundings
from barnabas.cluster.controller.partition_changes import PartitionChange, Terms
from barnabas.cluster.image.image import NO_LEADER, MetadataImage, PartitionImage, TopicImage
from barnabas.errors import (
    ElectionNotNeeded,
    EligibleLeadersNotAvailable,
    InvalidRequest,
    KafkaError,
    PolicyViolation,
    PreferredLeaderNotAvailable,
    UnknownTopicOrPartition,
)
from barnabas.wire.messages.metadata_records import PartitionChangeRecord

MAX_ELECTIONS = 1000
"""The maximum number of elections in one periodic decision (``MAX_ELECTIONS_PER_IMBALANCE``)."""

ELECTIONS = {PREFERRED: partition_changes.PREFERRED, UNCLEAN: partition_changes.UNCLEAN}


def elect_leaders(command: ElectLeaders, image: MetadataImage, around: Surroundings) -> Decision:
    """Elects the preferred leaders of partitions, or unclean leaders of partitions without a leader.

    If all partitions are requested, those that need no election are left out of the result, but not their topics.

    :raises InvalidRequest: the election type is unknown
    """
    if command.election_type not in ELECTIONS:
        raise InvalidRequest(f"Unknown election type {command.election_type}")
    everywhere = command.partitions is None
    requested = command.partitions
    if requested is None:
        requested = [(topic.name, list(topic.partitions)) for topic in image.topics_by_name.values()]
    terms = Terms(image, around)
    records: list[object] = []
    results: PartitionResults = []
    for name, indexes in requested:
        of_topic = []
        for index in indexes:
            try:
                records.append(elected(name, index, command.election_type, terms))
            except KafkaError as error:
                if not (everywhere and isinstance(error, ElectionNotNeeded)):
                    of_topic.append(PartitionResult(index, error))
            else:
                of_topic.append(PartitionResult(index))
        results.append((name, of_topic))
    if len(records) > MAX_RECORDS:
        raise PolicyViolation("Unable to perform excessively large batch operation.")
    return Decision(records, results)


def elected(name: str, index: int, election_type: int, terms: Terms) -> PartitionChangeRecord:
    topic = terms.image.topics_by_name.get(name)
    if topic is None:
        raise UnknownTopicOrPartition(f"No such topic as {name}")
    partition = topic.partitions.get(index)
    if partition is None:
        raise UnknownTopicOrPartition(f"No such partition as {name}-{index}")
    if partition.leader == partition.replicas[0] if election_type == PREFERRED else partition.leader != NO_LEADER:
        raise ElectionNotNeeded
    change = elected_anew(topic, index, ELECTIONS[election_type], terms)
    if change is None:
        raise PreferredLeaderNotAvailable if election_type == PREFERRED else EligibleLeadersNotAvailable
    return change


def elected_anew(topic: TopicImage, index: int, election: int, terms: Terms) -> PartitionChangeRecord | None:
    change = PartitionChange(topic, index, terms)
    change.election = election
    return change.record()


# ---------------------------------------------------------------- periodic elections


def balance_leaders(command: BalanceLeaders, image: MetadataImage, around: Surroundings) -> Decision:
    """Elects the preferred leaders of partitions, if these may lead."""
    terms = Terms(image, around)

    def balanced(topic: TopicImage, index: int, partition: PartitionImage) -> PartitionChangeRecord | None:
        if partition.leader == partition.replicas[0]:
            return None
        return elected_anew(topic, index, partition_changes.PREFERRED, terms)

    return at_most(balanced, image)


def elect_unclean_leaders(command: ElectUncleanLeaders, image: MetadataImage, around: Surroundings) -> Decision:
    """Elects unclean leaders of partitions without a leader, if the topic's config allows it."""
    terms = Terms(image, around)

    def found(topic: TopicImage, index: int, partition: PartitionImage) -> PartitionChangeRecord | None:
        if partition.leader != NO_LEADER or not terms.unclean(topic):
            return None
        return elected_anew(topic, index, partition_changes.UNCLEAN, terms)

    return at_most(found, image)


Elect = Callable[[TopicImage, int, PartitionImage], PartitionChangeRecord | None]


def at_most(elect: Elect, image: MetadataImage) -> Decision:
    """Makes elections up to the limit. The result is whether there may be more."""
    records: list[object] = []
    for topic in image.topics_by_id.values():
        for index, partition in topic.partitions.items():
            if (record := elect(topic, index, partition)) is not None:
                records.append(record)
                if len(records) >= MAX_ELECTIONS:
                    return Decision(records, True)
    return Decision(records, False)

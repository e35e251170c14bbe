"""A topology: the subtopologies of an application, and the topics that they read, write and keep their state in.

Knows nothing of which of these topics there are.
"""

from typing import NamedTuple

from barnabas.errors import UnknownServerError
from barnabas.groups.java_hash import hash_map_order
from barnabas.wire.messages.group_records import StreamsGroupTopologyValue

Subtopology = StreamsGroupTopologyValue.Subtopology
TopicInfo = StreamsGroupTopologyValue.TopicInfo
CopartitionGroup = Subtopology.CopartitionGroup


class Topology(NamedTuple):
    """As the record says it (``StreamsTopology``)."""

    epoch: int
    subtopologies: dict[str, Subtopology]
    """By their ids, in the order in which Apache Kafka goes through them."""
    subtopology_of: dict[str, str]
    """By topic, source or repartition: the id of the subtopology that reads it."""

    @classmethod
    def of(cls, value: StreamsGroupTopologyValue) -> "Topology":
        """:raises UnknownServerError: its epoch is negative, or two subtopologies have one id"""
        by_id = {each.subtopology_id: each for each in value.subtopologies}
        if value.epoch < 0:
            raise UnknownServerError("a topology has a negative epoch")
        if len(by_id) < len(value.subtopologies):
            raise UnknownServerError("two subtopologies have the same id")
        subtopology_of: dict[str, str] = {}
        for each in value.subtopologies:
            for name in inputs(each):
                subtopology_of[name] = each.subtopology_id
        return cls(value.epoch, {each: by_id[each] for each in hash_map_order(by_id)}, subtopology_of)

    @property
    def required_topics(self) -> set[str]:
        """All topics that it reads, or keeps state in."""
        changelogs = {info.name for each in self.subtopologies.values() for info in each.state_changelog_topics}
        return changelogs | self.subtopology_of.keys()


def inputs(subtopology: Subtopology) -> list[str]:
    """The topics that it reads: others' first, then those that another subtopology writes."""
    return [*subtopology.source_topics, *(info.name for info in subtopology.repartition_source_topics)]


def copartitioned(subtopology: Subtopology) -> list[set[str]]:
    """The groups of topics that must have the same number of partitions.

    :raises UnknownServerError: a group names a topic by a number that there is not
    """
    sources = dict(enumerate(subtopology.source_topics))  # not the list: it would take a negative number for a place
    repartitioned = dict(enumerate(each.name for each in subtopology.repartition_source_topics))
    try:
        return [
            {sources[at] for at in group.source_topics} | {repartitioned[at] for at in group.repartition_source_topics}
            for group in subtopology.copartition_groups
        ]
    except KeyError:
        raise UnknownServerError("a copartition group names a topic that the subtopology does not have") from None

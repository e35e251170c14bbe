"""A topology: the subtopologies of an application, and the topics that they read and write.

Knows nothing of which topics exist.
"""

from typing import NamedTuple

from barnabas.errors import UnknownServerError
from barnabas.groups.java_hash import hash_map_order
from barnabas.wire.messages.group_records import StreamsGroupTopologyValue

Subtopology = StreamsGroupTopologyValue.Subtopology
TopicInfo = StreamsGroupTopologyValue.TopicInfo
CopartitionGroup = Subtopology.CopartitionGroup


class Topology(NamedTuple):
    """A topology, as its record describes it (``StreamsTopology``)."""

    epoch: int
    subtopologies: dict[str, Subtopology]
    """By subtopology id, in the order in which Apache Kafka iterates over them."""
    subtopology_of: dict[str, str]
    """By source or repartition topic: the id of the subtopology that reads it."""

    @classmethod
    def of(cls, value: StreamsGroupTopologyValue) -> "Topology":
        """Returns the topology of a record.

        :raises UnknownServerError: its epoch is negative, or two subtopologies have the same id
        """
        by_id = {each.subtopology_id: each for each in value.subtopologies}
        if value.epoch < 0:
            raise UnknownServerError("Topology epoch must be non-negative.")
        if len(by_id) < len(value.subtopologies):
            raise UnknownServerError("two subtopologies have the same id")
        subtopology_of: dict[str, str] = {}
        for each in value.subtopologies:
            for name in inputs(each):
                subtopology_of[name] = each.subtopology_id
        return cls(value.epoch, {each: by_id[each] for each in hash_map_order(by_id)}, subtopology_of)

    @property
    def required_topics(self) -> set[str]:
        """All source, repartition and changelog topics."""
        changelogs = {info.name for each in self.subtopologies.values() for info in each.state_changelog_topics}
        return changelogs | self.subtopology_of.keys()


def inputs(subtopology: Subtopology) -> list[str]:
    """Returns the topics that the subtopology reads: source topics, then repartition topics."""
    return [*subtopology.source_topics, *(info.name for info in subtopology.repartition_source_topics)]


def copartitioned(subtopology: Subtopology) -> list[set[str]]:
    """Returns the groups of topics that must have equal partition counts.

    :raises UnknownServerError: a group has the index of a topic that does not exist
    """
    sources = dict(enumerate(subtopology.source_topics))  # a list would accept a negative index
    repartitioned = dict(enumerate(each.name for each in subtopology.repartition_source_topics))
    try:
        return [
            {sources[at] for at in group.source_topics} | {repartitioned[at] for at in group.repartition_source_topics}
            for group in subtopology.copartition_groups
        ]
    except KeyError:
        raise UnknownServerError("a copartition group names a topic that the subtopology does not have") from None

"""Which share partitions of a group have state at the share coordinator.

Knows nothing of members, nor of what the state is. The group coordinator writes it as the record
``ShareGroupStatePartitionMetadata``.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple


class Topic(NamedTuple):
    """Partitions of a topic that are initializing or initialized."""

    name: str
    partitions: frozenset[int]


class StateMetadata(NamedTuple):
    """The share partitions with state at the share coordinator, by topic id."""

    initializing: Mapping[bytes, Topic] = {}
    initialized: Mapping[bytes, Topic] = {}
    deleting: Mapping[bytes, str] = {}
    """Topic names. All partitions of the topic are being deleted."""

    def of_topics(self, topic_ids: Collection[bytes]) -> "StateMetadata":
        """Returns the metadata of these topics alone."""
        return StateMetadata(
            {topic_id: topic for topic_id, topic in self.initializing.items() if topic_id in topic_ids},
            {topic_id: topic for topic_id, topic in self.initialized.items() if topic_id in topic_ids},
            {topic_id: name for topic_id, name in self.deleting.items() if topic_id in topic_ids},
        )

    def with_initializing(self, topics: Mapping[bytes, Topic]) -> "StateMetadata":
        """Returns the metadata with more partitions that are initializing."""
        return self._replace(initializing=with_partitions(self.initializing, topics.items()))

    def partitions(self) -> dict[bytes, frozenset[int]]:
        """Returns all partitions that are initializing or initialized."""
        every = dict.fromkeys([*self.initialized, *self.initializing])
        return {each: partitions_of(self.initialized, each) | partitions_of(self.initializing, each) for each in every}


def partitions_of(topics: Mapping[bytes, Topic], topic_id: bytes) -> frozenset[int]:
    topic = topics.get(topic_id)
    return frozenset() if topic is None else topic.partitions


def with_partitions(topics: Mapping[bytes, Topic], more: Iterable[tuple[bytes, Topic]]) -> dict[bytes, Topic]:
    """Returns the topics with more partitions."""
    merged = dict(topics)
    for topic_id, topic in more:
        merged[topic_id] = Topic(topic.name, topic.partitions | partitions_of(merged, topic_id))
    return merged


def without_partitions(topics: Mapping[bytes, Topic], fewer: Iterable[tuple[bytes, int]]) -> dict[bytes, Topic]:
    """Returns the topics without these partitions. Topics without partitions are dropped."""
    doomed: dict[bytes, set[int]] = {}
    for topic_id, partition in fewer:
        doomed.setdefault(topic_id, set()).add(partition)
    left = {
        topic_id: Topic(topic.name, topic.partitions - doomed.get(topic_id, set()))
        for topic_id, topic in topics.items()
    }
    return {topic_id: topic for topic_id, topic in left.items() if topic.partitions or topic_id not in doomed}

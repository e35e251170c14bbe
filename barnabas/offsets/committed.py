"""The committed offsets of all groups, in memory, by group, topic and partition.

Knows nothing of records or members, nor of who may commit.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from barnabas.wire.types import ZERO_UUID

NO_OFFSET = -1
NO_LEADER_EPOCH = -1
NO_EXPIRY = -1


class CommittedOffset(NamedTuple):
    """A committed offset (Kafka's ``OffsetAndMetadata``)."""

    offset: int
    """The next offset to read. Clients may commit -1, or an offset past the end."""
    leader_epoch: int
    """The leader epoch of the last record that was read, or -1."""
    metadata: str
    """A text of the client's own; empty instead of null."""
    commit_timestamp_ms: int
    expire_timestamp_ms: int = NO_EXPIRY
    """When the offset expires if the commit brought its own retention (OffsetCommit 2-4); -1 if the broker's applies.
    """
    topic_id: bytes = ZERO_UUID
    """16 bytes; all zero if the id is unknown."""

    def is_expired(self, base_timestamp_ms: int, now_ms: int, retention_ms: int) -> bool:
        """Returns whether the offset has expired.

        :param base_timestamp_ms: the time from which the broker's retention counts
        """
        if self.expire_timestamp_ms != NO_EXPIRY:
            return now_ms >= self.expire_timestamp_ms
        return now_ms - base_timestamp_ms >= retention_ms


Partitions = Mapping[int, CommittedOffset]
Topics = Mapping[str, Partitions]

NOTHING: Topics = {}


class CommittedOffsets:
    """The committed offsets by group. Knows nothing of transactions, which ``group_offsets.py`` adds.

    >>> offsets = CommittedOffsets()
    >>> offsets.put("readers", "songs", 0, CommittedOffset(7, -1, "", 1_700_000_000_000))
    >>> offsets.of("readers")["songs"][0].offset
    7
    >>> offsets.of("nobody")
    {}
    """

    def __init__(self) -> None:
        self._groups: dict[str, dict[str, dict[int, CommittedOffset]]] = {}

    def of(self, group_id: str) -> Topics:
        """Returns a group's offsets by topic and partition, which must not be changed; empty if there are none."""
        return self._groups.get(group_id, NOTHING)

    def get(self, group_id: str, topic: str, partition: int) -> CommittedOffset | None:
        """Returns the committed offset of one partition; None if there is none."""
        partitions = self.of(group_id).get(topic)
        return partitions.get(partition) if partitions is not None else None

    def put(self, group_id: str, topic: str, partition: int, committed: CommittedOffset) -> None:
        """Commits an offset, and replaces the one before it."""
        self._groups.setdefault(group_id, {}).setdefault(topic, {})[partition] = committed

    def remove(self, group_id: str, topic: str, partition: int) -> None:
        """Removes an offset, if there is one."""
        topics = self._groups.get(group_id)
        if topics is None or topic not in topics:
            return
        topics[topic].pop(partition, None)
        if not topics[topic]:
            del topics[topic]
        if not topics:
            del self._groups[group_id]

    def clear(self) -> None:
        """Removes all offsets."""
        self._groups.clear()

    def positions(self, group_id: str) -> Iterator[tuple[str, int]]:
        """Yields each (topic, partition) of the group. The offsets may be changed meanwhile."""
        for topic, partitions in list(self.of(group_id).items()):
            for partition in list(partitions):
                yield topic, partition

    def groups_of(self, topic: str) -> list[str]:
        """Returns the groups that have committed an offset of the topic."""
        return [group_id for group_id, topics in self._groups.items() if topic in topics]

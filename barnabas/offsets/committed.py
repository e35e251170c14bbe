"""What each group has committed, in memory: group, topic, partition -> offset.

Knows nothing of records, of members, or of who may commit.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from barnabas.wire.types import ZERO_UUID

NO_OFFSET = -1
NO_LEADER_EPOCH = -1
NO_EXPIRY = -1
LATEST_EXPIRY = 2**63 - 1
"""The last timestamp that a record has room for: what is to be kept for longer is kept until then."""


class CommittedOffset(NamedTuple):
    """Where a group goes on reading one partition (Kafka's ``OffsetAndMetadata``)."""

    offset: int
    """The next offset to read; clients may commit -1, or one past the end."""
    leader_epoch: int
    """Of the last record that was read, or -1."""
    metadata: str
    """What the client wants to remember; empty rather than null."""
    commit_timestamp_ms: int
    expire_timestamp_ms: int = NO_EXPIRY
    """When it goes, if the commit said so itself (OffsetCommit 2-4), or -1: then the group's retention decides."""
    topic_id: bytes = ZERO_UUID
    """16 bytes; all zero where it is not known."""

    def is_expired(self, base_timestamp_ms: int, now_ms: int, retention_ms: int) -> bool:
        """Whether nobody has needed it for long enough; ``base_timestamp_ms`` is when the wait began."""
        if self.expire_timestamp_ms != NO_EXPIRY:
            return now_ms >= self.expire_timestamp_ms
        return now_ms - base_timestamp_ms >= retention_ms


Partitions = Mapping[int, CommittedOffset]
Topics = Mapping[str, Partitions]

NOTHING: Topics = {}


class CommittedOffsets:
    """All that has been committed, by group. Knows nothing of transactions (``group_offsets.py``).

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
        """By topic, then partition; empty for a group that has committed nothing. Not to be changed."""
        return self._groups.get(group_id, NOTHING)

    def get(self, group_id: str, topic: str, partition: int) -> CommittedOffset | None:
        """The one, or None."""
        partitions = self.of(group_id).get(topic)
        return partitions.get(partition) if partitions is not None else None

    def put(self, group_id: str, topic: str, partition: int, committed: CommittedOffset) -> None:
        """Commit; what was there is gone."""
        self._groups.setdefault(group_id, {}).setdefault(topic, {})[partition] = committed

    def remove(self, group_id: str, topic: str, partition: int) -> None:
        """Forget one; harmless when there is none."""
        topics = self._groups.get(group_id)
        if topics is None or topic not in topics:
            return
        topics[topic].pop(partition, None)
        if not topics[topic]:
            del topics[topic]
        if not topics:
            del self._groups[group_id]

    def clear(self) -> None:
        """Forget them all."""
        self._groups.clear()

    def positions(self, group_id: str) -> Iterator[tuple[str, int]]:
        """Each (topic, partition) of the group. The offsets may change meanwhile."""
        for topic, partitions in list(self.of(group_id).items()):
            for partition in list(partitions):
                yield topic, partition

    def groups_of(self, topic: str) -> list[str]:
        """The groups that have committed an offset of that topic."""
        return [group_id for group_id, topics in self._groups.items() if topic in topics]

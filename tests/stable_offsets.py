"""Fetches the stable offsets of a group from a coordinator without pending writes.

Knows nothing of brokers.
"""

from collections.abc import Collection

from barnabas.errors import KafkaError
from barnabas.groups.coordinator import GroupCoordinator
from barnabas.offsets.committed import Topics
from barnabas.offsets.pending import Position


def stable_offsets(groups: GroupCoordinator, group_id: str) -> tuple[Topics, Collection[Position]]:
    """Returns the offsets, and the partitions with pending ones."""
    replies: list[tuple[KafkaError | None, Topics, Collection[Position]]] = []
    groups.fetch_stable_offsets(group_id, lambda *reply: replies.append(reply))
    ((error, committed, pending),) = replies
    assert error is None
    return committed, pending

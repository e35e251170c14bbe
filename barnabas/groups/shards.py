"""Which shard serves a group, as the coordinators of all kinds of groups ask it.

Knows nothing of elections or logs: the coordinator runtime does.
"""

from collections.abc import Iterable
from typing import Protocol

from barnabas.groups.shard import GroupShard


class Shards(Protocol):
    """The shards of the group coordinator on this node."""

    def shard(self, group_id: str, /) -> GroupShard:
        """Returns the shard that keeps the group.

        :raises NotCoordinator: it is not on this node
        :raises CoordinatorLoadInProgress: it is being loaded
        """

    def shards(self) -> Iterable[GroupShard]:
        """Returns all shards on this node. :raises CoordinatorLoadInProgress: one of them is being loaded"""

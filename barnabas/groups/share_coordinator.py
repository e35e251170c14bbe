"""The commands of share groups, each for the shard of its group.

Knows nothing of how a group changes.
"""

from collections.abc import Collection, Mapping

from barnabas.errors import InvalidGroupId
from barnabas.groups.records import has_place_for
from barnabas.groups.shard import Shards
from barnabas.groups.share.messages import DescribedGroup, Heartbeat, HeartbeatReply
from barnabas.groups.share.share_groups import ShareGroups, check_shape
from barnabas.groups.share.state_manager import PartitionsReply, TopicsReply


class ShareGroupCoordinator:
    """The share groups that this node coordinates. Each method raises a KafkaError if the whole command is refused."""

    def __init__(self, shards: Shards) -> None:
        self._shards = shards

    def heartbeat(self, request: Heartbeat, reply: HeartbeatReply) -> None:
        """Handles a ShareGroupHeartbeat. Replies once its records are durable."""
        check_shape(request)
        self._shards.shard(request.group_id).share.heartbeat(request, reply)

    def describe(self, group_id: str) -> DescribedGroup:
        """Describes one group."""
        return self._groups_of(group_id).describe(group_id)

    def initialized(self, group_id: str) -> dict[bytes, list[int]]:
        """Returns the initialized share partitions of a group by topic id; none if there is no such group."""
        return self._groups_of(group_id).states.initialized(group_id)

    def alter_offsets(self, group_id: str, starts: Mapping[bytes, Mapping[int, int]], reply: PartitionsReply) -> None:
        """Handles an AlterShareGroupOffsets for partitions that exist. Replies once their state is initialized.

        :param starts: the start offsets by topic id and partition
        """
        if not has_place_for(group_id):
            raise InvalidGroupId("Group ids of that length cannot be kept.")
        self._groups_of(group_id).states.alter_offsets(group_id, starts, reply)

    def delete_offsets(self, group_id: str, topic_ids: Collection[bytes], reply: TopicsReply) -> None:
        """Handles a DeleteShareGroupOffsets for topics that exist. Replies once their state is deleted."""
        self._groups_of(group_id).states.delete_offsets(group_id, topic_ids, reply)

    def _groups_of(self, group_id: str) -> ShareGroups:
        if not group_id:
            raise InvalidGroupId
        return self._shards.shard(group_id).share

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
    """The share groups that this node coordinates. Each method raises the KafkaError of the whole command."""

    def __init__(self, shards: Shards) -> None:
        self._shards = shards

    def heartbeat(self, request: Heartbeat, reply: HeartbeatReply) -> None:
        """ShareGroupHeartbeat: replies when what it changes is written."""
        check_shape(request)
        self._shards.shard(request.group_id).share.heartbeat(request, reply)

    def describe(self, group_id: str) -> DescribedGroup:
        """ShareGroupDescribe, one of them."""
        return self._groups_of(group_id).describe(group_id)

    def initialized(self, group_id: str) -> dict[bytes, list[int]]:
        """Returns the partitions of a group that have share state, by topic id; none if there is no such group."""
        return self._groups_of(group_id).states.initialized(group_id)

    def alter_offsets(self, group_id: str, starts: Mapping[bytes, Mapping[int, int]], reply: PartitionsReply) -> None:
        """AlterShareGroupOffsets, of partitions that exist: replies when the states are initialized.

        :param starts: topic id -> partition -> start offset
        """
        if not has_place_for(group_id):
            raise InvalidGroupId("Group ids of that length cannot be kept.")
        self._groups_of(group_id).states.alter_offsets(group_id, starts, reply)

    def delete_offsets(self, group_id: str, topic_ids: Collection[bytes], reply: TopicsReply) -> None:
        """DeleteShareGroupOffsets, of topics that exist: replies when the states are deleted."""
        self._groups_of(group_id).states.delete_offsets(group_id, topic_ids, reply)

    def _groups_of(self, group_id: str) -> ShareGroups:
        if not group_id:
            raise InvalidGroupId
        return self._shards.shard(group_id).share

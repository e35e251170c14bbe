"""The commands of streams groups, each for the shard of its group.

Knows nothing of how a group changes.
"""

from barnabas.errors import KafkaError
from barnabas.groups.shard import Shards
from barnabas.groups.streams.messages import DescribedGroup, Heartbeat, HeartbeatReply, HeartbeatResult
from barnabas.groups.streams.validating import validate


class StreamsGroupCoordinator:
    """The streams groups that this node coordinates."""

    def __init__(self, shards: Shards) -> None:
        self._shards = shards

    def heartbeat(self, request: Heartbeat, reply: HeartbeatReply) -> None:
        """Handles a StreamsGroupHeartbeat. Replies once its records are durable."""
        try:
            validate(request)
            groups = self._shards.shard(request.group_id).streams
        except KafkaError as error:
            reply(HeartbeatResult.refused(error))
        else:
            groups.heartbeat(request, reply)

    def describe(self, group_id: str) -> DescribedGroup:
        """Describes one group. :raises GroupIdNotFound: there is no streams group with that id"""
        return self._shards.shard(group_id).streams.describe(group_id)

    def describe_topology(self, group_id: str, member_id: str, topology_epoch: int, description: object) -> None:
        """Handles a StreamsGroupTopologyDescriptionUpdate: stores a member's description of the topology.

        :raises KafkaError: there is no such group, member or topology
        """
        self._shards.shard(group_id).streams.describe_topology(group_id, member_id, topology_epoch, description)

"""The commands of consumer groups, each for the shard of its group.

Knows nothing of how a group changes.
"""

from collections.abc import Callable

from barnabas.config.settings import Settings
from barnabas.errors import InvalidGroupId, KafkaError
from barnabas.groups.assigning import names_of
from barnabas.groups.consumer.checks import check_shape
from barnabas.groups.consumer.messages import DescribedGroup, Heartbeat, HeartbeatReply, HeartbeatResult
from barnabas.groups.shard import Shards


class ConsumerGroupCoordinator:
    """The consumer groups that this node coordinates."""

    def __init__(self, shards: Shards, settings: Callable[[], Settings]) -> None:
        self._shards = shards
        self._settings = settings

    def heartbeat(self, request: Heartbeat, reply: HeartbeatReply) -> None:
        """Handles a ConsumerGroupHeartbeat. Replies once its records are durable."""
        try:
            check_shape(request, names_of(self._settings()["group.consumer.assignors"]))
            groups = self._shards.shard(request.group_id).consumer
        except KafkaError as error:
            reply(HeartbeatResult.refused(error))
        else:
            groups.heartbeat(request, reply)

    def describe(self, group_id: str) -> DescribedGroup:
        """Describes one group. :raises GroupIdNotFound: there is no consumer group with that id"""
        if not group_id:
            raise InvalidGroupId
        return self._shards.shard(group_id).consumer.describe(group_id)

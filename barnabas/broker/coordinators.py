"""The coordinators of a node. Elects and resigns their shards as the leadership of the internal topics changes.

Knows nothing of what they coordinate.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from barnabas.broker.environment import NodeEnvironment
from barnabas.broker.group_runtime import GroupRuntime
from barnabas.broker.transaction_runtime import TransactionRuntime
from barnabas.cluster.image.image import MetadataDelta
from barnabas.cluster.topic_names import SHARE_GROUP_STATE
from barnabas.coordinators.runtime import CoordinatorRuntime
from barnabas.groups.persister import Persister
from barnabas.transactions.messages import SendMarkers

if TYPE_CHECKING:
    from barnabas.broker.share_runtime import ShareRuntime


class Coordinators:
    """The runtimes of one node. The runtime of the share coordinator is created on first use."""

    def __init__(
        self,
        node: NodeEnvironment,
        *,
        persister: Callable[[], Persister],
        send_markers: SendMarkers,
        next_producer_id: Callable[[], int],
    ) -> None:
        self._node = node
        self.groups = GroupRuntime(node, persister)
        self.transactions = TransactionRuntime(node, send_markers, next_producer_id)
        self._share: ShareRuntime | None = None
        self._has_started = False

    @property
    def share(self) -> "ShareRuntime":
        if self._share is None:
            from barnabas.broker.share_runtime import ShareRuntime

            self._share = ShareRuntime(self._node)
            if self._has_started:
                self._share.start(self._led(self._share))
        return self._share

    def _runtimes(self) -> Iterator[CoordinatorRuntime[Any]]:
        """Yields the runtimes, each after those that it uses: groups use share state, transactions use groups."""
        if self._share is not None:
            yield self._share
        yield self.groups
        yield self.transactions

    # ------------------------------------------------------------ life

    def start(self) -> None:
        """Loads the shards of the partitions that this node leads, and follows the metadata from now on."""
        if SHARE_GROUP_STATE in self._node.image.topics_by_name:
            _ = self.share
        self._has_started = True
        for runtime in self._runtimes():
            runtime.start(self._led(runtime))

    def _led(self, runtime: CoordinatorRuntime[Any]) -> dict[int, int]:
        """Returns the leader epochs of the partitions that this node leads, by their index."""
        topic = self._node.image.topics_by_name.get(runtime.topic)
        partitions = {} if topic is None else topic.partitions
        node_id = self._node.node_id
        return {index: each.leader_epoch for index, each in sorted(partitions.items()) if each.leader == node_id}

    def stop(self) -> None:
        """Resigns all shards."""
        self._has_started = False
        for runtime in self._runtimes():
            runtime.stop()

    # ------------------------------------------------------------ metadata

    def on_image(self, delta: MetadataDelta) -> None:
        """Elects and resigns shards, and tells the remaining shards which topics have changed."""
        if not self._has_started:
            return
        for runtime in self._runtimes():
            self._follow(runtime, delta)
        self.groups.on_image(delta)
        self.transactions.on_image(delta)
        if self._share is not None:
            self._share.on_image(delta)

    def _follow(self, runtime: CoordinatorRuntime[Any], delta: MetadataDelta) -> None:
        """Elects and resigns the shards whose partitions have changed."""
        if any(topic.name == runtime.topic for topic in delta.deleted_topics.values()):
            runtime.resign_all()
        topic = self._node.image.topics_by_name.get(runtime.topic)
        if topic is None:
            return
        for index in sorted(delta.partitions.get(topic.id, ())):
            partition = topic.partitions[index]
            if partition.leader == self._node.node_id:
                runtime.elect(index, partition.leader_epoch)
            else:
                runtime.resign(index)

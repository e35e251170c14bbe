"""The coordinators of a node. Elects and resigns their shards as the leadership of the internal topics changes.

Knows nothing of what they coordinate.
"""

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from barnabas.broker.environment import NodeEnvironment
from barnabas.cluster.image.image import MetadataDelta
from barnabas.cluster.topic_names import CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE

if TYPE_CHECKING:
    from barnabas.broker.group_runtime import GroupRuntime
    from barnabas.broker.marker_sender import MarkerSender
    from barnabas.broker.share_runtime import ShareRuntime
    from barnabas.broker.transaction_runtime import TransactionRuntime
    from barnabas.groups.persister import Persister

    Runtime = GroupRuntime | ShareRuntime | TransactionRuntime

RUNTIMES = {SHARE_GROUP_STATE: "share", CONSUMER_OFFSETS: "groups", TRANSACTION_STATE: "transactions"}
"""The runtimes by their topics, each after those that it uses: groups use share state, transactions use groups."""


class Coordinators:
    """The runtimes of one node. Each is created on first use, or when its topic exists: imports delay the start."""

    def __init__(
        self,
        node: NodeEnvironment,
        *,
        persister: "Callable[[], Persister]",
        marker_sender: "Callable[[], MarkerSender]",
        next_producer_id: Callable[[], int],
    ) -> None:
        self._node = node
        self._persister = persister
        self._marker_sender = marker_sender
        self._next_producer_id = next_producer_id
        self._has_started = False

    @cached_property
    def share(self) -> "ShareRuntime":
        from barnabas.broker.share_runtime import ShareRuntime

        return ShareRuntime(self._node)

    @cached_property
    def groups(self) -> "GroupRuntime":
        from barnabas.broker.group_runtime import GroupRuntime

        return GroupRuntime(self._node, self._persister)

    @cached_property
    def transactions(self) -> "TransactionRuntime":
        from barnabas.broker.transaction_runtime import TransactionRuntime

        return TransactionRuntime(self._node, self._marker_sender().send, self._next_producer_id)

    def _runtimes(self) -> "Iterator[Runtime]":
        """Yields the runtimes that are in use, or whose topic exists, in the order of :data:`RUNTIMES`."""
        topics = self._node.image.topics_by_name
        for topic, name in RUNTIMES.items():
            if name in vars(self) or topic in topics:
                yield getattr(self, name)

    # ------------------------------------------------------------ life

    def start(self) -> None:
        """Loads the shards of the partitions that this node leads, and follows the metadata from now on."""
        self._has_started = True
        for runtime in self._runtimes():
            runtime.start(self._led(runtime))

    def _led(self, runtime: "Runtime") -> dict[int, int]:
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
        runtimes = list(self._runtimes())
        for runtime in runtimes:
            self._follow(runtime, delta)
        for runtime in runtimes:
            runtime.on_image(delta)

    def _follow(self, runtime: "Runtime", delta: MetadataDelta) -> None:
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

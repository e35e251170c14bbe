"""An internal topic of a coordinator: creates it, and finds the partition of a key.

Knows nothing of the contents of its records.
"""

import logging
from collections.abc import Callable, Sequence

from barnabas.broker.environment import NodeEnvironment
from barnabas.cluster.controller.commands.topics import CreatedTopic
from barnabas.cluster.image.image import MetadataImage
from barnabas.cluster.internal_topics import new_internal_topic
from barnabas.cluster.replication.partition import Partition
from barnabas.coordinators.environment import Environment
from barnabas.errors import CoordinatorNotAvailable, KafkaError, TopicAlreadyExists
from barnabas.groups.java_hash import partition_of
from barnabas.log_limit import LogLimit

logger = logging.getLogger(__name__)

BASE_SEQUENCE = 0
"""The base sequence of all batches of the group and the share coordinator."""


def runtime_environment(
    node: NodeEnvironment, topic: str, *, load_buffer_size: str, write_timeout_ms: str
) -> Environment:
    """Returns the environment of the runtime of that internal topic.

    :param load_buffer_size: the name of the config with the number of bytes to read at once
    :param write_timeout_ms: the name of the config that says how long a write may wait for the in-sync replicas
    """
    internal = InternalTopic(node, topic)
    return Environment(
        node.clock,
        node.scheduler,
        internal.partition,
        internal.partition_of,
        internal.create,
        lambda: int(node.config[load_buffer_size]),
        lambda: int(node.config[write_timeout_ms]),
    )


class InternalTopic:
    """One internal topic."""

    def __init__(self, node: NodeEnvironment, name: str) -> None:
        self._node = node
        self._name = name
        self._creation_failures = LogLimit(node.clock)
        self._counted: MetadataImage | None = None  # the image whose partitions are counted
        self._partitions = 0

    def create(self, done: Callable[[KafkaError | None], object]) -> None:
        """Creates the topic if there is none, and calls ``done`` when it exists, or with COORDINATOR_NOT_AVAILABLE."""
        node, name = self._node, self._name
        if name in node.image.topics_by_name:
            done(None)
            return

        def created(results: Sequence[CreatedTopic] | None, error: KafkaError | None) -> None:
            why = error if results is None else next((each.error for each in results), None)
            if name in node.image.topics_by_name:
                done(None)
            elif why is None or isinstance(why, TopicAlreadyExists):
                done(CoordinatorNotAvailable())  # another node has requested it: the metadata will tell
            else:
                if self._creation_failures.is_due(why):
                    logger.warning("Cannot create %s: %s", name, why)
                done(CoordinatorNotAvailable())

        node.create_topics([new_internal_topic(name, node.config)], created)

    def partition_of(self, key: str) -> int:
        """Returns the index of the partition of ``key``, even before the topic exists."""
        image = self._node.image
        if image is not self._counted:  # each request of a group comes here
            topic = image.topics_by_name.get(self._name)
            self._partitions = 0 if topic is None else len(topic.partitions)
            self._counted = image
        return partition_of(key, self._partitions or new_internal_topic(self._name, self._node.config).num_partitions)

    def partition(self, index: int) -> Partition:
        """Returns the partition with that index. :raises KafkaError: this node does not host it"""
        return self._node.partition(self._name, index)

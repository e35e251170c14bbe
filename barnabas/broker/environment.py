"""The environment of the parts of a node: settings, clock, image, new topics and hosted partitions.

Knows nothing of its implementation, :class:`~barnabas.broker.broker.Broker`.
"""

from collections.abc import Callable, Sequence
from random import Random
from typing import TYPE_CHECKING, Protocol, TypeAlias

from barnabas.clock import Clock, Scheduler
from barnabas.cluster.image.image import MetadataImage
from barnabas.cluster.replication.partition import Partition
from barnabas.config import BrokerConfig
from barnabas.errors import KafkaError

if TYPE_CHECKING:
    from barnabas.cluster.controller.commands.topics import CreatedTopic, NewTopic

Created: TypeAlias = "Callable[[Sequence[CreatedTopic] | None, KafkaError | None], object]"


class NodeEnvironment(Protocol):
    """One node."""

    @property
    def node_id(self) -> int: ...

    @property
    def config(self) -> BrokerConfig:
        """The current configs."""

    @property
    def clock(self) -> Clock: ...

    @property
    def scheduler(self) -> Scheduler: ...

    @property
    def random(self) -> Random: ...

    @property
    def image(self) -> MetadataImage:
        """The committed state of the cluster."""

    def create_topics(self, wanted: "Sequence[NewTopic]", done: Created, /) -> None:
        """Asks the active controller to create topics; ``done`` gets a result for each, or the error of the request."""

    def partition(self, topic: str, index: int, /) -> Partition:
        """Returns a partition that this node hosts. :raises KafkaError: it does not host it"""

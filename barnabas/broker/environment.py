"""What the parts of a node need of it: its settings, its time, the image, the controller, and the hosted partitions.

Knows nothing of who provides it: :class:`~barnabas.broker.broker.Broker` does, and a part is handed no more than this.
"""

from random import Random
from typing import Protocol

from barnabas.clock import Clock, Scheduler
from barnabas.cluster.controller import Controller
from barnabas.cluster.image import MetadataImage
from barnabas.cluster.partition import Partition
from barnabas.config import BrokerConfig


class NodeEnvironment(Protocol):
    """One node, as far as its parts need it."""

    @property
    def node_id(self) -> int: ...

    @property
    def config(self) -> BrokerConfig:
        """The configs as they are now."""

    @property
    def clock(self) -> Clock: ...

    @property
    def scheduler(self) -> Scheduler: ...

    @property
    def random(self) -> Random: ...

    @property
    def image(self) -> MetadataImage:
        """The committed state of the cluster."""

    @property
    def controller(self) -> Controller: ...

    def partition(self, topic: str, index: int, /) -> Partition:
        """Returns a partition that this node hosts. :raises KafkaError: it does not host it"""

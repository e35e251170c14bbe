"""The environment of the parts of a node: settings, clock, image, controller and hosted partitions.

Knows nothing of its implementation, :class:`~barnabas.broker.broker.Broker`.
"""

from random import Random
from typing import Protocol

from barnabas.clock import Clock, Scheduler
from barnabas.cluster.controller.controller import Controller
from barnabas.cluster.image.image import MetadataImage
from barnabas.cluster.replication.partition import Partition
from barnabas.config import BrokerConfig


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

    @property
    def controller(self) -> Controller: ...

    def partition(self, topic: str, index: int, /) -> Partition:
        """Returns a partition that this node hosts. :raises KafkaError: it does not host it"""

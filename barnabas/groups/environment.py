"""What groups of each type need of their shard: the other groups, the ledger, time, the cluster and the configs.

Knows nothing of who provides it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from barnabas.clock import Clock
from barnabas.config.settings import Settings
from barnabas.deadlines import Deadlines
from barnabas.errors import CoordinatorNotAvailable
from barnabas.groups.group import Group
from barnabas.groups.ledger import Ledger
from barnabas.groups.persister import Persister

if TYPE_CHECKING:
    from barnabas.groups.rebalance import Rebalance


class PartitionView(Protocol):
    """One partition, as far as groups need it."""

    @property
    def replicas(self) -> tuple[int, ...]: ...


class TopicView(Protocol):
    """One topic."""

    @property
    def name(self) -> str: ...

    @property
    def id(self) -> bytes: ...

    @property
    def partitions(self) -> Mapping[int, PartitionView]: ...


class BrokerView(Protocol):
    """One broker."""

    @property
    def rack(self) -> str | None: ...


class ClusterView(Protocol):
    """The cluster as of one moment: the part of a ``MetadataImage`` that groups need."""

    @property
    def offset(self) -> int: ...

    @property
    def brokers(self) -> Mapping[int, BrokerView]: ...

    @property
    def topics_by_name(self) -> Mapping[str, TopicView]: ...

    @property
    def topics_by_id(self) -> Mapping[bytes, TopicView]: ...


class TopicToMake(NamedTuple):
    """A topic for the broker to create."""

    name: str
    partitions: int
    replication_factor: int
    """-1 for the broker's default."""
    configs: Sequence[tuple[str, str]] = ()


TopicsMade = Callable[[Mapping[str, str]], object]
"""Called with the topics that could not be created, and why."""

CreateTopics = Callable[[Sequence[TopicToMake], TopicsMade], object]


def no_topics(topics: Sequence[TopicToMake], made: TopicsMade) -> None:
    """Refuses to create topics, for a coordinator without a controller."""
    made({each.name: "there is no controller here" for each in topics})


def no_persister() -> Persister:
    """For a coordinator without a share coordinator."""
    raise CoordinatorNotAvailable("there is no share coordinator here")


@dataclass(frozen=True, slots=True)
class Environment:
    """What a shard provides to each type of group."""

    groups: dict[str, Group]
    """All groups of the shard, of each type."""
    ledger: Ledger
    clock: Clock
    deadlines: Deadlines
    new_uuid: Callable[[], str]
    image: Callable[[], ClusterView]
    config: Callable[[], Settings]
    """The broker's current configs, by their dotted names."""
    group_settings: Callable[[str], Settings]
    """The effective configs of a group: its own, then the broker's."""
    classic: "Rebalance"
    """Rebalances classic groups, for example one that has been downgraded."""
    persister: Callable[[], Persister] = no_persister
    """Sends requests to the share coordinator."""
    create_topics: CreateTopics = no_topics
    """Creates topics through the controller."""

"""What groups of every kind live in: the ledger, the clock, the cluster, the settings, and each other.

Knows nothing of what any of these is made of.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from barnabas.clock import Clock
from barnabas.deadlines import Deadlines
from barnabas.errors import CoordinatorNotAvailable
from barnabas.groups.config import Settings
from barnabas.groups.group import Group
from barnabas.groups.ledger import Ledger
from barnabas.groups.persister import Persister

if TYPE_CHECKING:
    from barnabas.groups.rebalance import Rebalance


class PartitionView(Protocol):
    """One partition, as far as groups have to know it."""

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
    """The cluster as it is at a moment: what a ``MetadataImage`` says of it."""

    @property
    def offset(self) -> int: ...

    @property
    def brokers(self) -> Mapping[int, BrokerView]: ...

    @property
    def topics_by_name(self) -> Mapping[str, TopicView]: ...

    @property
    def topics_by_id(self) -> Mapping[bytes, TopicView]: ...


class TopicToMake(NamedTuple):
    """A topic that a group needs, and that the broker is to make."""

    name: str
    partitions: int
    replication_factor: int
    """-1: the broker's default."""
    configs: Sequence[tuple[str, str]] = ()


TopicsMade = Callable[[Mapping[str, str]], object]
"""Takes the reasons why topics could not be made, by their names."""

CreateTopics = Callable[[Sequence[TopicToMake], TopicsMade], object]


def no_topics(topics: Sequence[TopicToMake], made: TopicsMade) -> None:
    """For a coordinator on its own."""
    made({each.name: "there is no controller here" for each in topics})


def no_persister() -> Persister:
    """For a coordinator on its own."""
    raise CoordinatorNotAvailable("there is no share coordinator here")


@dataclass(frozen=True, slots=True)
class Environment:
    """Handed to each kind of group when it is made."""

    groups: dict[str, Group]
    """All groups that are here, of every kind."""
    ledger: Ledger
    clock: Clock
    deadlines: Deadlines
    new_uuid: Callable[[], str]
    image: Callable[[], ClusterView]
    config: Callable[[], Settings]
    """The broker's configs as they are now, by their dotted names."""
    group_settings: Callable[[str], Settings]
    """The configs of a group as they are in effect: its own where they are set, the broker's where not."""
    classic: "Rebalance"
    """What moves classic groups on: one that was a consumer group until now, or is about to be one."""
    persister: Callable[[], Persister] = no_persister
    """Who keeps the state of the share partitions."""
    create_topics: CreateTopics = no_topics
    """Has the cluster make topics; told by name which could not be made, and why."""

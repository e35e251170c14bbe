"""The controller's commands about topics, and their results.

Knows nothing of requests and decisions.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from barnabas.errors import KafkaError


class MutationQuota(Protocol):
    """The quota of a client for mutations (KIP-599; ``ControllerRequestContext.applyPartitionChangeQuota``)."""

    def begin(self) -> None:
        """Resets the count: the command is decided for the first time, or again."""

    def count(self, partitions: int) -> None:
        """Counts partitions to be created or deleted.

        :raises ThrottlingQuotaExceeded: the quota is exhausted and strict
        """


class NoQuota:
    """A quota without a limit."""

    def begin(self) -> None:
        """Does nothing."""

    def count(self, partitions: int) -> None:
        """Counts nothing."""


NO_QUOTA = NoQuota()


class NewTopic(NamedTuple):
    """A topic to create, with counts (-1: the broker's default) or with the assigned replicas of each partition."""

    name: str
    num_partitions: int = -1
    replication_factor: int = -1
    assignments: Sequence[tuple[int, Sequence[int]]] = ()
    configs: Sequence[tuple[str, str | None]] = ()


class CreateTopics(NamedTuple):
    topics: Sequence[NewTopic]
    validate_only: bool = False
    quota: MutationQuota = NO_QUOTA


class CreatedTopic(NamedTuple):
    """The result of a :class:`NewTopic`. ``configs`` are those of the command."""

    name: str
    error: KafkaError | None = None
    id: bytes = bytes(16)
    num_partitions: int = -1
    replication_factor: int = -1
    configs: Mapping[str, str] = {}


class DeleteTopics(NamedTuple):
    """Each topic has a name, or an id; the id is zero if there is a name."""

    topics: Sequence[tuple[str | None, bytes]]
    quota: MutationQuota = NO_QUOTA


class DeletedTopic(NamedTuple):
    name: str | None
    id: bytes
    error: KafkaError | None = None


class MorePartitions(NamedTuple):
    name: str
    total: int  #: the number of partitions after the command
    assignments: Sequence[Sequence[int]] | None = None  #: the replicas of each new partition


class CreatePartitions(NamedTuple):
    topics: Sequence[MorePartitions]
    validate_only: bool = False
    quota: MutationQuota = NO_QUOTA


class TopicResult(NamedTuple):
    name: str
    error: KafkaError | None = None

"""The controller's commands about leaders and replicas, and their results.

Knows nothing of requests and decisions.
"""

from collections.abc import Sequence
from typing import NamedTuple

from barnabas.cluster.image.image import PartitionImage
from barnabas.errors import KafkaError

PREFERRED, UNCLEAN = range(2)


class ElectLeaders(NamedTuple):
    election_type: int
    partitions: Sequence[tuple[str, Sequence[int]]] | None  #: None: all partitions that need an election


class BalanceLeaders(NamedTuple):
    """Elects the preferred leaders of partitions. The result is whether there may be more to elect."""


class ElectUncleanLeaders(NamedTuple):
    """Elects unclean leaders of partitions without a leader, where configs allow it. The result is as above."""


class PartitionResult(NamedTuple):
    partition: int
    error: KafkaError | None = None


PartitionResults = list[tuple[str, list[PartitionResult]]]


class AlterPartitionReassignments(NamedTuple):
    """The target replicas of each partition; None cancels a reassignment (KIP-455)."""

    topics: Sequence[tuple[str, Sequence[tuple[int, Sequence[int] | None]]]]
    allow_replication_factor_change: bool = True


class IsrChange(NamedTuple):
    """The ISR that the leader of a partition proposes, and the partition's epochs as the leader knows them."""

    partition: int
    isr: Sequence[tuple[int, int]]  #: ids and epochs of brokers; -1 if the leader does not know the epoch
    leader_epoch: int
    partition_epoch: int
    leader_recovery_state: int = 0


class AlterPartition(NamedTuple):
    """Changes ISRs (KIP-497). The result has an :class:`AlteredPartition` for each partition, by topic."""

    broker_id: int
    broker_epoch: int
    topics: Sequence[tuple[bytes, Sequence[IsrChange]]]


class AlteredPartition(NamedTuple):
    partition: int
    error: KafkaError | None = None
    image: PartitionImage | None = None  #: the state, if there is no error

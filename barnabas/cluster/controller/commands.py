"""The commands of the controller, and their results.

Knows nothing of requests, nor of how commands are decided: a handler turns a request into a command. Errors in results
are exceptions, or None.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from barnabas.cluster.image.image import PartitionImage
from barnabas.config.endpoints import Endpoint
from barnabas.errors import KafkaError
from barnabas.security.acls import Acl, AclFilter

# ---------------------------------------------------------------- topics


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


# ---------------------------------------------------------------- configs

SET, DELETE, APPEND, SUBTRACT = range(4)


class ConfigChange(NamedTuple):
    """One operation of IncrementalAlterConfigs (KIP-339)."""

    name: str
    operation: int
    value: str | None


class ConfigResource(NamedTuple):
    type: int  #: 2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group
    name: str  #: the id of a broker, or empty for all brokers


class IncrementalAlterConfigs(NamedTuple):
    resources: Sequence[tuple[ConfigResource, Sequence[ConfigChange]]]
    validate_only: bool = False


class AlterConfigs(NamedTuple):
    """Replaces all configs of each resource."""

    resources: Sequence[tuple[ConfigResource, Sequence[tuple[str, str | None]]]]
    validate_only: bool = False


class AlteredConfigs(NamedTuple):
    resource: ConfigResource
    error: KafkaError | None = None


# ---------------------------------------------------------------- leaders and replicas

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


# ---------------------------------------------------------------- nodes


class RegisterBroker(NamedTuple):
    """Registers a broker that has started. It is fenced until it wants to be unfenced in a heartbeat."""

    id: int
    incarnation_id: bytes
    endpoints: Sequence[Endpoint]
    log_dirs: Sequence[bytes]
    features: Mapping[str, tuple[int, int]]  #: the supported levels by the names of features
    cluster_id: str
    rack: str | None = None
    previous_epoch: int = -1  #: the epoch at the last clean shutdown, -1 after an unclean one
    is_migrating: bool = False  #: whether it is a ZooKeeper broker


class BrokerHeartbeat(NamedTuple):
    """The heartbeat of a broker: its metadata offset, and the state that it wants. The result is a
    :class:`HeartbeatResult`.
    """

    id: int
    epoch: int
    metadata_offset: int  #: the last offset that the broker has applied
    want_fence: bool = False
    want_shut_down: bool = False
    offline_log_dirs: Sequence[bytes] = ()
    cordoned_log_dirs: Sequence[bytes] | None = None  #: None: unchanged


class HeartbeatResult(NamedTuple):
    is_caught_up: bool
    is_fenced: bool
    should_shut_down: bool


class FenceStaleBroker(NamedTuple):
    """Fences a broker whose session has expired. The result is whether there may be more of them."""


class WriteNoOp(NamedTuple):
    """Writes a NoOpRecord."""


class UnregisterBroker(NamedTuple):
    """Unregisters a broker."""

    id: int


class AssignReplicasToDirs(NamedTuple):
    """Records the directories of a broker's replicas. The result has an error or None for each assignment."""

    broker_id: int
    broker_epoch: int
    assignments: Sequence[tuple[bytes, int, bytes]]  #: topic id, partition, directory id


class RegisterController(NamedTuple):
    id: int
    incarnation_id: bytes
    endpoints: Sequence[Endpoint]
    features: Mapping[str, tuple[int, int]]


UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3


class FeatureUpdate(NamedTuple):
    """A new level of a feature, and the direction that is allowed (KIP-584)."""

    name: str
    level: int
    upgrade_type: int = UPGRADE


class UpdateFeatures(NamedTuple):
    """The updates of different features."""

    updates: Sequence[FeatureUpdate]
    validate_only: bool = False


class AllocateProducerIds(NamedTuple):
    """Allocates a block of producer ids. The result is the first id and the size of the block."""

    broker_id: int
    broker_epoch: int


# ---------------------------------------------------------------- security


class CreateAcls(NamedTuple):
    """Creates ACLs. The result has an error or None for each."""

    acls: Sequence[Acl]


class DeleteAcls(NamedTuple):
    """Deletes ACLs. The result has the deleted ACLs, or an error, for each filter."""

    filters: Sequence[AclFilter]


class QuotaAlteration(NamedTuple):
    """New values of an entity's quotas; None removes a quota. The name of a default entity is None."""

    entity: Mapping[str, str | None]  #: names by types
    values: Sequence[tuple[str, float | None]]


class AlterClientQuotas(NamedTuple):
    """Changes quotas. The result has an :class:`AlteredQuotas` for each entity."""

    alterations: Sequence[QuotaAlteration]
    validate_only: bool = False
    unresolvable: Collection[str] = ()  #: invalid IP addresses, and names that cannot be resolved


class AlteredQuotas(NamedTuple):
    entity: Mapping[str, str | None]
    error: KafkaError | None = None


class CreateDelegationToken(NamedTuple):
    """Creates a token; principals are in Kafka's notation. The result has the token's record and its secret."""

    owner: str
    requester: str
    renewers: Sequence[str] = ()
    max_lifetime_ms: int = -1  #: 0 or less: the configured maximum


class RenewDelegationToken(NamedTuple):
    """Renews a token. The result is its expiry, in milliseconds since 1970."""

    hmac: bytes
    requester: str
    period_ms: int = -1  #: from now on; 0 or less: the configured default

    def __repr__(self) -> str:
        return f"RenewDelegationToken({self.requester})"  # the HMAC is a password


class ExpireDelegationToken(NamedTuple):
    """Sets the expiry of a token. The result is its expiry, in milliseconds since 1970."""

    hmac: bytes
    requester: str
    period_ms: int = -1  #: from now on; less than 0: immediately

    def __repr__(self) -> str:
        return f"ExpireDelegationToken({self.requester})"


class RemoveExpiredTokens(NamedTuple):
    """Removes expired delegation tokens. The result is whether there may be more of them."""


class ScramUpsertion(NamedTuple):
    """A user's new credential; its bytes are secrets, which ``repr`` hides."""

    user: str
    mechanism: int
    iterations: int
    salt: bytes
    salted_password: bytes

    def __repr__(self) -> str:
        return f"ScramUpsertion(user={self.user!r}, mechanism={self.mechanism}, iterations={self.iterations})"


class ScramDeletion(NamedTuple):
    user: str
    mechanism: int


class AlterUserScramCredentials(NamedTuple):
    """Changes credentials. The result has an :class:`AlteredCredentials` for each user."""

    deletions: Sequence[ScramDeletion]
    upsertions: Sequence[ScramUpsertion]


class AlteredCredentials(NamedTuple):
    user: str
    error: KafkaError | None = None


# ---------------------------------------------------------------- given records


class WriteRecords(NamedTuple):
    """Writes records that are decided elsewhere, such as those of a saved state that a test restores. There is no
    result.
    """

    records: Sequence[Any]

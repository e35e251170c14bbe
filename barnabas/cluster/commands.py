"""What one can ask of the controller, and what it answers.

Knows nothing of how it is done, and nothing of requests: a handler turns a request into one of these. An answer holds
an error as the exception that it is, or None.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from barnabas.config.endpoints import Endpoint
from barnabas.errors import KafkaError

# ---------------------------------------------------------------- topics


class NewTopic(NamedTuple):
    """A topic to be made: by counts (-1 is the broker's default), or by an assignment of brokers to each partition."""

    name: str
    num_partitions: int = -1
    replication_factor: int = -1
    assignments: Sequence[tuple[int, Sequence[int]]] = ()
    configs: Sequence[tuple[str, str | None]] = ()


class CreateTopics(NamedTuple):
    topics: Sequence[NewTopic]
    validate_only: bool = False


class CreatedTopic(NamedTuple):
    """What became of a :class:`NewTopic`; ``configs`` are the ones that it was given."""

    name: str
    error: KafkaError | None = None
    id: bytes = bytes(16)
    num_partitions: int = -1
    replication_factor: int = -1
    configs: Mapping[str, str] = {}


class DeleteTopics(NamedTuple):
    """Each by name or by id, which is zero where there is a name."""

    topics: Sequence[tuple[str | None, bytes]]


class DeletedTopic(NamedTuple):
    name: str | None
    id: bytes
    error: KafkaError | None = None


class MorePartitions(NamedTuple):
    name: str
    total: int  #: how many partitions there are to be in the end
    assignments: Sequence[Sequence[int]] | None = None  #: brokers of each partition that is new


class CreatePartitions(NamedTuple):
    topics: Sequence[MorePartitions]
    validate_only: bool = False


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
    name: str  #: for a broker its id, or nothing, which is all brokers


class IncrementalAlterConfigs(NamedTuple):
    resources: Sequence[tuple[ConfigResource, Sequence[ConfigChange]]]
    validate_only: bool = False


class AlterConfigs(NamedTuple):
    """Replaces what was set before."""

    resources: Sequence[tuple[ConfigResource, Sequence[tuple[str, str | None]]]]
    validate_only: bool = False


class AlteredConfigs(NamedTuple):
    resource: ConfigResource
    error: KafkaError | None = None


# ---------------------------------------------------------------- leaders and replicas

PREFERRED, UNCLEAN = range(2)


class ElectLeaders(NamedTuple):
    election_type: int
    partitions: Sequence[tuple[str, Sequence[int]]] | None  #: None: all that need it


class PartitionResult(NamedTuple):
    partition: int
    error: KafkaError | None = None


PartitionResults = list[tuple[str, list[PartitionResult]]]


class AlterPartitionReassignments(NamedTuple):
    """For each partition the brokers that are to hold it, or None: call off what is under way (KIP-455)."""

    topics: Sequence[tuple[str, Sequence[tuple[int, Sequence[int] | None]]]]
    allow_replication_factor_change: bool = True


# ---------------------------------------------------------------- nodes


class RegisterBroker(NamedTuple):
    """A broker has started. It is fenced until :class:`UnfenceBroker`."""

    id: int
    incarnation_id: bytes
    endpoints: Sequence[Endpoint]
    log_dirs: Sequence[bytes]
    rack: str | None = None
    previous_epoch: int = -1  #: its epoch when it stopped cleanly, -1 when it did not


class AmendBroker(NamedTuple):
    """A broker that is registered has these directories, which the metadata had no place for when it started."""

    id: int
    log_dirs: Sequence[bytes]


class UnfenceBroker(NamedTuple):
    """The broker is ready to lead: partitions without a leader that it may lead get it."""

    id: int


class ShutDownBroker(NamedTuple):
    """The broker stops cleanly: what it leads others lead, or nobody until it is back, and it is fenced."""

    id: int


class AssignReplicasToDirs(NamedTuple):
    """The broker has these partitions in these directories; answered with an error or None for each."""

    broker_id: int
    assignments: Sequence[tuple[bytes, int, bytes]]  #: topic id, partition, directory id


class DirectoriesOffline(NamedTuple):
    """Of a broker's directories only these are left; the others have failed."""

    broker_id: int
    remaining: Sequence[bytes]  #: ids


class CordonLogDirs(NamedTuple):
    """The broker puts no new partitions into these of its directories, and into all others (KIP-1066)."""

    broker_id: int
    log_dirs: Sequence[bytes]


class RegisterController(NamedTuple):
    id: int
    incarnation_id: bytes
    endpoints: Sequence[Endpoint]


UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3


class FeatureUpdate(NamedTuple):
    """The level that a feature is to have, and which way it is meant to go (KIP-584)."""

    name: str
    level: int
    upgrade_type: int = UPGRADE


class UpdateFeatures(NamedTuple):
    """Names each feature once."""

    updates: Sequence[FeatureUpdate]
    validate_only: bool = False


class AllocateProducerIds(NamedTuple):
    """Answers the first id of a block that is nobody else's, and how many there are."""

    broker_id: int

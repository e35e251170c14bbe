"""The controller's commands about brokers and controllers, and their results.

Knows nothing of requests and decisions.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from barnabas.config.endpoints import Endpoint


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


class AllocateProducerIds(NamedTuple):
    """Allocates a block of producer ids. The result is the first id and the size of the block."""

    broker_id: int
    broker_epoch: int


class WriteRecords(NamedTuple):
    """Writes records that are decided elsewhere, such as those of a saved state that a test restores. There is no
    result.
    """

    records: Sequence[Any]

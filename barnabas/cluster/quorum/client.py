"""The contract between the metadata quorum and its users: append, committed records, leadership.

Knows nothing of how a quorum commits records. Apache Kafka's ``RaftClient`` and ``RaftClient.Listener`` (KIP-595).
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from barnabas.cluster.quorum.record_batches import Decoded, EncodedBatch
from barnabas.cluster.quorum.snapshots import KRaftState, SnapshotId
from barnabas.config.endpoints import Endpoint
from barnabas.wire.types import ZERO_UUID

NO_NODE = -1


class ReplicaKey(NamedTuple):
    """A node and its log directory. The directory id is zero if configs name the voters."""

    node_id: int
    directory_id: bytes = ZERO_UUID  #: the id of the directory with the metadata log

    def matches(self, other: "ReplicaKey") -> bool:
        """Returns whether both may be the same replica."""
        return self.node_id == other.node_id and (
            self.directory_id == other.directory_id or ZERO_UUID in (self.directory_id, other.directory_id)
        )


class CommittedBatch(NamedTuple):
    """A committed batch, which no election removes. A control batch has no records."""

    base_offset: int
    last_offset: int
    epoch: int
    timestamp: int  #: milliseconds since 1970
    size: int  #: bytes in the log
    records: Sequence[Any]  #: metadata records

    @classmethod
    def of(cls, decoded: Decoded) -> "CommittedBatch":
        """Returns a batch of the log."""
        batch = decoded.batch
        return cls(
            batch.base_offset,
            batch.last_offset,
            batch.partition_leader_epoch,
            batch.max_timestamp,
            batch.size_in_bytes,
            () if batch.is_control else decoded.records,
        )


class Leadership(NamedTuple):
    """The leader of an epoch; :data:`NO_NODE` if this node knows none."""

    leader_id: int = NO_NODE
    epoch: int = 0


class LastLeader(NamedTuple):
    """The leader that a node has followed last; :data:`NO_NODE` if it has followed none since it led itself."""

    node_id: int = NO_NODE
    answered: float = 0.0  #: when its epoch became known, or it last answered a fetch, in monotonic seconds


class QuorumListener(Protocol):
    """Follows the committed log. Calls are in log order, and never from within :meth:`QuorumClient.append`."""

    def snapshot_loaded(self, snapshot_id: SnapshotId, records: Sequence[Any], timestamp: int) -> None:
        """The log begins with this snapshot: its records replace the whole state."""
        ...

    def committed(self, batches: Sequence[CommittedBatch]) -> None:
        """These batches follow those that were committed before."""
        ...

    def leadership_changed(self, leadership: Leadership) -> None:
        """The leader or the epoch has changed."""
        ...


class QuorumClient(Protocol):
    """A node's interface to the quorum."""

    node_id: int
    leadership: Leadership
    last_leader: LastLeader
    voter_endpoints: Sequence[Endpoint]

    @property
    def kraft(self) -> KRaftState:
        """The voters and the version of the quorum."""
        ...

    @property
    def is_leader(self) -> bool:
        """Whether this node leads the quorum, and can append."""
        ...

    @property
    def next_offset(self) -> int:
        """The offset of the next appended record, while this node leads."""
        ...

    def append(self, batches: Sequence[EncodedBatch]) -> int:
        """Appends batches in the current epoch and returns the offset of the last record.

        Listeners are called when the batches are committed. If leadership is lost before that,
        :meth:`QuorumListener.leadership_changed` is called instead, and the batches may or may not be committed later.

        :raises NotController: this node does not lead the quorum
        :raises KafkaStorageError: the log cannot be written; nothing has been appended
        """
        ...

    def upgrade_kraft_version(self) -> None:
        """Appends the control records that raise ``kraft.version`` (KIP-853). Raises the errors of :meth:`append`."""
        ...

    @property
    def high_watermark(self) -> int | None:
        """The high watermark, if this node knows it."""
        ...

    @property
    def voter_directory_id(self) -> bytes:
        """The directory id of this voter; zero if voters have only node ids."""
        ...

    def voters(self) -> Mapping[int, ReplicaKey]:
        """Returns the voters by node id."""
        ...

    def endpoint_of(self, node_id: int) -> Endpoint | None:
        """Returns the endpoint of a controller, if this node knows it."""
        ...

    def endpoints_of(self, node_id: int) -> Sequence[Endpoint]:
        """Returns the endpoints of a controller for each of its listeners, if this node knows them."""
        ...

"""The contract between the metadata quorum and its users: append, committed records, leadership.

Knows nothing of how a quorum agrees. Apache Kafka's ``RaftClient`` and ``RaftClient.Listener`` (KIP-595).
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from barnabas.cluster.quorum.record_batches import EncodedBatch
from barnabas.cluster.quorum.snapshots import KRaftState, SnapshotId
from barnabas.config.endpoints import Endpoint
from barnabas.wire.types import ZERO_UUID

NO_NODE = -1


class ReplicaKey(NamedTuple):
    """A node and its log directory. Without a directory id, where configs name the voters, it is any."""

    node_id: int
    directory_id: bytes = ZERO_UUID  #: of the log directory that has the metadata log

    def matches(self, other: "ReplicaKey") -> bool:
        """Returns whether both may be the same replica."""
        return self.node_id == other.node_id and (
            self.directory_id == other.directory_id or ZERO_UUID in (self.directory_id, other.directory_id)
        )


class CommittedBatch(NamedTuple):
    """A committed batch: no election removes it. A control batch has no records."""

    base_offset: int
    last_offset: int
    epoch: int
    timestamp: int  #: milliseconds since 1970
    size: int  #: bytes in the log
    records: Sequence[Any]  #: metadata records


class Leadership(NamedTuple):
    """The leader of an epoch; :data:`NO_NODE` while the epoch has none that this node knows."""

    leader_id: int = NO_NODE
    epoch: int = 0


class QuorumListener(Protocol):
    """Follows the committed log. Calls come in log order, and never from within :meth:`QuorumClient.append`."""

    def snapshot_loaded(self, snapshot_id: SnapshotId, records: Sequence[Any], timestamp: int) -> None:
        """The log begins with this snapshot: everything known so far is replaced by these records."""
        ...

    def committed(self, batches: Sequence[CommittedBatch]) -> None:
        """These batches follow what was committed before."""
        ...

    def leadership_changed(self, leadership: Leadership) -> None:
        """There is another leader, or none, or another epoch."""
        ...


class QuorumClient(Protocol):
    """One node's access to the quorum."""

    node_id: int
    leadership: Leadership
    voter_endpoints: Sequence[Endpoint]

    @property
    def kraft(self) -> KRaftState:
        """The state of the quorum itself."""
        ...

    @property
    def is_leader(self) -> bool:
        """Whether this node leads the quorum, and can append."""
        ...

    @property
    def next_offset(self) -> int:
        """The offset that the next appended record gets, while this node leads."""
        ...

    def append(self, batches: Sequence[EncodedBatch]) -> int:
        """Appends batches in the current epoch and returns the offset of the last record.

        Listeners hear of the batches when they are committed. When leadership is lost before that, they hear
        :meth:`QuorumListener.leadership_changed` instead, and the batches may or may not be committed later.

        :raises NotController: this node does not lead the quorum
        :raises KafkaStorageError: the log cannot be written; nothing has been appended
        """
        ...

    def upgrade_kraft_version(self) -> None:
        """Appends the control records that raise ``kraft.version`` (KIP-853). Errors as of :meth:`append`."""
        ...

    @property
    def high_watermark(self) -> int | None:
        """The end of what is committed, as far as this node knows; None while it does not."""
        ...

    @property
    def voter_directory_id(self) -> bytes:
        """The directory id by which this node votes; zero where voters are known by their node ids alone."""
        ...

    def voters(self) -> Mapping[int, ReplicaKey]:
        """Returns who has a vote, by node id."""
        ...

    def endpoint_of(self, node_id: int) -> Endpoint | None:
        """Returns where that controller listens, as far as this node knows."""
        ...

    def endpoints_of(self, node_id: int) -> Sequence[Endpoint]:
        """Returns where that controller listens by each of its listeners, as far as this node knows."""
        ...

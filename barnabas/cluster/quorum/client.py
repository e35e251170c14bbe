"""The contract between the metadata quorum and its users: append, committed records, leadership.

Knows nothing of how a quorum agrees. Apache Kafka's ``RaftClient`` and ``RaftClient.Listener`` (KIP-595).
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from barnabas.cluster.quorum.record_batches import EncodedBatch
from barnabas.cluster.quorum.snapshots import KRaftState, SnapshotId
from barnabas.config.endpoints import Endpoint

NO_NODE = -1


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

    def endpoint_of(self, node_id: int) -> Endpoint | None:
        """Returns where that controller listens, as far as this node knows."""
        ...


class Quorum(QuorumClient, Protocol):
    """A quorum client as the node sees it that starts and stops it."""

    listeners: list[QuorumListener]
    is_sole_voter: bool  #: whether nobody but this node can lead

    def load(self) -> None:
        """Reads the newest snapshot and the log after it, and passes to the listeners what is known to be committed.

        :raises MetadataLogError: the log cannot be read
        """
        ...

    def start(self) -> None:
        """Begins to follow the leader, or to lead.

        :raises MetadataLogError: this node cannot be part of the quorum
        """
        ...

    def stop(self) -> None:
        """Stops following."""
        ...

    def when_caught_up(self, done: Callable[[], object]) -> None:
        """Calls ``done`` once the listeners have everything that was committed when the leader was first heard."""
        ...

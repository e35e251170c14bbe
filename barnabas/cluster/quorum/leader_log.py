"""The leader's side of the metadata log: it handles fetches, and tracks the replicas' log end offsets.

Knows nothing of elections, nor of connections. The rules are those of Apache Kafka's ``KafkaRaftClient``
(``handleFetchRequest``, ``handleFetchSnapshotRequest``) and ``LeaderState`` (KIP-595, KIP-630, KIP-836, KIP-1166).
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

from barnabas.cluster.quorum.client import Leadership, ReplicaKey
from barnabas.cluster.quorum.metadata_log import TOPIC_ID, MetadataLog
from barnabas.cluster.quorum.snapshots import SnapshotId
from barnabas.cluster.topic_names import CLUSTER_METADATA
from barnabas.config.endpoints import Endpoint
from barnabas.errors import (
    FencedLeaderEpoch,
    InconsistentClusterId,
    InvalidRequest,
    KafkaError,
    NotLeaderOrFollower,
    PositionOutOfRange,
    SnapshotNotFound,
    UnknownLeaderEpoch,
    UnknownServerError,
    UnknownTopicOrPartition,
)
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse
from barnabas.wire.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse

OBSERVER_SESSION_MS = 300_000
"""The time without a fetch after which an observer is forgotten (``LeaderState.OBSERVER_SESSION_TIMEOUT_MS``)."""

UNKNOWN = -1
"""The high watermark of a leader that does not know it yet."""

FORMATTED = SnapshotId(0, 0)
"""The snapshot of a formatted directory, which has the voters, but no records."""

FETCH_NAMES_ENDPOINT = 17
SNAPSHOT_NAMES_ENDPOINT = 1
"""The first versions of responses with the leader's endpoint (KIP-853)."""

FetchedTopic = FetchResponse.FetchableTopicResponse
FetchedPartition = FetchedTopic.PartitionData
SnapshotTopic = FetchSnapshotResponse.TopicSnapshot
SnapshotPartition = SnapshotTopic.PartitionSnapshot


class Leader(Protocol):
    """The node that leads, or has led."""

    node_id: int
    leadership: Leadership

    @property
    def is_elected(self) -> bool:
        """Whether the node is the leader of the epoch of its :attr:`leadership`."""

    @property
    def high_watermark(self) -> int | None:
        """The high watermark; None until a record of the leader's epoch is committed."""

    def voters(self) -> Mapping[int, ReplicaKey]:
        """Returns the voters by node id."""

    def leader_endpoint(self, listener: str) -> Endpoint | None:
        """Returns the leader's endpoint of that listener, if this node knows it."""


class Sender(NamedTuple):
    """The context of a request."""

    version: int
    listener: str
    cluster_id: str  #: of this node


class Replica:
    """The progress of a replica (``LeaderState.ReplicaState``)."""

    __slots__ = ("_leaders_end", "key", "last_caught_up_ms", "last_fetch_ms", "log_end_offset")

    def __init__(self, key: ReplicaKey) -> None:
        self.key = key
        self.log_end_offset = -1
        self.last_fetch_ms = -1
        self.last_caught_up_ms = -1
        self._leaders_end = 0  # the leader's log end offset at the last fetch

    def fetched(self, offset: int, leaders_end: int, now_ms: int) -> None:
        """Handles a fetch from ``offset``: the replica has all records before it."""
        if offset >= leaders_end:
            self.last_caught_up_ms = max(now_ms, self.last_caught_up_ms)
        elif 0 < self._leaders_end <= offset:
            self.last_caught_up_ms = max(self.last_fetch_ms, self.last_caught_up_ms)
        self._leaders_end = leaders_end
        self.last_fetch_ms = max(now_ms, self.last_fetch_ms)
        self.log_end_offset = offset


class LeaderLog:
    """Handles fetches of the log and of its snapshots.

    :param on_fetch: called with a replica that fetches, and its log end offset
    """

    def __init__(
        self,
        leader: Leader,
        metadata_log: MetadataLog,
        on_fetch: Callable[[ReplicaKey, int], object] = lambda replica, log_end_offset: None,
    ) -> None:
        self._leader = leader
        self._on_fetch = on_fetch
        self._metadata_log = metadata_log
        self._log = metadata_log.log
        self._replicas: dict[ReplicaKey, Replica] = {}
        self._waiting: dict[Callable[[], object], None] = {}  # in the order of their requests

    def followers(self) -> list[Replica]:
        """Returns the other voters, even those that have not fetched."""
        found = []
        for voter in self._leader.voters().values():
            known = (each for key, each in self._replicas.items() if voter.matches(key))
            if voter.node_id != self._leader.node_id:
                found.append(next(known, None) or Replica(voter))
        return found

    def observers(self, now_ms: int) -> list[Replica]:
        """Returns the replicas without a vote that have fetched within the last five minutes."""
        voters = self._leader.voters()
        found = {
            key: each
            for key, each in self._replicas.items()
            if not (key.node_id in voters and voters[key.node_id].matches(key))
        }
        silent = [key for key, each in found.items() if now_ms - each.last_fetch_ms >= OBSERVER_SESSION_MS]
        for key in silent:
            del self._replicas[key]
        return [each for key, each in found.items() if key not in silent]

    def replica(self, key: ReplicaKey) -> Replica | None:
        """Returns the progress of a replica; None if it has not fetched."""
        return self._replicas.get(key)

    def forget(self) -> None:
        """Forgets the progress of the replicas: another node leads."""
        self._replicas.clear()

    # ------------------------------------------------------------ waiting

    def wait(self, callback: Callable[[], object]) -> None:
        """Calls ``callback`` once when the response may change: new records, or another leader."""
        self._waiting[callback] = None

    def stop_waiting(self, callback: Callable[[], object]) -> None:
        self._waiting.pop(callback, None)

    def advanced(self) -> None:
        """Calls the waiting callbacks, each once."""
        waiting, self._waiting = self._waiting, {}
        for callback in waiting:
            callback()

    # ------------------------------------------------------------ fetches

    def fetch(self, request: FetchRequest, sender: Sender, now_ms: int) -> tuple[FetchResponse, bool]:
        """Handles a fetch. Returns the response, and whether it is complete and need not wait."""
        if request.cluster_id not in (None, sender.cluster_id):
            return FetchResponse(error_code=InconsistentClusterId.code, responses=[]), True
        topics = request.topics
        if (
            len(topics) != 1
            or topics[0].topic_id != TOPIC_ID
            or [each.partition for each in topics[0].partitions] != [0]
        ):
            return FetchResponse(error_code=InvalidRequest.code, responses=[]), True
        (wanted,) = topics[0].partitions
        start = self._log.log_start_offset
        body = FetchedPartition(partition_index=0, high_watermark=UNKNOWN, log_start_offset=start, records=b"")
        error = self._read(request, wanted, body, now_ms)
        if error is not None:
            body.error_code = error.code
        else:
            body.high_watermark = UNKNOWN if self._leader.high_watermark is None else self._leader.high_watermark
        leader_id, epoch = self._leader.leadership
        body.current_leader = FetchedPartition.LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=epoch)
        response = FetchResponse(responses=[FetchedTopic(topic=CLUSTER_METADATA, topic_id=TOPIC_ID, partitions=[body])])
        endpoint = self._leader.leader_endpoint(sender.listener)
        if endpoint is not None and sender.version >= FETCH_NAMES_ENDPOINT:
            where = FetchResponse.NodeEndpoint(node_id=leader_id, host=endpoint.host, port=endpoint.port)
            response.node_endpoints = [where]
        tells = error is not None or body.records or body.diverging_epoch.epoch >= 0 or body.snapshot_id.epoch >= 0
        return response, bool(tells) or wanted.high_watermark < body.high_watermark

    def _read(
        self,
        request: FetchRequest,
        wanted: FetchRequest.FetchTopic.FetchPartition,
        body: FetchedPartition,
        now_ms: int,
    ) -> KafkaError | None:
        """Fills in the records at the fetch offset, the diverging epoch, or the snapshot to fetch first."""
        offset, last_epoch, epoch = wanted.fetch_offset, wanted.last_fetched_epoch, wanted.current_leader_epoch
        if request.max_wait_ms < 0 or offset < 0 or last_epoch < 0 or last_epoch > epoch:
            return InvalidRequest()
        error = self._not_leading(epoch)
        if error is not None:
            return error
        node_id = request.replica_id if request.replica_id != -1 else request.replica_state.replica_id
        if node_id == self._leader.node_id:
            return UnknownServerError()
        snapshot_id = self._snapshot_for(offset, last_epoch)
        if snapshot_id is not None:
            body.snapshot_id = FetchedPartition.SnapshotId(end_offset=snapshot_id.end_offset, epoch=snapshot_id.epoch)
            return None
        if offset or self._log.log_start_offset:
            end = self._metadata_log.end_of_epoch(last_epoch)
            if end.epoch != last_epoch or end.end_offset < offset:
                body.diverging_epoch = FetchedPartition.EpochEndOffset(epoch=end.epoch, end_offset=end.end_offset)
                return None
        log_end = self._log.log_end_offset
        body.records = self._log.read(offset, request.max_bytes, up_to=log_end, minimum_one=True)
        if node_id >= 0:  # otherwise a consumer
            key = ReplicaKey(node_id, wanted.replica_directory_id)
            self._replicas.setdefault(key, Replica(key)).fetched(offset, log_end, now_ms)
            self._on_fetch(key, offset)
        return None

    def _snapshot_for(self, offset: int, last_epoch: int) -> SnapshotId | None:
        """Returns the snapshot to fetch first, since the log begins after the offset, or since it is smaller."""
        start = self._log.log_start_offset
        if offset > start and last_epoch == self._log.latest_epoch:
            return None  # the usual case, without listing the snapshots
        found = self._metadata_log.snapshots()
        if not found:
            return None
        earliest, latest = min(found), max(found)
        if offset == 0 and latest != FORMATTED:
            return latest
        if start == offset == 0:
            return None
        is_before = offset < start or (offset == start and last_epoch != earliest.epoch)
        return latest if is_before or last_epoch < earliest.epoch else None

    def _not_leading(self, epoch: int) -> KafkaError | None:
        known = self._leader.leadership.epoch
        if epoch != known:
            return FencedLeaderEpoch() if epoch < known else UnknownLeaderEpoch()
        return None if self._leader.is_elected else NotLeaderOrFollower()

    # ------------------------------------------------------------ snapshots

    def fetch_snapshot(self, request: FetchSnapshotRequest, sender: Sender) -> FetchSnapshotResponse:
        """Handles a fetch of a part of a snapshot."""
        if request.cluster_id not in (None, sender.cluster_id):
            return FetchSnapshotResponse(error_code=InconsistentClusterId.code, topics=[])
        wanted = [(topic.name, each) for topic in request.topics for each in topic.partitions]
        if not wanted or (len(request.topics) != 1 and len(request.topics[0].partitions) != 1):
            return FetchSnapshotResponse(error_code=InvalidRequest.code, topics=[])
        name, partition = wanted[0]
        known = [each for topic, each in wanted if (topic, each.partition) == (CLUSTER_METADATA, 0)]
        if known:
            name, partition = CLUSTER_METADATA, known[0]
        body = SnapshotPartition(
            index=partition.partition,
            snapshot_id=SnapshotPartition.SnapshotId(end_offset=0, epoch=0),
            size=0,
            position=0,
            unaligned_records=b"",
        )
        leader_id, epoch = self._leader.leadership
        if known:
            error = self._read_snapshot(request, partition, body)
            body.current_leader = SnapshotPartition.LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=epoch)
        else:
            error = UnknownTopicOrPartition()
        body.error_code = error.code if error is not None else 0
        response = FetchSnapshotResponse(topics=[SnapshotTopic(name=name, partitions=[body])])
        endpoint = self._leader.leader_endpoint(sender.listener)
        if endpoint is not None and sender.version >= SNAPSHOT_NAMES_ENDPOINT:
            where = FetchSnapshotResponse.NodeEndpoint(node_id=leader_id, host=endpoint.host, port=endpoint.port)
            response.node_endpoints = [where]
        return response

    def _read_snapshot(
        self,
        request: FetchSnapshotRequest,
        wanted: FetchSnapshotRequest.TopicSnapshot.PartitionSnapshot,
        body: SnapshotPartition,
    ) -> KafkaError | None:
        error = self._not_leading(wanted.current_leader_epoch)
        if error is not None:
            return error
        snapshot_id = SnapshotId(wanted.snapshot_id.end_offset, wanted.snapshot_id.epoch)
        size = self._metadata_log.size_of(snapshot_id)
        if size is None or snapshot_id == FORMATTED:
            return SnapshotNotFound()
        if not 0 <= wanted.position < size:
            return PositionOutOfRange()
        body.snapshot_id = SnapshotPartition.SnapshotId(end_offset=snapshot_id.end_offset, epoch=snapshot_id.epoch)
        body.size, body.position = size, wanted.position
        body.unaligned_records = self._metadata_log.read_snapshot(snapshot_id, wanted.position, request.max_bytes)
        return None

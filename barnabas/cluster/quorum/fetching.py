"""The requests that copy the metadata log, and the content of their responses.

Knows nothing of when they are sent. The fields are those of Apache Kafka's ``KafkaRaftClient`` (KIP-595, KIP-630,
KIP-853, KIP-1166).
"""

from typing import Any, NamedTuple

from barnabas.cluster.quorum.client import Leadership
from barnabas.cluster.quorum.metadata_log import TOPIC_ID
from barnabas.cluster.quorum.snapshots import SnapshotId
from barnabas.cluster.topic_names import CLUSTER_METADATA
from barnabas.errors import KafkaError
from barnabas.log.follower import Position
from barnabas.peers.peers import error_of
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse
from barnabas.wire.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from barnabas.wire.types import ZERO_UUID

MAX_WAIT_MS = 500
"""The maximum time that the leader waits for new records (``KafkaRaftClient.MAX_FETCH_WAIT_MS``)."""

UNKNOWN_HIGH_WATERMARK = -1

SnapshotPartition = FetchSnapshotRequest.TopicSnapshot.PartitionSnapshot


class Identity(NamedTuple):
    """The identity of a node in its requests to the leader."""

    node_id: int
    cluster_id: str
    directory_id: bytes = ZERO_UUID  #: the id of the directory with the metadata log


class Answer(NamedTuple):
    """The content of a response."""

    error: KafkaError | None
    leadership: Leadership | None = None  #: None if the response has no leader
    endpoints: tuple[tuple[int, str, int], ...] = ()  #: of the leader, as node id, host and port
    body: Any = None  #: the partition's part of the response


def fetch_request(
    identity: Identity,
    epoch: int,
    position: Position,
    *,
    high_watermark: int | None,
    max_bytes: int,
    max_wait_ms: int = MAX_WAIT_MS,
) -> FetchRequest:
    """Returns the request for the records after ``position``. ``epoch`` is that of the leader that this node knows."""
    partition = FetchRequest.FetchTopic.FetchPartition(
        partition=0,
        current_leader_epoch=epoch,
        fetch_offset=position.fetch_offset,
        last_fetched_epoch=position.last_fetched_epoch,
        partition_max_bytes=0,
        replica_directory_id=identity.directory_id,
        high_watermark=UNKNOWN_HIGH_WATERMARK if high_watermark is None else high_watermark,
    )
    return FetchRequest(
        cluster_id=identity.cluster_id,
        replica_id=identity.node_id,
        replica_state=FetchRequest.ReplicaState(replica_id=identity.node_id),
        max_wait_ms=max_wait_ms,
        min_bytes=0,
        max_bytes=max_bytes,
        topics=[FetchRequest.FetchTopic(topic=CLUSTER_METADATA, topic_id=TOPIC_ID, partitions=[partition])],
    )


def snapshot_request(
    identity: Identity, epoch: int, snapshot_id: SnapshotId, *, position: int, max_bytes: int
) -> FetchSnapshotRequest:
    """Returns the request for the bytes of a snapshot from ``position`` on."""
    partition = SnapshotPartition(
        partition=0,
        current_leader_epoch=epoch,
        snapshot_id=SnapshotPartition.SnapshotId(end_offset=snapshot_id.end_offset, epoch=snapshot_id.epoch),
        position=position,
        replica_directory_id=identity.directory_id,
    )
    return FetchSnapshotRequest(
        cluster_id=identity.cluster_id,
        replica_id=identity.node_id,
        max_bytes=max_bytes,
        topics=[FetchSnapshotRequest.TopicSnapshot(name=CLUSTER_METADATA, partitions=[partition])],
    )


def read_answer(response: FetchResponse | FetchSnapshotResponse) -> Answer:
    """Reads a response to either request."""
    error = error_of(response.error_code)
    topics = response.responses if isinstance(response, FetchResponse) else response.topics
    partitions = [each for topic in topics for each in topic.partitions]
    if error is not None or len(partitions) != 1:
        return Answer(error)
    (body,) = partitions
    return Answer(
        error_of(body.error_code),
        Leadership(body.current_leader.leader_id, body.current_leader.leader_epoch),
        tuple((each.node_id, each.host, each.port) for each in response.node_endpoints),
        body,
    )

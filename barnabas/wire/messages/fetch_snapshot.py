"""FetchSnapshot (API key 59): read a part of a snapshot of the metadata log (KIP-630).

v1 replica_directory_id, node_endpoints (KIP-853)
"""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Struct, field
from barnabas.wire.types import ZERO_UUID, int16, int32, int64, record_batches, string, uint16, uuid


class FetchSnapshotRequest(Request, api_key=59, versions="0-1", flexible="0+"):
    class TopicSnapshot(Struct):
        class PartitionSnapshot(Struct):
            class SnapshotId(Struct):
                end_offset: int64
                epoch: int32

            partition: int32
            current_leader_epoch: int32
            snapshot_id: SnapshotId
            position: int64  #: in the snapshot's file, in bytes
            replica_directory_id: uuid = field("1+", tag=0, default=ZERO_UUID)

        name: string
        partitions: list[PartitionSnapshot]

    cluster_id: string | None = field(tag=0, default=None)
    replica_id: int32 = -1
    max_bytes: int32 = 0x7FFFFFFF
    topics: list[TopicSnapshot]


class FetchSnapshotResponse(Response, to=FetchSnapshotRequest):
    class TopicSnapshot(Struct):
        class PartitionSnapshot(Struct):
            class SnapshotId(Struct):
                end_offset: int64
                epoch: int32

            class LeaderIdAndEpoch(Struct):
                leader_id: int32 = 0
                leader_epoch: int32 = 0

            index: int32
            error_code: int16 = 0
            snapshot_id: SnapshotId
            #: the leader, with an error
            current_leader: LeaderIdAndEpoch = field(tag=0, default_factory=LeaderIdAndEpoch)
            size: int64  #: of the whole snapshot, in bytes
            position: int64
            unaligned_records: record_batches  #: may begin and end within a batch

        name: string
        partitions: list[PartitionSnapshot]

    class NodeEndpoint(Struct):
        node_id: int32
        host: string
        port: uint16

    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    topics: list[TopicSnapshot]
    #: of the leaders in ``current_leader``
    node_endpoints: list[NodeEndpoint] = field("1+", tag=0, default=())

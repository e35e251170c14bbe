"""Fetch (API key 1): read batches of records from partitions, at once or as soon as there are enough bytes.

v1 throttle_time_ms · v3 max_bytes (KIP-74) · v4 record batches, isolation_level, aborted_transactions (KIP-98) · v5
log_start_offset (KIP-107) · v6 storage errors (KIP-112) · v7 sessions (KIP-227) · v8 throttled after the response
(KIP-219) · v9 current_leader_epoch (KIP-320) · v10 zstd (KIP-110) · v11 rack_id, preferred_read_replica (KIP-392) ·
v12 flexible, diverging_epoch (KIP-595) · v13 topics by id (KIP-516) · v14 OFFSET_MOVED_TO_TIERED_STORAGE (KIP-405) ·
v15 replica_state (KIP-903) · v16 node_endpoints (KIP-951) · v17 replica_directory_id (KIP-853) · v18 high_watermark
(KIP-1166)
"""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Struct, field
from barnabas.wire.types import ZERO_UUID, int8, int16, int32, int64, record_batches, string, uuid


class FetchRequest(Request, api_key=1, versions="0-18", flexible="12+"):
    class ReplicaState(Struct):
        replica_id: int32 = -1
        replica_epoch: int64 = -1

    class FetchTopic(Struct):
        class FetchPartition(Struct):
            partition: int32
            current_leader_epoch: int32 = field("9+", default=-1)  #: -1: unknown, not checked
            fetch_offset: int64
            last_fetched_epoch: int32 = field("12+", default=-1)  #: -1: the reader does not check for truncation
            log_start_offset: int64 = field("5+", default=-1)  #: the follower's; -1: a consumer
            partition_max_bytes: int32
            replica_directory_id: uuid = field("17+", tag=0, default=ZERO_UUID)
            #: known to the follower; the maximum integer: unknown
            high_watermark: int64 = field("18+", tag=1, default=0x7FFFFFFFFFFFFFFF)

        topic: string = field("0-12", default="")
        topic_id: uuid = field("13+", default=ZERO_UUID)
        partitions: list[FetchPartition]

    class ForgottenTopic(Struct):
        topic: string = field("7-12", default="")
        topic_id: uuid = field("13+", default=ZERO_UUID)
        partitions: list[int32]

    cluster_id: string | None = field("12+", tag=0, default=None)  #: expected by the follower; null: any
    replica_id: int32 = field("0-14", default=-1)  #: -1: a consumer
    #: replaces ``replica_id``
    replica_state: ReplicaState = field("15+", tag=1, default_factory=ReplicaState)
    max_wait_ms: int32  #: the maximum time to wait for ``min_bytes``
    min_bytes: int32
    #: of all partitions together; the first batch is returned whatever its size
    max_bytes: int32 = field("3+", default=0x7FFFFFFF)
    isolation_level: int8 = field("4+", default=0)  #: 0: read uncommitted; 1: read committed
    session_id: int32 = field("7+", default=0)  #: 0: none yet
    session_epoch: int32 = field(
        "7+", default=-1
    )  #: -1: no session; 0: a new session; else the next epoch of the session
    topics: list[FetchTopic]
    forgotten_topics_data: list[ForgottenTopic] = field("7+", default=())  #: to be removed from the session
    rack_id: string = field("11+", default="")


class FetchResponse(Response, to=FetchRequest):
    class FetchableTopicResponse(Struct):
        class PartitionData(Struct):
            class EpochEndOffset(Struct):
                epoch: int32 = -1
                end_offset: int64 = -1

            class LeaderIdAndEpoch(Struct):
                leader_id: int32 = -1
                leader_epoch: int32 = -1

            class SnapshotId(Struct):
                end_offset: int64 = -1
                epoch: int32 = -1

            class AbortedTransaction(Struct):
                producer_id: int64
                first_offset: int64  #: of the transaction's records

            partition_index: int32
            error_code: int16 = 0
            high_watermark: int64
            #: all transactions before it are committed or aborted
            last_stable_offset: int64 = field("4+", default=-1)
            log_start_offset: int64 = field("5+", default=-1)
            #: where the fetcher's log and this one diverge; the fetcher must truncate
            diverging_epoch: EpochEndOffset = field("12+", tag=0, default_factory=EpochEndOffset)
            #: with NOT_LEADER_OR_FOLLOWER or FENCED_LEADER_EPOCH
            current_leader: LeaderIdAndEpoch = field("12+", tag=1, default_factory=LeaderIdAndEpoch)
            #: the metadata log starts after the fetch offset: fetch this snapshot first
            snapshot_id: SnapshotId = field("12+", tag=2, default_factory=SnapshotId)
            #: null unless read committed
            aborted_transactions: list[AbortedTransaction] | None = field("4+", default=())
            preferred_read_replica: int32 = field("11+", default=-1)  #: -1: read here
            records: record_batches | None

        topic: string = field("0-12", default="")
        topic_id: uuid = field("13+", default=ZERO_UUID)
        partitions: list[PartitionData]

    class NodeEndpoint(Struct):
        node_id: int32
        host: string
        port: int32
        rack: string | None = None

    throttle_time_ms: int32 = field("1+", default=0)
    error_code: int16 = field("7+", default=0)  #: of the session
    session_id: int32 = field("7+", default=0)
    responses: list[FetchableTopicResponse]  #: in a session, only partitions with changes
    #: of the leaders in ``current_leader``
    node_endpoints: list[NodeEndpoint] = field("16+", tag=0, default=())

"""Produce (API key 0): append batches of records to partitions.

v1 throttle_time_ms · v2 timestamps in messages (KIP-32) · v3 record batches, transactional_id (KIP-98) · v4 storage
errors (KIP-112) · v5 log_start_offset (KIP-107) · v6 throttled after the response (KIP-219) · v7 zstd (KIP-110) · v8
record_errors (KIP-467) · v9 flexible · v10 current_leader, node_endpoints (KIP-951) · v11 TRANSACTION_ABORTABLE · v12
adds its partitions to the transaction (KIP-890) · v13 topics by id (KIP-516)
"""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Struct, field
from barnabas.wire.types import ZERO_UUID, int16, int32, int64, record_batches, string, uuid


class ProduceRequest(Request, api_key=0, versions="0-13", flexible="9+"):
    class TopicProduceData(Struct):
        class PartitionProduceData(Struct):
            index: int32
            records: record_batches | None  #: one batch, in versions 3 and up

        name: string = field("0-12", default="")
        topic_id: uuid = field("13+", default=ZERO_UUID)
        partition_data: list[PartitionProduceData]

    transactional_id: string | None = field("3+", default=None)  #: null: not transactional
    acks: int16  #: 0: no response; 1: appended by the leader; -1: replicated to all in-sync replicas
    timeout_ms: int32  #: the maximum time to wait for the replicas
    topic_data: list[TopicProduceData]


class ProduceResponse(Response, to=ProduceRequest):
    class TopicProduceResponse(Struct):
        class PartitionProduceResponse(Struct):
            class BatchIndexAndErrorMessage(Struct):
                batch_index: int32  #: within the batch
                batch_index_error_message: string | None = None

            class LeaderIdAndEpoch(Struct):
                leader_id: int32 = -1
                leader_epoch: int32 = -1

            index: int32
            error_code: int16 = 0
            base_offset: int64
            log_append_time_ms: int64 = field("2+", default=-1)  #: -1 unless the topic has LogAppendTime
            log_start_offset: int64 = field("5+", default=-1)
            #: the refused records
            record_errors: list[BatchIndexAndErrorMessage] = field("8+", default=())
            error_message: string | None = field("8+", default=None)
            #: with NOT_LEADER_OR_FOLLOWER
            current_leader: LeaderIdAndEpoch = field("10+", tag=0, default_factory=LeaderIdAndEpoch)

        name: string = field("0-12", default="")
        topic_id: uuid = field("13+", default=ZERO_UUID)
        partition_responses: list[PartitionProduceResponse]

    class NodeEndpoint(Struct):
        node_id: int32
        host: string
        port: int32
        rack: string | None = None

    responses: list[TopicProduceResponse]
    throttle_time_ms: int32 = field("1+", default=0)
    #: of the leaders in ``current_leader``
    node_endpoints: list[NodeEndpoint] = field("10+", tag=0, default=())

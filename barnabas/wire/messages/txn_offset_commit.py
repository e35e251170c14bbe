"""TxnOffsetCommit (API key 28): commit offsets of a group within a transaction (KIP-98).

v1 throttled after the response (KIP-219) · v2 committed_leader_epoch (KIP-320) · v3 flexible, generation and member
(KIP-447) · v4 TRANSACTION_ABORTABLE · v5 adds the group to the transaction (KIP-890) · v6 topics by id
"""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Struct, field
from barnabas.wire.types import ZERO_UUID, int16, int32, int64, string, uuid


class TxnOffsetCommitRequest(Request, api_key=28, versions="0-6", flexible="3+"):
    class TxnOffsetCommitRequestTopic(Struct):
        class TxnOffsetCommitRequestPartition(Struct):
            partition_index: int32
            committed_offset: int64
            committed_leader_epoch: int32 = field("2+", default=-1)
            committed_metadata: string | None

        name: string = field("0-5", default="")
        topic_id: uuid = field("6+", default=ZERO_UUID)
        partitions: list[TxnOffsetCommitRequestPartition]

    transactional_id: string
    group_id: string
    producer_id: int64
    producer_epoch: int16
    generation_id_or_member_epoch: int32 = field("3+", default=-1)  #: -1: not checked
    member_id: string = field("3+", default="")
    group_instance_id: string | None = field("3+", default=None)
    topics: list[TxnOffsetCommitRequestTopic]


class TxnOffsetCommitResponse(Response, to=TxnOffsetCommitRequest):
    class TxnOffsetCommitResponseTopic(Struct):
        class TxnOffsetCommitResponsePartition(Struct):
            partition_index: int32
            error_code: int16

        name: string = field("0-5", default="")
        topic_id: uuid = field("6+", default=ZERO_UUID)
        partitions: list[TxnOffsetCommitResponsePartition]

    throttle_time_ms: int32 = 0
    topics: list[TxnOffsetCommitResponseTopic]

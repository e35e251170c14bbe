"""OffsetCommit (API key 8): commit offsets of a group.

v1 generation and member · v2 retention_time_ms · v3 throttle_time_ms · v4 throttled after the response (KIP-219) · v5
no retention_time_ms (KIP-211) · v6 committed_leader_epoch (KIP-320) · v7 group_instance_id (KIP-345) · v8 flexible ·
v9 member epochs (KIP-848) · v10 topics by id
"""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Struct, field
from barnabas.wire.types import ZERO_UUID, int16, int32, int64, string, uuid


class OffsetCommitRequest(Request, api_key=8, versions="0-10", flexible="8+"):
    class OffsetCommitRequestTopic(Struct):
        class OffsetCommitRequestPartition(Struct):
            partition_index: int32
            committed_offset: int64
            committed_leader_epoch: int32 = field("6+", default=-1)  #: of the last record read; -1: unknown
            commit_timestamp: int64 = field("1", default=-1)
            committed_metadata: string | None

        name: string = field("0-9", default="")
        topic_id: uuid = field("10+", default=ZERO_UUID)
        partitions: list[OffsetCommitRequestPartition]

    group_id: string
    generation_id_or_member_epoch: int32 = field("1+", default=-1)  #: -1: not a member, a simple consumer
    member_id: string = field("1+", default="")
    group_instance_id: string | None = field("7+", default=None)
    retention_time_ms: int64 = field("2-4", default=-1)  #: -1: the broker's default
    topics: list[OffsetCommitRequestTopic]


class OffsetCommitResponse(Response, to=OffsetCommitRequest):
    class OffsetCommitResponseTopic(Struct):
        class OffsetCommitResponsePartition(Struct):
            partition_index: int32
            error_code: int16 = 0

        name: string = field("0-9", default="")
        topic_id: uuid = field("10+", default=ZERO_UUID)
        partitions: list[OffsetCommitResponsePartition]

    throttle_time_ms: int32 = field("3+", default=0)
    topics: list[OffsetCommitResponseTopic]

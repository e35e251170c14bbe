"""OffsetForLeaderEpoch (API key 23): the end offsets of leader epochs, to detect truncation (KIP-101).

v1 leader_epoch in the response (KIP-279) · v2 current_leader_epoch (KIP-320) · v3 replica_id · v4 flexible
"""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Struct, field
from barnabas.wire.types import int16, int32, int64, string


class OffsetForLeaderEpochRequest(Request, api_key=23, versions="0-4", flexible="4+"):
    class OffsetForLeaderTopic(Struct):
        class OffsetForLeaderPartition(Struct):
            partition: int32
            current_leader_epoch: int32 = field("2+", default=-1)
            leader_epoch: int32  #: whose end offset is requested

        topic: string
        partitions: list[OffsetForLeaderPartition]

    replica_id: int32 = field("3+", default=-2)  #: -1: a consumer; -2: unknown
    topics: list[OffsetForLeaderTopic]


class OffsetForLeaderEpochResponse(Response, to=OffsetForLeaderEpochRequest):
    class OffsetForLeaderTopicResult(Struct):
        class EpochEndOffset(Struct):
            error_code: int16 = 0
            partition: int32
            leader_epoch: int32 = field("1+", default=-1)  #: the largest known epoch up to the requested one
            end_offset: int64 = -1

        topic: string
        partitions: list[EpochEndOffset]

    throttle_time_ms: int32 = field("2+", default=0)
    topics: list[OffsetForLeaderTopicResult]

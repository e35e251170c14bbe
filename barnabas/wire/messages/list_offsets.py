"""ListOffsets (API key 2): offsets of partitions by timestamp, and their earliest and latest offsets.

v1 one offset with its timestamp (KIP-79) · v2 isolation_level (KIP-98) · v3 throttled after the response (KIP-219) · v4
leader epochs (KIP-320) · v5 OFFSET_NOT_AVAILABLE (KIP-207) · v6 flexible · v7 timestamp -3: the largest timestamp
(KIP-734) · v8 -4: the earliest local offset (KIP-405) · v9 -5: the latest tiered offset (KIP-1005) · v10 timeout_ms
(KIP-1075) · v11 -6: the earliest offset that is not yet tiered (KIP-1023)
"""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Struct, field
from barnabas.wire.types import int8, int16, int32, int64, string


class ListOffsetsRequest(Request, api_key=2, versions="0-11", flexible="6+"):
    class ListOffsetsTopic(Struct):
        class ListOffsetsPartition(Struct):
            partition_index: int32
            current_leader_epoch: int32 = field("4+", default=-1)
            timestamp: int64  #: in ms, or a special one: -1 latest, -2 earliest; see above for the others
            max_num_offsets: int32 = field("0", default=1)  #: of segment starts to return

        name: string
        partitions: list[ListOffsetsPartition]

    replica_id: int32  #: -1: a consumer; -2: a debugging tool
    isolation_level: int8 = field(
        "2+", default=0
    )  #: 0: the latest offset is the high watermark; 1: it is the last stable offset
    topics: list[ListOffsetsTopic]
    timeout_ms: int32 = field("10+", default=0)  #: of requests to tiered storage


class ListOffsetsResponse(Response, to=ListOffsetsRequest):
    class ListOffsetsTopicResponse(Struct):
        class ListOffsetsPartitionResponse(Struct):
            partition_index: int32
            error_code: int16 = 0
            old_style_offsets: list[int64] = field("0", default=())  #: starts of segments, newest first
            timestamp: int64 = field("1+", default=-1)  #: of the record at ``offset``; -1 for a special one
            offset: int64 = field("1+", default=-1)  #: -1: no record has that timestamp or a later one
            leader_epoch: int32 = field("4+", default=-1)

        name: string
        partitions: list[ListOffsetsPartitionResponse]

    throttle_time_ms: int32 = field("2+", default=0)
    topics: list[ListOffsetsTopicResponse]

"""DescribeShareGroupOffsets (API key 90): the start offsets of share groups (KIP-932).

v1 lag (KIP-1226)
"""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Struct, field
from barnabas.wire.types import int16, int32, int64, string, uuid


class DescribeShareGroupOffsetsRequest(Request, api_key=90, versions="0-1", flexible="0+"):
    class DescribeShareGroupOffsetsRequestGroup(Struct):
        class DescribeShareGroupOffsetsRequestTopic(Struct):
            topic_name: string
            partitions: list[int32]

        group_id: string
        topics: list[DescribeShareGroupOffsetsRequestTopic] | None

    groups: list[DescribeShareGroupOffsetsRequestGroup]


class DescribeShareGroupOffsetsResponse(Response, to=DescribeShareGroupOffsetsRequest):
    class DescribeShareGroupOffsetsResponseGroup(Struct):
        class DescribeShareGroupOffsetsResponseTopic(Struct):
            class DescribeShareGroupOffsetsResponsePartition(Struct):
                partition_index: int32
                start_offset: int64
                leader_epoch: int32
                lag: int64 = field("1+", default=-1)
                error_code: int16 = 0
                error_message: string | None = None

            topic_name: string
            topic_id: uuid
            partitions: list[DescribeShareGroupOffsetsResponsePartition]

        group_id: string
        topics: list[DescribeShareGroupOffsetsResponseTopic]
        error_code: int16 = 0
        error_message: string | None = None

    throttle_time_ms: int32 = 0
    groups: list[DescribeShareGroupOffsetsResponseGroup]

"""OffsetDelete (API key 47): delete committed offsets of a group (KIP-496).

Not flexible in any version.
"""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Struct
from barnabas.wire.types import int16, int32, string


class OffsetDeleteRequest(Request, api_key=47, versions="0", flexible="none"):
    class OffsetDeleteRequestTopic(Struct):
        class OffsetDeleteRequestPartition(Struct):
            partition_index: int32

        name: string
        partitions: list[OffsetDeleteRequestPartition]

    group_id: string
    topics: list[OffsetDeleteRequestTopic]


class OffsetDeleteResponse(Response, to=OffsetDeleteRequest):
    class OffsetDeleteResponseTopic(Struct):
        class OffsetDeleteResponsePartition(Struct):
            partition_index: int32
            error_code: int16 = 0

        name: string
        partitions: list[OffsetDeleteResponsePartition]

    error_code: int16 = 0
    throttle_time_ms: int32 = 0
    topics: list[OffsetDeleteResponseTopic]

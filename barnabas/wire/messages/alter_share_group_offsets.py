"""AlterShareGroupOffsets (API key 91): set the start offsets of an empty share group (KIP-932)."""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Struct
from barnabas.wire.types import int16, int32, int64, string, uuid


class AlterShareGroupOffsetsRequest(Request, api_key=91, versions="0", flexible="0+"):
    class AlterShareGroupOffsetsRequestTopic(Struct):
        class AlterShareGroupOffsetsRequestPartition(Struct):
            partition_index: int32
            start_offset: int64

        topic_name: string
        partitions: list[AlterShareGroupOffsetsRequestPartition]

    group_id: string
    topics: list[AlterShareGroupOffsetsRequestTopic]


class AlterShareGroupOffsetsResponse(Response, to=AlterShareGroupOffsetsRequest):
    class AlterShareGroupOffsetsResponseTopic(Struct):
        class AlterShareGroupOffsetsResponsePartition(Struct):
            partition_index: int32
            error_code: int16 = 0
            error_message: string | None = None

        topic_name: string
        topic_id: uuid
        partitions: list[AlterShareGroupOffsetsResponsePartition]

    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    error_message: string | None = None
    responses: list[AlterShareGroupOffsetsResponseTopic]

"""DeleteShareGroupOffsets (API key 92): delete the offsets of topics in an empty share group (KIP-932)."""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Struct
from barnabas.wire.types import int16, int32, string, uuid


class DeleteShareGroupOffsetsRequest(Request, api_key=92, versions="0", flexible="0+"):
    class DeleteShareGroupOffsetsRequestTopic(Struct):
        topic_name: string

    group_id: string
    topics: list[DeleteShareGroupOffsetsRequestTopic]


class DeleteShareGroupOffsetsResponse(Response, to=DeleteShareGroupOffsetsRequest):
    class DeleteShareGroupOffsetsResponseTopic(Struct):
        topic_name: string
        topic_id: uuid
        error_code: int16 = 0
        error_message: string | None = None

    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    error_message: string | None = None
    responses: list[DeleteShareGroupOffsetsResponseTopic]

"""DeleteRecords (API key 21): delete the records before an offset (KIP-107).

v1 throttled after the response (KIP-219) · v2 flexible
"""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Struct
from barnabas.wire.types import int16, int32, int64, string


class DeleteRecordsRequest(Request, api_key=21, versions="0-2", flexible="2+"):
    class DeleteRecordsTopic(Struct):
        class DeleteRecordsPartition(Struct):
            partition_index: int32
            offset: int64  #: the first one that is kept; -1: the high watermark

        name: string
        partitions: list[DeleteRecordsPartition]

    topics: list[DeleteRecordsTopic]
    timeout_ms: int32


class DeleteRecordsResponse(Response, to=DeleteRecordsRequest):
    class DeleteRecordsTopicResult(Struct):
        class DeleteRecordsPartitionResult(Struct):
            partition_index: int32
            low_watermark: int64  #: the new log start offset
            error_code: int16 = 0

        name: string
        partitions: list[DeleteRecordsPartitionResult]

    throttle_time_ms: int32 = 0
    topics: list[DeleteRecordsTopicResult]

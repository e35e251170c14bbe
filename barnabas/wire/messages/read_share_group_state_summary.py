"""ReadShareGroupStateSummary (API key 87): the start offsets of share partitions; for brokers (KIP-932).

v1 delivery_complete_count (KIP-1226)
"""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Struct, field
from barnabas.wire.types import int16, int32, int64, string, uuid


class ReadShareGroupStateSummaryRequest(Request, api_key=87, versions="0-1", flexible="0+"):
    class ReadStateSummaryData(Struct):
        class PartitionData(Struct):
            partition: int32
            leader_epoch: int32

        topic_id: uuid
        partitions: list[PartitionData]

    group_id: string
    topics: list[ReadStateSummaryData]


class ReadShareGroupStateSummaryResponse(Response, to=ReadShareGroupStateSummaryRequest):
    class ReadStateSummaryResult(Struct):
        class PartitionResult(Struct):
            partition: int32
            error_code: int16 = 0
            error_message: string | None = None
            state_epoch: int32
            leader_epoch: int32
            start_offset: int64
            delivery_complete_count: int32 = field("1+", default=-1)

        topic_id: uuid
        partitions: list[PartitionResult]

    results: list[ReadStateSummaryResult]

"""WriteShareGroupState (API key 85): write the state of share partitions; for brokers (KIP-932).

v1 delivery_complete_count (KIP-1226)
"""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Struct, field
from barnabas.wire.types import int8, int16, int32, int64, string, uuid


class WriteShareGroupStateRequest(Request, api_key=85, versions="0-1", flexible="0+"):
    class WriteStateData(Struct):
        class PartitionData(Struct):
            class StateBatch(Struct):
                first_offset: int64
                last_offset: int64
                delivery_state: int8
                delivery_count: int16

            partition: int32
            state_epoch: int32
            leader_epoch: int32
            start_offset: int64
            delivery_complete_count: int32 = field("1+", default=-1)
            state_batches: list[StateBatch]

        topic_id: uuid
        partitions: list[PartitionData]

    group_id: string
    topics: list[WriteStateData]


class WriteShareGroupStateResponse(Response, to=WriteShareGroupStateRequest):
    class WriteStateResult(Struct):
        class PartitionResult(Struct):
            partition: int32
            error_code: int16 = 0
            error_message: string | None = None

        topic_id: uuid
        partitions: list[PartitionResult]

    results: list[WriteStateResult]

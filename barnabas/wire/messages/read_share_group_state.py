"""ReadShareGroupState (API key 84): the state of share partitions; for brokers (KIP-932)."""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Struct
from barnabas.wire.types import int8, int16, int32, int64, string, uuid


class ReadShareGroupStateRequest(Request, api_key=84, versions="0", flexible="0+"):
    class ReadStateData(Struct):
        class PartitionData(Struct):
            partition: int32
            leader_epoch: int32

        topic_id: uuid
        partitions: list[PartitionData]

    group_id: string
    topics: list[ReadStateData]


class ReadShareGroupStateResponse(Response, to=ReadShareGroupStateRequest):
    class ReadStateResult(Struct):
        class PartitionResult(Struct):
            class StateBatch(Struct):
                first_offset: int64
                last_offset: int64
                delivery_state: int8
                delivery_count: int16

            partition: int32
            error_code: int16 = 0
            error_message: string | None = None
            state_epoch: int32
            start_offset: int64
            state_batches: list[StateBatch]

        topic_id: uuid
        partitions: list[PartitionResult]

    results: list[ReadStateResult]

"""InitializeShareGroupState (API key 83): initialize the state of share partitions; for brokers (KIP-932)."""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Struct
from barnabas.wire.types import int16, int32, int64, string, uuid


class InitializeShareGroupStateRequest(Request, api_key=83, versions="0", flexible="0+"):
    class InitializeStateData(Struct):
        class PartitionData(Struct):
            partition: int32
            state_epoch: int32
            start_offset: int64

        topic_id: uuid
        partitions: list[PartitionData]

    group_id: string
    topics: list[InitializeStateData]


class InitializeShareGroupStateResponse(Response, to=InitializeShareGroupStateRequest):
    class InitializeStateResult(Struct):
        class PartitionResult(Struct):
            partition: int32
            error_code: int16 = 0
            error_message: string | None = None

        topic_id: uuid
        partitions: list[PartitionResult]

    results: list[InitializeStateResult]

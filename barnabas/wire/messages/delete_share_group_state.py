"""DeleteShareGroupState (API key 86): delete the state of share partitions; for brokers (KIP-932)."""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Struct
from barnabas.wire.types import int16, int32, string, uuid


class DeleteShareGroupStateRequest(Request, api_key=86, versions="0", flexible="0+"):
    class DeleteStateData(Struct):
        class PartitionData(Struct):
            partition: int32

        topic_id: uuid
        partitions: list[PartitionData]

    group_id: string
    topics: list[DeleteStateData]


class DeleteShareGroupStateResponse(Response, to=DeleteShareGroupStateRequest):
    class DeleteStateResult(Struct):
        class PartitionResult(Struct):
            partition: int32
            error_code: int16 = 0
            error_message: string | None = None

        topic_id: uuid
        partitions: list[PartitionResult]

    results: list[DeleteStateResult]

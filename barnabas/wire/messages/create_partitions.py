"""CreatePartitions (API key 37): add partitions to topics (KIP-195).

v1 throttled after the response (KIP-219) · v2 flexible · v3 THROTTLING_QUOTA_EXCEEDED (KIP-599)
"""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Struct
from barnabas.wire.types import int16, int32, string


class CreatePartitionsRequest(Request, api_key=37, versions="0-3", flexible="2+"):
    class CreatePartitionsTopic(Struct):
        class CreatePartitionsAssignment(Struct):
            broker_ids: list[int32]

        name: string
        count: int32  #: the new total
        assignments: list[CreatePartitionsAssignment] | None  #: of the new partitions; null: the broker chooses

    topics: list[CreatePartitionsTopic]
    timeout_ms: int32
    validate_only: bool


class CreatePartitionsResponse(Response, to=CreatePartitionsRequest):
    class CreatePartitionsTopicResult(Struct):
        name: string
        error_code: int16 = 0
        error_message: string | None = None

    throttle_time_ms: int32 = 0
    results: list[CreatePartitionsTopicResult]

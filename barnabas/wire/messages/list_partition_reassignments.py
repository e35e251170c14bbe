"""ListPartitionReassignments (API key 46): the partitions that are being reassigned (KIP-455).

Flexible from the start.
"""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Struct
from barnabas.wire.types import int16, int32, string


class ListPartitionReassignmentsRequest(Request, api_key=46, versions="0", flexible="0+"):
    class ListPartitionReassignmentsTopics(Struct):
        name: string
        partition_indexes: list[int32]

    timeout_ms: int32 = 60000
    topics: list[ListPartitionReassignmentsTopics] | None = None  #: null: all


class ListPartitionReassignmentsResponse(Response, to=ListPartitionReassignmentsRequest):
    class OngoingTopicReassignment(Struct):
        class OngoingPartitionReassignment(Struct):
            partition_index: int32
            replicas: list[int32]
            adding_replicas: list[int32]
            removing_replicas: list[int32]

        name: string
        partitions: list[OngoingPartitionReassignment]

    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    error_message: string | None = None
    topics: list[OngoingTopicReassignment]

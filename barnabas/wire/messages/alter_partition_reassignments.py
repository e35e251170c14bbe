"""AlterPartitionReassignments (API key 45): assign partitions to other brokers, or cancel that (KIP-455).

v1 allow_replication_factor_change (KIP-860)
"""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Struct, field
from barnabas.wire.types import int16, int32, string


class AlterPartitionReassignmentsRequest(Request, api_key=45, versions="0-1", flexible="0+"):
    class ReassignableTopic(Struct):
        class ReassignablePartition(Struct):
            partition_index: int32
            replicas: list[int32] | None = None  #: null: cancel the reassignment

        name: string
        partitions: list[ReassignablePartition]

    timeout_ms: int32 = 60000
    allow_replication_factor_change: bool = field("1+", default=True)
    topics: list[ReassignableTopic]


class AlterPartitionReassignmentsResponse(Response, to=AlterPartitionReassignmentsRequest):
    class ReassignableTopicResponse(Struct):
        class ReassignablePartitionResponse(Struct):
            partition_index: int32
            error_code: int16 = 0
            error_message: string | None = None

        name: string
        partitions: list[ReassignablePartitionResponse]

    throttle_time_ms: int32 = 0
    allow_replication_factor_change: bool = field("1+", default=True)
    error_code: int16 = 0
    error_message: string | None = None
    responses: list[ReassignableTopicResponse]

"""ElectLeaders (API key 43): elect leaders of partitions (KIP-183).

v1 election_type: preferred or unclean (KIP-460) · v2 flexible
"""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Struct, field
from barnabas.wire.types import int8, int16, int32, string


class ElectLeadersRequest(Request, api_key=43, versions="0-2", flexible="2+"):
    class TopicPartitions(Struct):
        topic: string
        partitions: list[int32]

    #: 0: the preferred replica; 1: any live replica, even if records are lost (unclean)
    election_type: int8 = field("1+", default=0)
    topic_partitions: list[TopicPartitions] | None  #: null: all
    timeout_ms: int32 = 60000


class ElectLeadersResponse(Response, to=ElectLeadersRequest):
    class ReplicaElectionResult(Struct):
        class PartitionResult(Struct):
            partition_id: int32
            error_code: int16 = 0
            error_message: string | None = None

        topic: string
        partition_result: list[PartitionResult]

    throttle_time_ms: int32 = 0
    error_code: int16 = field("1+", default=0)
    replica_election_results: list[ReplicaElectionResult]

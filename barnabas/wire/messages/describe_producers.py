"""DescribeProducers (API key 61): the states of idempotent and transactional producers of partitions (KIP-664).

Flexible from the start.
"""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Struct
from barnabas.wire.types import int16, int32, int64, string


class DescribeProducersRequest(Request, api_key=61, versions="0", flexible="0+"):
    class TopicRequest(Struct):
        name: string
        partition_indexes: list[int32]

    topics: list[TopicRequest]


class DescribeProducersResponse(Response, to=DescribeProducersRequest):
    class TopicResponse(Struct):
        class PartitionResponse(Struct):
            class ProducerState(Struct):
                producer_id: int64
                producer_epoch: int32
                last_sequence: int32 = -1
                last_timestamp: int64 = -1
                coordinator_epoch: int32
                current_txn_start_offset: int64 = -1  #: -1: no transaction is open

            partition_index: int32
            error_code: int16 = 0
            error_message: string | None = None
            active_producers: list[ProducerState]

        name: string
        partitions: list[PartitionResponse]

    throttle_time_ms: int32 = 0
    topics: list[TopicResponse]

"""DescribeTopicPartitions (API key 75): topics and their partitions, page by page (KIP-966).

Flexible from the start.
"""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Struct
from barnabas.wire.types import int16, int32, string, uuid


class DescribeTopicPartitionsRequest(Request, api_key=75, versions="0", flexible="0+"):
    class TopicRequest(Struct):
        name: string

    class Cursor(Struct):
        topic_name: string
        partition_index: int32

    topics: list[TopicRequest]  #: empty: all
    response_partition_limit: int32 = 2000
    cursor: Cursor | None = None  #: the cursor of the last page; null: from the start


class DescribeTopicPartitionsResponse(Response, to=DescribeTopicPartitionsRequest):
    class DescribeTopicPartitionsResponseTopic(Struct):
        class DescribeTopicPartitionsResponsePartition(Struct):
            error_code: int16 = 0
            partition_index: int32
            leader_id: int32
            leader_epoch: int32 = -1
            replica_nodes: list[int32]
            isr_nodes: list[int32]
            eligible_leader_replicas: list[int32] | None = None  #: may lead without being in sync (KIP-966)
            last_known_elr: list[int32] | None = None
            offline_replicas: list[int32]

        error_code: int16 = 0
        name: string | None
        topic_id: uuid
        is_internal: bool = False
        partitions: list[DescribeTopicPartitionsResponsePartition]
        #: a bit per operation; the minimum integer: not requested
        topic_authorized_operations: int32 = -0x80000000

    class Cursor(Struct):
        topic_name: string
        partition_index: int32

    throttle_time_ms: int32 = 0
    topics: list[DescribeTopicPartitionsResponseTopic]
    next_cursor: Cursor | None = None  #: the start of the next page; null: this is the last page

"""DescribeQuorum (API key 55): the voters and observers of the metadata log, and their log end offsets (KIP-595).

v1 the times of their last fetch and of being caught up (KIP-836) · v2 directory ids, nodes and messages (KIP-853)
"""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Struct, field
from barnabas.wire.types import ZERO_UUID, int16, int32, int64, string, uint16, uuid


class DescribeQuorumRequest(Request, api_key=55, versions="0-2", flexible="0+"):
    class TopicData(Struct):
        class PartitionData(Struct):
            partition_index: int32

        topic_name: string
        partitions: list[PartitionData]

    topics: list[TopicData]


class DescribeQuorumResponse(Response, to=DescribeQuorumRequest):
    class ReplicaState(Struct):
        replica_id: int32
        replica_directory_id: uuid = field("2+", default=ZERO_UUID)
        log_end_offset: int64
        last_fetch_timestamp: int64 = field("1+", default=-1)  #: -1: unknown
        last_caught_up_timestamp: int64 = field("1+", default=-1)

    class TopicData(Struct):
        class PartitionData(Struct):
            partition_index: int32
            error_code: int16 = 0
            error_message: string | None = field("2+", default=None)
            leader_id: int32
            leader_epoch: int32
            high_watermark: int64
            current_voters: list["DescribeQuorumResponse.ReplicaState"]
            observers: list["DescribeQuorumResponse.ReplicaState"]

        topic_name: string
        partitions: list[PartitionData]

    class Node(Struct):
        class Listener(Struct):
            name: string
            host: string
            port: uint16

        node_id: int32
        listeners: list[Listener]

    error_code: int16 = 0
    error_message: string | None = field("2+", default=None)
    topics: list[TopicData]
    nodes: list[Node] = field("2+", default=())

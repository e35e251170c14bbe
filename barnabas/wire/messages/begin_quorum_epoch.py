"""BeginQuorumEpoch (API key 53): a new leader of the metadata log announces itself to the voters (KIP-595).

v1 flexible, directory ids and endpoints (KIP-853)
"""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Struct, field
from barnabas.wire.types import ZERO_UUID, int16, int32, string, uint16, uuid


class BeginQuorumEpochRequest(Request, api_key=53, versions="0-1", flexible="1+"):
    class TopicData(Struct):
        class PartitionData(Struct):
            partition_index: int32
            voter_directory_id: uuid = field("1+", default=ZERO_UUID)
            leader_id: int32
            leader_epoch: int32

        topic_name: string
        partitions: list[PartitionData]

    class LeaderEndpoint(Struct):
        name: string
        host: string
        port: uint16

    cluster_id: string | None = None
    voter_id: int32 = field("1+", default=-1)  #: the recipient
    topics: list[TopicData]
    leader_endpoints: list[LeaderEndpoint] = field("1+", default=())


class BeginQuorumEpochResponse(Response, to=BeginQuorumEpochRequest):
    class TopicData(Struct):
        class PartitionData(Struct):
            partition_index: int32
            error_code: int16 = 0
            leader_id: int32  #: -1: the voter knows no leader
            leader_epoch: int32

        topic_name: string
        partitions: list[PartitionData]

    class NodeEndpoint(Struct):
        node_id: int32
        host: string
        port: uint16

    error_code: int16 = 0
    topics: list[TopicData]
    #: of the leaders
    node_endpoints: list[NodeEndpoint] = field("1+", tag=0, default=())

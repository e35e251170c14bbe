"""Vote (API key 52): a candidate, or a follower before it becomes one, requests a vote (KIP-595).

v1 directory ids and the voter's key (KIP-853) · v2 pre_vote (KIP-996)
"""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Struct, field
from barnabas.wire.types import ZERO_UUID, int16, int32, int64, string, uint16, uuid


class VoteRequest(Request, api_key=52, versions="0-2", flexible="0+"):
    class TopicData(Struct):
        class PartitionData(Struct):
            partition_index: int32
            replica_epoch: int32  #: of the candidate; with ``pre_vote`` its current one
            replica_id: int32
            replica_directory_id: uuid = field("1+", default=ZERO_UUID)
            voter_directory_id: uuid = field("1+", default=ZERO_UUID)
            last_offset_epoch: int32  #: of the last record of the candidate's log
            last_offset: int64  #: its log end offset
            pre_vote: bool = field("2+", default=False)

        topic_name: string
        partitions: list[PartitionData]

    cluster_id: string | None = None
    voter_id: int32 = field("1+", default=-1)  #: the recipient
    topics: list[TopicData]


class VoteResponse(Response, to=VoteRequest):
    class TopicData(Struct):
        class PartitionData(Struct):
            partition_index: int32
            error_code: int16 = 0
            leader_id: int32  #: -1: the voter knows no leader
            leader_epoch: int32
            vote_granted: bool

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

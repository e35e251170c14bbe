"""ShareAcknowledge (API key 79): acknowledge acquired records (KIP-932).

v0 early access, removed · v2 renewal of locks (KIP-1222)
"""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Struct, field
from barnabas.wire.types import int8, int16, int32, int64, string, uuid


class ShareAcknowledgeRequest(Request, api_key=79, versions="1-2", flexible="0+"):
    class AcknowledgeTopic(Struct):
        class AcknowledgePartition(Struct):
            class AcknowledgementBatch(Struct):
                first_offset: int64
                last_offset: int64
                acknowledge_types: list[int8]

            partition_index: int32
            acknowledgement_batches: list[AcknowledgementBatch]

        topic_id: uuid
        partitions: list[AcknowledgePartition]

    group_id: string | None = None
    member_id: string | None
    share_session_epoch: int32
    is_renew_ack: bool = field("2+", default=False)
    topics: list[AcknowledgeTopic]


class ShareAcknowledgeResponse(Response, to=ShareAcknowledgeRequest):
    class ShareAcknowledgeTopicResponse(Struct):
        class PartitionData(Struct):
            class LeaderIdAndEpoch(Struct):
                leader_id: int32
                leader_epoch: int32

            partition_index: int32
            error_code: int16 = 0
            error_message: string | None = None
            current_leader: LeaderIdAndEpoch

        topic_id: uuid
        partitions: list[PartitionData]

    class NodeEndpoint(Struct):
        node_id: int32
        host: string
        port: int32
        rack: string | None = None

    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    error_message: string | None = None
    acquisition_lock_timeout_ms: int32 = field("2+", default=0)
    responses: list[ShareAcknowledgeTopicResponse]
    node_endpoints: list[NodeEndpoint]

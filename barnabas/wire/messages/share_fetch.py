"""ShareFetch (API key 78): acquire records for a share group, and acknowledge others (KIP-932).

v0 early access, removed · v2 acquire modes (KIP-1206) and renewal of locks (KIP-1222)
"""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Struct, field
from barnabas.wire.types import int8, int16, int32, int64, record_batches, string, uuid


class ShareFetchRequest(Request, api_key=78, versions="1-2", flexible="0+"):
    class FetchTopic(Struct):
        class FetchPartition(Struct):
            class AcknowledgementBatch(Struct):
                first_offset: int64
                last_offset: int64
                acknowledge_types: list[int8]

            partition_index: int32
            acknowledgement_batches: list[AcknowledgementBatch]

        topic_id: uuid
        partitions: list[FetchPartition]

    class ForgottenTopic(Struct):
        topic_id: uuid
        partitions: list[int32]

    group_id: string | None = None
    member_id: string | None
    share_session_epoch: int32
    max_wait_ms: int32
    min_bytes: int32
    max_bytes: int32 = 0x7FFFFFFF
    max_records: int32
    batch_size: int32
    share_acquire_mode: int8 = field("2+", default=0)
    is_renew_ack: bool = field("2+", default=False)
    topics: list[FetchTopic]
    forgotten_topics_data: list[ForgottenTopic]


class ShareFetchResponse(Response, to=ShareFetchRequest):
    class ShareFetchableTopicResponse(Struct):
        class PartitionData(Struct):
            class LeaderIdAndEpoch(Struct):
                leader_id: int32
                leader_epoch: int32

            class AcquiredRecords(Struct):
                first_offset: int64
                last_offset: int64
                delivery_count: int16

            partition_index: int32
            error_code: int16 = 0
            error_message: string | None = None
            acknowledge_error_code: int16
            acknowledge_error_message: string | None = None
            current_leader: LeaderIdAndEpoch
            records: record_batches
            acquired_records: list[AcquiredRecords]

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
    acquisition_lock_timeout_ms: int32
    responses: list[ShareFetchableTopicResponse]
    node_endpoints: list[NodeEndpoint]

"""OffsetFetch (API key 9): the committed offsets of groups.

v1 stored in Kafka instead of ZooKeeper · v2 null requests all topics; error_code at the top · v3 throttle_time_ms ·
v4 throttled after the response (KIP-219) · v5 committed_leader_epoch (KIP-320) · v6 flexible · v7 require_stable
(KIP-447) · v8 several groups at once (KIP-709) · v9 member epochs (KIP-848) · v10 topics by id
"""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Struct, field
from barnabas.wire.types import ZERO_UUID, int16, int32, int64, string, uuid


class OffsetFetchRequest(Request, api_key=9, versions="0-10", flexible="6+"):
    class OffsetFetchRequestTopic(Struct):
        name: string
        partition_indexes: list[int32]

    class OffsetFetchRequestGroup(Struct):
        class OffsetFetchRequestTopics(Struct):
            name: string = field("8-9", default="")
            topic_id: uuid = field("10+", default=ZERO_UUID)
            partition_indexes: list[int32]

        group_id: string
        member_id: string | None = field("9+", default=None)
        member_epoch: int32 = field("9+", default=-1)
        topics: list[OffsetFetchRequestTopics] | None  #: null: all with committed offsets

    group_id: string = field("0-7", default="")
    #: null: all with committed offsets
    topics: list[OffsetFetchRequestTopic] | None = field("0-7", nullable="2-7", default=())
    groups: list[OffsetFetchRequestGroup] = field("8+", default=())
    #: UNSTABLE_OFFSET_COMMIT for offsets that an open transaction may change
    require_stable: bool = field("7+", default=False)


class OffsetFetchResponse(Response, to=OffsetFetchRequest):
    class OffsetFetchResponseTopic(Struct):
        class OffsetFetchResponsePartition(Struct):
            partition_index: int32
            committed_offset: int64  #: -1: none
            committed_leader_epoch: int32 = field("5-7", default=-1)
            metadata: string | None
            error_code: int16 = 0

        name: string
        partitions: list[OffsetFetchResponsePartition]

    class OffsetFetchResponseGroup(Struct):
        class OffsetFetchResponseTopics(Struct):
            class OffsetFetchResponsePartitions(Struct):
                partition_index: int32
                committed_offset: int64  #: -1: none
                committed_leader_epoch: int32 = -1
                metadata: string | None
                error_code: int16 = 0

            name: string = field("8-9", default="")
            topic_id: uuid = field("10+", default=ZERO_UUID)
            partitions: list[OffsetFetchResponsePartitions]

        group_id: string
        topics: list[OffsetFetchResponseTopics]
        error_code: int16 = 0

    throttle_time_ms: int32 = field("3+", default=0)
    topics: list[OffsetFetchResponseTopic] = field("0-7", default=())
    error_code: int16 = field("2-7", default=0)
    groups: list[OffsetFetchResponseGroup] = field("8+", default=())

"""ConsumerGroupHeartbeat (API key 68): join, stay in or leave a consumer group; returns the assignment (KIP-848).

v1 subscribed_topic_regex; the member chooses its id itself (KIP-1082)
"""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Struct, field
from barnabas.wire.types import int16, int32, string, uuid


class ConsumerGroupHeartbeatRequest(Request, api_key=68, versions="0-1", flexible="0+"):
    class TopicPartitions(Struct):
        topic_id: uuid
        partitions: list[int32]

    group_id: string
    member_id: string
    member_epoch: int32
    instance_id: string | None = None
    rack_id: string | None = None
    rebalance_timeout_ms: int32 = -1
    subscribed_topic_names: list[string] | None = None
    subscribed_topic_regex: string | None = field("1+", default=None)
    server_assignor: string | None = None
    topic_partitions: list[TopicPartitions] | None = None


class ConsumerGroupHeartbeatResponse(Response, to=ConsumerGroupHeartbeatRequest):
    class TopicPartitions(Struct):
        topic_id: uuid
        partitions: list[int32]

    class Assignment(Struct):
        topic_partitions: list["ConsumerGroupHeartbeatResponse.TopicPartitions"]

    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    error_message: string | None = None
    member_id: string | None = None
    member_epoch: int32
    heartbeat_interval_ms: int32
    assignment: Assignment | None = None

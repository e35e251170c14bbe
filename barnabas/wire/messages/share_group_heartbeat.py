"""ShareGroupHeartbeat (API key 76): join, stay in or leave a share group; returns the assignment (KIP-932).

v0 early access, removed
"""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Struct
from barnabas.wire.types import int16, int32, string, uuid


class ShareGroupHeartbeatRequest(Request, api_key=76, versions="1", flexible="0+"):
    group_id: string
    member_id: string
    member_epoch: int32
    rack_id: string | None = None
    subscribed_topic_names: list[string] | None = None


class ShareGroupHeartbeatResponse(Response, to=ShareGroupHeartbeatRequest):
    class TopicPartitions(Struct):
        topic_id: uuid
        partitions: list[int32]

    class Assignment(Struct):
        topic_partitions: list["ShareGroupHeartbeatResponse.TopicPartitions"]

    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    error_message: string | None = None
    member_id: string | None = None
    member_epoch: int32
    heartbeat_interval_ms: int32
    assignment: Assignment | None = None

"""ShareGroupDescribe (API key 77): the members of share groups, with their assignments (KIP-932).

v0 early access, removed
"""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Struct
from barnabas.wire.types import int16, int32, string, uuid


class ShareGroupDescribeRequest(Request, api_key=77, versions="1", flexible="0+"):
    group_ids: list[string]
    include_authorized_operations: bool


class ShareGroupDescribeResponse(Response, to=ShareGroupDescribeRequest):
    class TopicPartitions(Struct):
        topic_id: uuid
        topic_name: string
        partitions: list[int32]

    class Assignment(Struct):
        topic_partitions: list["ShareGroupDescribeResponse.TopicPartitions"]

    class DescribedGroup(Struct):
        class Member(Struct):
            member_id: string
            rack_id: string | None = None
            member_epoch: int32
            client_id: string
            client_host: string
            subscribed_topic_names: list[string]
            assignment: "ShareGroupDescribeResponse.Assignment"

        error_code: int16 = 0
        error_message: string | None = None
        group_id: string
        group_state: string
        group_epoch: int32
        assignment_epoch: int32
        assignor_name: string
        members: list[Member]
        authorized_operations: int32 = -2147483648

    throttle_time_ms: int32 = 0
    groups: list[DescribedGroup]

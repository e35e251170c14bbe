"""ConsumerGroupDescribe (API key 69): the members of consumer groups, with assignments and targets (KIP-848).

v1 member_type (KIP-1099)
"""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Struct, field
from barnabas.wire.types import int8, int16, int32, string, uuid


class ConsumerGroupDescribeRequest(Request, api_key=69, versions="0-1", flexible="0+"):
    group_ids: list[string]
    include_authorized_operations: bool


class ConsumerGroupDescribeResponse(Response, to=ConsumerGroupDescribeRequest):
    class TopicPartitions(Struct):
        topic_id: uuid
        topic_name: string
        partitions: list[int32]

    class Assignment(Struct):
        topic_partitions: list["ConsumerGroupDescribeResponse.TopicPartitions"]

    class DescribedGroup(Struct):
        class Member(Struct):
            member_id: string
            instance_id: string | None = None
            rack_id: string | None = None
            member_epoch: int32
            client_id: string
            client_host: string
            subscribed_topic_names: list[string]
            subscribed_topic_regex: string | None = None
            assignment: "ConsumerGroupDescribeResponse.Assignment"
            target_assignment: "ConsumerGroupDescribeResponse.Assignment"
            member_type: int8 = field("1+", default=-1)

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

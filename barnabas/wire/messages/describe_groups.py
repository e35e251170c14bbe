"""DescribeGroups (API key 15): the state and the members of classic groups.

v1 throttle_time_ms · v2 throttled after the response (KIP-219) · v3 authorized operations (KIP-430) · v4
group_instance_id (KIP-345) · v5 flexible · v6 GROUP_ID_NOT_FOUND with error_message (KIP-1043)
"""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Struct, field
from barnabas.wire.types import int16, int32, string


class DescribeGroupsRequest(Request, api_key=15, versions="0-6", flexible="5+"):
    groups: list[string]
    include_authorized_operations: bool = field("3+", default=False)


class DescribeGroupsResponse(Response, to=DescribeGroupsRequest):
    class DescribedGroup(Struct):
        class DescribedGroupMember(Struct):
            member_id: string
            group_instance_id: string | None = field("4+", default=None)
            client_id: string
            client_host: string  #: preceded by a slash: "/127.0.0.1"
            member_metadata: bytes
            member_assignment: bytes

        error_code: int16 = 0
        error_message: string | None = field("6+", default=None)
        group_id: string
        group_state: string
        protocol_type: string
        protocol_data: string  #: the chosen assignor
        members: list[DescribedGroupMember]
        #: a bit per operation; the minimum integer: not requested
        authorized_operations: int32 = field("3+", default=-0x80000000)

    throttle_time_ms: int32 = field("1+", default=0)
    groups: list[DescribedGroup]

"""DescribeAcls (API key 29): lists the ACLs that match a filter (KIP-140).

v1 pattern types (KIP-290) · v2 flexible · v3 users as resources (KIP-373)
"""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Struct, field
from barnabas.wire.types import int8, int16, int32, string


class DescribeAclsRequest(Request, api_key=29, versions="0-3", flexible="2+"):
    resource_type_filter: int8
    resource_name_filter: string | None
    pattern_type_filter: int8 = field("1+", default=3)
    principal_filter: string | None
    host_filter: string | None
    operation: int8
    permission_type: int8


class DescribeAclsResponse(Response, to=DescribeAclsRequest):
    class DescribeAclsResource(Struct):
        class AclDescription(Struct):
            principal: string
            host: string
            operation: int8
            permission_type: int8

        resource_type: int8
        resource_name: string
        pattern_type: int8 = field("1+", default=3)
        acls: list[AclDescription]

    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    error_message: string | None = None
    resources: list[DescribeAclsResource]

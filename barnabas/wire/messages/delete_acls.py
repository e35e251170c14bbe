"""DeleteAcls (API key 31): removes the ACLs that match filters (KIP-140).

v1 pattern types (KIP-290) · v2 flexible · v3 users as resources (KIP-373)
"""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Struct, field
from barnabas.wire.types import int8, int16, int32, string


class DeleteAclsRequest(Request, api_key=31, versions="0-3", flexible="2+"):
    class DeleteAclsFilter(Struct):
        resource_type_filter: int8
        resource_name_filter: string | None
        pattern_type_filter: int8 = field("1+", default=3)
        principal_filter: string | None
        host_filter: string | None
        operation: int8
        permission_type: int8

    filters: list[DeleteAclsFilter]


class DeleteAclsResponse(Response, to=DeleteAclsRequest):
    class DeleteAclsFilterResult(Struct):
        class DeleteAclsMatchingAcl(Struct):
            error_code: int16 = 0
            error_message: string | None = None
            resource_type: int8
            resource_name: string
            pattern_type: int8 = field("1+", default=3)
            principal: string
            host: string
            operation: int8
            permission_type: int8

        error_code: int16 = 0
        error_message: string | None = None
        matching_acls: list[DeleteAclsMatchingAcl]

    throttle_time_ms: int32 = 0
    filter_results: list[DeleteAclsFilterResult]

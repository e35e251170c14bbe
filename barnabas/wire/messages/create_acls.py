"""CreateAcls (API key 30): adds ACLs (KIP-140).

v1 pattern types (KIP-290) · v2 flexible · v3 users as resources (KIP-373)
"""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Struct, field
from barnabas.wire.types import int8, int16, int32, string


class CreateAclsRequest(Request, api_key=30, versions="0-3", flexible="2+"):
    class AclCreation(Struct):
        resource_type: int8
        resource_name: string
        resource_pattern_type: int8 = field("1+", default=3)
        principal: string
        host: string
        operation: int8
        permission_type: int8

    creations: list[AclCreation]


class CreateAclsResponse(Response, to=CreateAclsRequest):
    class AclCreationResult(Struct):
        error_code: int16 = 0
        error_message: string | None = None

    throttle_time_ms: int32 = 0
    results: list[AclCreationResult]

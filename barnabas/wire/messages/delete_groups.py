"""DeleteGroups (API key 42): delete groups and their offsets (KIP-229).

v1 throttled after the response (KIP-219) · v2 flexible · v3 error_message
"""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Struct, field
from barnabas.wire.types import int16, int32, string


class DeleteGroupsRequest(Request, api_key=42, versions="0-3", flexible="2+"):
    groups_names: list[string]


class DeleteGroupsResponse(Response, to=DeleteGroupsRequest):
    class DeletableGroupResult(Struct):
        group_id: string
        error_code: int16 = 0
        error_message: string | None = field("3+", default=None)

    throttle_time_ms: int32 = 0
    results: list[DeletableGroupResult]

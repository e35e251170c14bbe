"""ListGroups (API key 16): the groups that a broker coordinates.

v1 throttle_time_ms · v2 throttled after the response (KIP-219) · v3 flexible · v4 by state (KIP-518) · v5 by type
(KIP-848)
"""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Struct, field
from barnabas.wire.types import int16, int32, string


class ListGroupsRequest(Request, api_key=16, versions="0-5", flexible="3+"):
    states_filter: list[string] = field("4+", default=())  #: empty: all
    types_filter: list[string] = field("5+", default=())  #: empty: all


class ListGroupsResponse(Response, to=ListGroupsRequest):
    class ListedGroup(Struct):
        group_id: string
        protocol_type: string
        group_state: string = field("4+", default="")
        group_type: string = field("5+", default="")

    throttle_time_ms: int32 = field("1+", default=0)
    error_code: int16 = 0
    groups: list[ListedGroup]

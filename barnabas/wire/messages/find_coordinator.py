"""FindCoordinator (API key 10): the coordinator of a group, a transactional id or a share partition.

v1 key_type (KIP-98), throttle_time_ms · v2 throttled after the response (KIP-219) · v3 flexible · v4 several keys at
once (KIP-699) · v5 TRANSACTION_ABORTABLE (KIP-890) · v6 share partitions (KIP-932)
"""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Struct, field
from barnabas.wire.types import int8, int16, int32, string


class FindCoordinatorRequest(Request, api_key=10, versions="0-6", flexible="3+"):
    key: string = field("0-3", default="")
    #: 0: a group; 1: a transactional id; 2: a share partition, "group:topic id:partition"
    key_type: int8 = field("1+", default=0)
    coordinator_keys: list[string] = field("4+", default=())


class FindCoordinatorResponse(Response, to=FindCoordinatorRequest):
    class Coordinator(Struct):
        key: string
        node_id: int32
        host: string
        port: int32
        error_code: int16 = 0
        error_message: string | None = None

    throttle_time_ms: int32 = field("1+", default=0)
    error_code: int16 = field("0-3", default=0)
    error_message: string | None = field("1-3", default=None)
    node_id: int32 = field("0-3", default=0)
    host: string = field("0-3", default="")
    port: int32 = field("0-3", default=0)
    coordinators: list[Coordinator] = field("4+", default=())

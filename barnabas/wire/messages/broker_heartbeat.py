"""BrokerHeartbeat (API key 63): the heartbeat of a registered broker to the active controller (KIP-631).

v1 offline_log_dirs (KIP-858) · v2 cordoned_log_dirs (KIP-1066)
"""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import field
from barnabas.wire.types import int16, int32, int64, uuid


class BrokerHeartbeatRequest(Request, api_key=63, versions="0-2", flexible="0+"):
    broker_id: int32
    broker_epoch: int64 = -1
    current_metadata_offset: int64  #: the last offset that the broker has applied
    want_fence: bool
    want_shut_down: bool
    offline_log_dirs: list[uuid] = field("1+", tag=0, default=())
    cordoned_log_dirs: list[uuid] | None = field("2+", tag=1, default=None)  #: null: unchanged


class BrokerHeartbeatResponse(Response, to=BrokerHeartbeatRequest):
    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    is_caught_up: bool = False
    is_fenced: bool = True
    should_shut_down: bool = False

"""BrokerRegistration (API key 62): a broker that starts makes itself known to the active controller (KIP-631).

v1 is_migrating_zk_broker (KIP-866) · v2 log_dirs (KIP-858) · v3 previous_broker_epoch (KIP-966) · v4 features whose
lowest supported version is 0
"""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Struct, field
from barnabas.wire.types import int16, int32, int64, string, uint16, uuid


class BrokerRegistrationRequest(Request, api_key=62, versions="0-4", flexible="0+"):
    class Listener(Struct):
        name: string
        host: string
        port: uint16
        security_protocol: int16

    class Feature(Struct):
        name: string
        min_supported_version: int16
        max_supported_version: int16

    broker_id: int32
    cluster_id: string
    incarnation_id: uuid  #: another one for each start of the broker
    listeners: list[Listener]
    features: list[Feature]
    rack: string | None
    is_migrating_zk_broker: bool = field("1+", default=False)
    log_dirs: list[uuid] = field("2+", default=())
    previous_broker_epoch: int64 = field("3+", default=-1)  #: of its last clean shutdown; -1: there was none


class BrokerRegistrationResponse(Response, to=BrokerRegistrationRequest):
    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    broker_epoch: int64 = -1

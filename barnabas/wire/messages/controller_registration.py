"""ControllerRegistration (API key 70): a controller makes itself known to the active controller (KIP-919)."""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Struct
from barnabas.wire.types import int16, int32, string, uint16, uuid


class ControllerRegistrationRequest(Request, api_key=70, versions="0", flexible="0+"):
    class Listener(Struct):
        name: string
        host: string
        port: uint16
        security_protocol: int16

    class Feature(Struct):
        name: string
        min_supported_version: int16
        max_supported_version: int16

    controller_id: int32
    incarnation_id: uuid  #: another one for each start of the controller
    zk_migration_ready: bool = False
    listeners: list[Listener]
    features: list[Feature]


class ControllerRegistrationResponse(Response, to=ControllerRegistrationRequest):
    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    error_message: string | None = None

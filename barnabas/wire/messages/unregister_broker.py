"""UnregisterBroker (API key 64): remove a broker from the cluster permanently (KIP-631)."""

from barnabas.wire.message import Request, Response
from barnabas.wire.types import int16, int32, string


class UnregisterBrokerRequest(Request, api_key=64, versions="0", flexible="0+"):
    broker_id: int32


class UnregisterBrokerResponse(Response, to=UnregisterBrokerRequest):
    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    error_message: string | None = None

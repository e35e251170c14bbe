"""AllocateProducerIds (API key 67): a broker requests a block of producer ids from the active controller (KIP-730)."""

from barnabas.wire.message import Request, Response
from barnabas.wire.types import int16, int32, int64


class AllocateProducerIdsRequest(Request, api_key=67, versions="0", flexible="0+"):
    broker_id: int32
    broker_epoch: int64 = -1


class AllocateProducerIdsResponse(Response, to=AllocateProducerIdsRequest):
    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    producer_id_start: int64 = 0
    producer_id_len: int32 = 0

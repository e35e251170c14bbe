"""EndTxn (API key 26): commit or abort a transaction (KIP-98).

v1 throttled after the response (KIP-219) · v2 PRODUCER_FENCED (KIP-588) · v3 flexible · v4 TRANSACTION_ABORTABLE ·
v5 the epoch is bumped by every transaction, and returned (KIP-890)
"""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import field
from barnabas.wire.types import int16, int32, int64, string


class EndTxnRequest(Request, api_key=26, versions="0-5", flexible="3+"):
    transactional_id: string
    producer_id: int64
    producer_epoch: int16
    committed: bool  #: false: abort


class EndTxnResponse(Response, to=EndTxnRequest):
    throttle_time_ms: int32 = 0
    error_code: int16
    producer_id: int64 = field("5+", default=-1)  #: for the next transaction
    producer_epoch: int16 = field("5+", default=-1)

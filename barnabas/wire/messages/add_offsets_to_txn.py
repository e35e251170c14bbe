"""AddOffsetsToTxn (API key 25): add the offsets of a group to a transaction (KIP-98).

v1 throttled after the response (KIP-219) · v2 PRODUCER_FENCED (KIP-588) · v3 flexible · v4 TRANSACTION_ABORTABLE
(KIP-890)
"""

from barnabas.wire.message import Request, Response
from barnabas.wire.types import int16, int32, int64, string


class AddOffsetsToTxnRequest(Request, api_key=25, versions="0-4", flexible="3+"):
    transactional_id: string
    producer_id: int64
    producer_epoch: int16
    group_id: string


class AddOffsetsToTxnResponse(Response, to=AddOffsetsToTxnRequest):
    throttle_time_ms: int32 = 0
    error_code: int16

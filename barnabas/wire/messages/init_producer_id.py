"""InitProducerId (API key 22): a producer id and epoch for idempotence and transactions (KIP-98).

v1 throttled after the response (KIP-219) · v2 flexible · v3 the producer's own id and epoch, to be bumped (KIP-360) ·
v4 PRODUCER_FENCED (KIP-588) · v5 TRANSACTION_ABORTABLE (KIP-890) · v6 two-phase commit (KIP-939)
"""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import field
from barnabas.wire.types import int16, int32, int64, string


class InitProducerIdRequest(Request, api_key=22, versions="0-6", flexible="2+"):
    transactional_id: string | None  #: null: for idempotence only
    transaction_timeout_ms: int32  #: after which the coordinator aborts a transaction
    producer_id: int64 = field("3+", default=-1)  #: of the producer; -1: none yet
    producer_epoch: int16 = field("3+", default=-1)
    enable2_pc: bool = field("6+", default=False)
    keep_prepared_txn: bool = field("6+", default=False)


class InitProducerIdResponse(Response, to=InitProducerIdRequest):
    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    producer_id: int64 = -1
    producer_epoch: int16
    ongoing_txn_producer_id: int64 = field("6+", default=-1)
    ongoing_txn_producer_epoch: int16 = field("6+", default=-1)

"""EndTxn (API key 26): commit or abort a transaction (KIP-98); from version 5 on, and go on in another epoch (KIP-890).

Knows nothing of what the coordinator does to end it.
"""

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.registry import api
from barnabas.errors import NONE, InvalidProducerEpoch, ProducerFenced
from barnabas.transactions.messages import EndResult
from barnabas.transactions.transaction import Path
from barnabas.wire.messages.end_txn import EndTxnRequest, EndTxnResponse

FENCED_SINCE = 2
"""Clients that speak an earlier version do not know PRODUCER_FENCED (KIP-588)."""

EPOCH_RISES = 5


@api(EndTxnRequest)
def end_txn(request: EndTxnRequest, context: Context) -> Later[EndTxnResponse]:
    """Answered when the decision is written: whatever happens then, it is carried out."""
    later: Later[EndTxnResponse] = Later()
    fenced = ProducerFenced if context.api_version >= FENCED_SINCE else InvalidProducerEpoch

    def answer(result: EndResult) -> None:
        error = fenced if result.error is ProducerFenced else result.error
        later.resolve(
            EndTxnResponse(
                error_code=NONE if error is None else error.code,
                producer_id=result.producer_id,
                producer_epoch=result.producer_epoch,
            )
        )

    coordinator = context.broker.transactions
    identity = request.transactional_id, request.producer_id, request.producer_epoch
    coordinator.heard_by(*identity, context.connection, Path.TRANSACTIONS)
    client_version = 2 if context.api_version >= EPOCH_RISES else 0
    coordinator.end(*identity, request.committed, answer, client_version=client_version)
    return later

"""EndTxn (API key 26): commits or aborts a transaction (KIP-98); bumps the producer epoch from version 5 on (KIP-890).

Knows nothing of how the coordinator ends a transaction.
"""

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.outcome import coordinators_code
from barnabas.api_handlers.registry import api
from barnabas.transactions.messages import EndResult, ProducerIdentity
from barnabas.transactions.transaction import EPOCH_RISES
from barnabas.wire.messages.end_txn import EndTxnRequest, EndTxnResponse

RETURNS_EPOCH = 5
"""The first version whose response has the producer id and epoch of the next transaction (KIP-890)."""


@api(EndTxnRequest)
def end_txn(request: EndTxnRequest, context: Context) -> Later[EndTxnResponse]:
    """Ends the transaction. Responds once the decision is durable; the markers follow."""
    later: Later[EndTxnResponse] = Later()
    version = context.api_version

    def answer(result: EndResult) -> None:
        later.resolve(
            EndTxnResponse(
                error_code=coordinators_code(result.error, version),
                producer_id=result.producer_id,
                producer_epoch=result.producer_epoch,
            )
        )

    session = context.session.number
    producer = ProducerIdentity(request.transactional_id, request.producer_id, request.producer_epoch, session)
    client_version = EPOCH_RISES if version >= RETURNS_EPOCH else 0
    context.broker.transactions.end(producer, request.committed, answer, client_version=client_version)
    return later

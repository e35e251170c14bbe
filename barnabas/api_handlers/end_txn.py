"""EndTxn (API key 26): commit or abort a transaction (KIP-98); from version 5 on, and go on in another epoch (KIP-890).

Knows nothing of what the coordinator does to end it.
"""

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.outcome import coordinators_code
from barnabas.api_handlers.registry import api
from barnabas.transactions.messages import EndResult, ProducerIdentity
from barnabas.transactions.transaction import EPOCH_RISES
from barnabas.wire.messages.end_txn import EndTxnRequest, EndTxnResponse

TELLS_EPOCH = 5
"""From this version on the client hears the id and epoch to go on with (KIP-890)."""


@api(EndTxnRequest)
def end_txn(request: EndTxnRequest, context: Context) -> Later[EndTxnResponse]:
    """Answered when the decision is written: whatever happens then, it is carried out."""
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
    client_version = EPOCH_RISES if version >= TELLS_EPOCH else 0
    context.broker.transactions.end(producer, request.committed, answer, client_version=client_version)
    return later

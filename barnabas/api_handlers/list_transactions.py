"""ListTransactions (API key 66): the transactional ids of this coordinator (KIP-664, KIP-994, KIP-1152).

Knows nothing of how a transaction proceeds. A filter that is empty, negative or null is no filter.
"""

from barnabas.api_handlers.context import Context
from barnabas.api_handlers.registry import api
from barnabas.wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse


@api(ListTransactionsRequest)
def list_transactions(request: ListTransactionsRequest, context: Context) -> ListTransactionsResponse:
    """Lists the transactional ids that pass all filters."""
    broker = context.broker
    listing = broker.transactions.list_transactions(
        request.state_filters,
        request.producer_id_filters,
        request.duration_filter,
        request.transactional_id_pattern,
    )
    return ListTransactionsResponse(
        unknown_state_filters=list(dict.fromkeys(listing.unknown_states)),
        transaction_states=[
            ListTransactionsResponse.TransactionState(
                transactional_id=each.transactional_id, producer_id=each.producer_id, transaction_state=each.state
            )
            for each in listing.transactions
        ],
    )

"""DescribeTransactions (API key 65): the state of transactional ids (KIP-664).

Knows nothing of how a transaction proceeds. A result with an error has only the transactional id.
"""

from barnabas.api_handlers.context import Context
from barnabas.api_handlers.registry import api
from barnabas.errors import KafkaError
from barnabas.transactions.messages import by_topic
from barnabas.wire.messages.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse

State = DescribeTransactionsResponse.TransactionState


@api(DescribeTransactionsRequest)
def describe_transactions(request: DescribeTransactionsRequest, context: Context) -> DescribeTransactionsResponse:
    """Describes each transactional id. One that is requested twice is described twice."""
    return DescribeTransactionsResponse(
        transaction_states=[_describe(transactional_id, context) for transactional_id in request.transactional_ids]
    )


def _describe(transactional_id: str, context: Context) -> State:
    try:
        found = context.broker.transactions.describe(transactional_id)
    except KafkaError as error:
        return State(
            error_code=error.code,
            transactional_id=transactional_id,
            transaction_state="",
            transaction_timeout_ms=0,
            transaction_start_time_ms=0,
            producer_id=0,
            producer_epoch=0,
            topics=[],
        )
    return State(
        transactional_id=transactional_id,
        transaction_state=found.state,
        transaction_timeout_ms=found.timeout_ms,
        transaction_start_time_ms=found.start_time_ms,
        producer_id=found.producer_id,
        producer_epoch=found.producer_epoch,
        topics=[
            State.TopicData(topic=topic, partitions=indexes) for topic, indexes in by_topic(found.partitions).items()
        ],
    )

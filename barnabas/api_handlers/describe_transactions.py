"""DescribeTransactions (API key 65): what the coordinator knows of transactional ids (KIP-664).

Knows nothing of how a transaction goes on. Beside an error stands the transactional id, and nothing else.
"""

from collections.abc import Iterable

from barnabas.api_handlers.context import Context
from barnabas.api_handlers.registry import api
from barnabas.errors import KafkaError
from barnabas.wire.messages.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse

State = DescribeTransactionsResponse.TransactionState


@api(DescribeTransactionsRequest)
def describe_transactions(request: DescribeTransactionsRequest, context: Context) -> DescribeTransactionsResponse:
    """Describe each of the transactional ids, as often as it is named."""
    return DescribeTransactionsResponse(
        transaction_states=[_describe(transactional_id, context) for transactional_id in request.transactional_ids]
    )


def _describe(transactional_id: str, context: Context) -> State:
    try:
        told = context.broker.transactions.describe(transactional_id)
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
        transaction_state=told.state,
        transaction_timeout_ms=told.timeout_ms,
        transaction_start_time_ms=told.start_time_ms,
        producer_id=told.producer_id,
        producer_epoch=told.producer_epoch,
        topics=_by_topic(told.partitions),
    )


def _by_topic(partitions: Iterable[tuple[str, int]]) -> list[State.TopicData]:
    topics: dict[str, list[int]] = {}
    for topic, index in partitions:
        topics.setdefault(topic, []).append(index)
    return [State.TopicData(topic=topic, partitions=indexes) for topic, indexes in topics.items()]

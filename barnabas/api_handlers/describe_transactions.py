"""DescribeTransactions (API key 65): the state of transactional ids (KIP-664).

Knows nothing of how a transaction proceeds. A result with an error has only the transactional id.
"""

from collections.abc import Iterable

from barnabas.api_handlers.context import Context
from barnabas.api_handlers.registry import api
from barnabas.errors import KafkaError
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
        topics=_by_topic(found.partitions),
    )


def _by_topic(partitions: Iterable[tuple[str, int]]) -> list[State.TopicData]:
    topics: dict[str, list[int]] = {}
    for topic, index in partitions:
        topics.setdefault(topic, []).append(index)
    return [State.TopicData(topic=topic, partitions=indexes) for topic, indexes in topics.items()]

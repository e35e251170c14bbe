"""AddPartitionsToTxn (API key 24): partitions become part of a transaction, or are asked whether they are.

Knows nothing of what the coordinator makes of it; only that a partition has to be there, which is looked at first.
Clients speak versions 0 to 3, of one transaction (KIP-98); brokers among themselves 4 and 5, of several (KIP-890).
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.outcome import coordinators_code
from barnabas.api_handlers.registry import api
from barnabas.cluster.topic_names import INTERNAL
from barnabas.errors import (
    OperationNotAttempted,
    TopicAuthorizationFailed,
    UnknownTopicOrPartition,
)
from barnabas.transactions.messages import ProducerIdentity, TopicPartition
from barnabas.transactions.transaction import EPOCH_RISES
from barnabas.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse

TopicResult = AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult
PartitionResult = TopicResult.AddPartitionsToTxnPartitionResult
Result = AddPartitionsToTxnResponse.AddPartitionsToTxnResult

SEVERAL_TRANSACTIONS = 4
"""From this version on brokers ask, on behalf of clients whose partitions are added as they write (KIP-890)."""

Topics = Sequence[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic]
Outcome = list[TopicResult]


class Asked(NamedTuple):
    """One transaction of a request, and the topics that it is about."""

    producer: ProducerIdentity
    verify_only: bool
    topics: Topics

    @property
    def partitions(self) -> list[TopicPartition]:
        return [TopicPartition(topic.name, index) for topic in self.topics for index in topic.partitions]


@api(AddPartitionsToTxnRequest)
def add_partitions_to_txn(
    request: AddPartitionsToTxnRequest, context: Context
) -> AddPartitionsToTxnResponse | Later[AddPartitionsToTxnResponse]:
    """Add or verify the partitions of each transaction; answered when all of that is written."""
    asked = _asked(request, context)
    if not asked:  # Apache Kafka never answers that
        return AddPartitionsToTxnResponse()
    later: Later[AddPartitionsToTxnResponse] = Later()
    outcomes: dict[str, Outcome] = {}
    version = context.api_version

    def take(transactional_id: str, outcome: Outcome) -> None:
        outcomes[transactional_id] = outcome
        if len(outcomes) == len(asked):
            later.resolve(_response(outcomes, version))

    for transactional_id, transaction in asked.items():
        _do(transaction, context, partial(take, transactional_id))
    return later


def _asked(request: AddPartitionsToTxnRequest, context: Context) -> dict[str, Asked]:
    """Returns the transactions by transactional id. The last one counts where an id is there twice."""
    if context.api_version < SEVERAL_TRANSACTIONS:
        producer = ProducerIdentity(
            request.v3_and_below_transactional_id,
            request.v3_and_below_producer_id,
            request.v3_and_below_producer_epoch,
            context.session.number,
        )
        return {producer.transactional_id: Asked(producer, False, request.v3_and_below_topics)}
    return {
        each.transactional_id: Asked(
            ProducerIdentity(each.transactional_id, each.producer_id, each.producer_epoch),
            each.verify_only,
            each.topics,
        )
        for each in request.transactions
    }


def _do(asked: Asked, context: Context, done: Callable[[Outcome], object]) -> None:
    """One transaction: all of its partitions, or none where one may not be in it."""
    partitions, version = asked.partitions, context.api_version
    refused = _refused(partitions, context)
    if refused:
        done(_by_topic({each: refused.get(each, OperationNotAttempted.code) for each in partitions}))
        return
    coordinator = context.broker.transactions
    if asked.verify_only:
        found = coordinator.verify_partitions(asked.producer, partitions)
        done(_by_topic({each: coordinators_code(error, version) for each, error in found.items()}))
    else:
        coordinator.add_partitions(
            asked.producer,
            partitions,
            lambda error: done(_all(asked.topics, coordinators_code(error, version))),
            client_version=EPOCH_RISES if version >= SEVERAL_TRANSACTIONS else 0,
        )


def _refused(partitions: Iterable[TopicPartition], context: Context) -> dict[TopicPartition, int]:
    """What cannot be in a transaction: what is not there, and the broker's own topics, which other brokers may add."""
    find = context.broker.image.partition
    refused = {each: UnknownTopicOrPartition.code for each in partitions if find(*each) is None}
    if context.api_version < SEVERAL_TRANSACTIONS:
        refused |= {each: TopicAuthorizationFailed.code for each in partitions if each.topic in INTERNAL}
    return refused


def _response(outcomes: dict[str, Outcome], version: int) -> AddPartitionsToTxnResponse:
    if version < SEVERAL_TRANSACTIONS:
        ((_, outcome),) = outcomes.items()
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=outcome)
    return AddPartitionsToTxnResponse(
        results_by_transaction=[
            Result(transactional_id=transactional_id, topic_results=outcome)
            for transactional_id, outcome in outcomes.items()
        ]
    )


def _all(topics: Topics, code: int) -> Outcome:
    """One code for all that was asked, in the request's own shape: with what is in it twice, or empty."""
    return [
        TopicResult(
            name=topic.name,
            results_by_partition=[
                PartitionResult(partition_index=index, partition_error_code=code) for index in topic.partitions
            ],
        )
        for topic in topics
    ]


def _by_topic(codes: dict[TopicPartition, int]) -> Outcome:
    topics: dict[str, list[PartitionResult]] = {}
    for (topic, partition), code in codes.items():
        topics.setdefault(topic, []).append(PartitionResult(partition_index=partition, partition_error_code=code))
    return [TopicResult(name=name, results_by_partition=results) for name, results in topics.items()]

"""AddPartitionsToTxn (API key 24): adds partitions to a transaction, or verifies that they are in it.

Knows nothing of the coordinator's rules, except that a partition must exist, which is checked first. Clients send
versions 0 to 3, with one transaction (KIP-98); brokers send versions 4 and 5, with several (KIP-890).
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
"""The first version that brokers send, for clients whose partitions are added as they produce (KIP-890)."""

Topics = Sequence[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic]
Outcome = list[TopicResult]


class RequestedTransaction(NamedTuple):
    """One transaction of a request, and its topics."""

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
    """Adds or verifies the partitions of each transaction. Responds once all of them are durable."""
    requested = _requested(request, context)
    if not requested:  # Apache Kafka does not respond at all
        return AddPartitionsToTxnResponse()
    later: Later[AddPartitionsToTxnResponse] | None = None
    outcomes: dict[str, Outcome] = {}
    version = context.api_version

    def collect(transactional_id: str, outcome: Outcome) -> None:
        outcomes[transactional_id] = outcome
        if later is not None and len(outcomes) == len(requested):
            later.resolve(_response(outcomes, version))

    for transactional_id, transaction in requested.items():
        _add_or_verify(transaction, context, partial(collect, transactional_id))
    if len(outcomes) == len(requested):
        return _response(outcomes, version)
    later = Later()
    return later


def _requested(request: AddPartitionsToTxnRequest, context: Context) -> dict[str, RequestedTransaction]:
    """Returns the transactions by transactional id. Of two with the same id the last one counts."""
    if context.api_version < SEVERAL_TRANSACTIONS:
        producer = ProducerIdentity(
            request.v3_and_below_transactional_id,
            request.v3_and_below_producer_id,
            request.v3_and_below_producer_epoch,
            context.session.number,
        )
        return {producer.transactional_id: RequestedTransaction(producer, False, request.v3_and_below_topics)}
    return {
        each.transactional_id: RequestedTransaction(
            ProducerIdentity(each.transactional_id, each.producer_id, each.producer_epoch),
            each.verify_only,
            each.topics,
        )
        for each in request.transactions
    }


def _add_or_verify(requested: RequestedTransaction, context: Context, done: Callable[[Outcome], object]) -> None:
    """Adds or verifies all partitions of one transaction, or none if one of them is refused."""
    partitions, version = requested.partitions, context.api_version
    refused = _refused(partitions, context)
    if refused:
        done(_by_topic({each: refused.get(each, OperationNotAttempted.code) for each in partitions}))
        return
    coordinator = context.broker.transactions
    if requested.verify_only:
        found = coordinator.verify_partitions(requested.producer, partitions)
        done(_by_topic({each: coordinators_code(error, version) for each, error in found.items()}))
    else:
        coordinator.add_partitions(
            requested.producer,
            partitions,
            lambda error: done(_same_for_all(requested.topics, coordinators_code(error, version))),
            client_version=EPOCH_RISES if version >= SEVERAL_TRANSACTIONS else 0,
        )


def _refused(partitions: Iterable[TopicPartition], context: Context) -> dict[TopicPartition, int]:
    """Returns the errors of partitions that do not exist, and of internal topics, which only brokers may add."""
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


def _same_for_all(topics: Topics, code: int) -> Outcome:
    """Returns the same error code for each entry of the request, duplicates and empty topics included."""
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

"""TxnOffsetCommit (API key 28): a group commits offsets in a transaction of a producer.

Knows nothing of who may commit, nor of when the transaction ends. The topics are checked first, then the transaction,
then the group (Kafka's ``GroupCoordinatorService.commitTransactionalOffsets``).
"""

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.offsets_to_commit import Results, look_up, response_topics
from barnabas.api_handlers.registry import api
from barnabas.broker.transactional import Errors, Operation, ensure_in_transaction
from barnabas.cluster.topic_names import CONSUMER_OFFSETS
from barnabas.coordinators.shard import COORDINATOR_ERRORS
from barnabas.errors import (
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    IllegalGeneration,
    InvalidGroupId,
    InvalidProducerEpoch,
    KafkaError,
    NetworkException,
    ProducerFenced,
    StaleMemberEpoch,
)
from barnabas.groups.messages import OffsetCommit, OffsetToCommit
from barnabas.offsets.pending import Producer
from barnabas.transactions.messages import Path, ProducerIdentity, TopicPartition
from barnabas.wire.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from barnabas.wire.types import ZERO_UUID

Topic = TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic

KNOWS_LOAD_IN_PROGRESS = 2
"""Producers of older versions fail with COORDINATOR_LOAD_IN_PROGRESS, and retry with COORDINATOR_NOT_AVAILABLE."""

KNOWS_TRANSACTION_ABORTABLE = 4
ADDS_THE_GROUP = 5
BY_ID = KNOWS_STALE_MEMBER_EPOCH = 6

API_ERRORS: dict[type[KafkaError], type[KafkaError]] = {
    **COORDINATOR_ERRORS,
    NetworkException: CoordinatorLoadInProgress,
    ProducerFenced: InvalidProducerEpoch,
}
"""The errors of this API for errors of the transaction."""


@api(TxnOffsetCommitRequest)
def txn_offset_commit(
    request: TxnOffsetCommitRequest, context: Context
) -> TxnOffsetCommitResponse | Later[TxnOffsetCommitResponse]:
    """Writes the offsets of partitions that exist as pending offsets. Responds once they are durable."""
    version = context.api_version
    requested = look_up(request.topics, context.broker.image, by_id=version >= BY_ID)
    if not requested.existing:
        return _response(requested.results([]))
    later: Later[TxnOffsetCommitResponse] = Later()
    broker, commit = context.broker, _commit(request, requested.offsets, version)

    def answer(errors: list[KafkaError | None]) -> None:
        later.resolve(_response(requested.results(errors)))

    def refuse(error: KafkaError) -> None:
        answer([_api_error(type(error), version)()] * len(commit.offsets))

    def verified(errors: Errors) -> None:
        refusal = errors.get(kept_in)
        if refusal is not None:
            refuse(refusal)
            return
        try:
            broker.groups.commit_offsets(commit, answer)
        except KafkaError as error:
            refuse(error)

    if not request.group_id:
        refuse(InvalidGroupId())
        return later
    kept_in = TopicPartition(CONSUMER_OFFSETS, broker.coordinators.groups.partition_of(request.group_id))
    producer = ProducerIdentity(
        request.transactional_id, request.producer_id, request.producer_epoch, context.session.number, Path.GROUPS
    )
    broker.transactions.check_session(producer)
    later.on_cancel = ensure_in_transaction(broker, producer, [kept_in], _operation(version), verified)
    return later


def _operation(version: int) -> Operation:
    if version >= ADDS_THE_GROUP:
        return Operation.ADD_PARTITION
    return Operation.DEFAULT_ERROR if version < KNOWS_TRANSACTION_ABORTABLE else Operation.GENERIC_ERROR_SUPPORTED


def _api_error(error: type[KafkaError], version: int) -> type[KafkaError]:
    if error is StaleMemberEpoch and version < KNOWS_STALE_MEMBER_EPOCH:
        return IllegalGeneration
    known = API_ERRORS.get(error, error)
    if known is CoordinatorLoadInProgress and version < KNOWS_LOAD_IN_PROGRESS:
        return CoordinatorNotAvailable
    return known


def _commit(request: TxnOffsetCommitRequest, offsets: list[OffsetToCommit], version: int) -> OffsetCommit:
    if version < BY_ID:  # the commit has names, and is stored without ids
        offsets = [each._replace(topic_id=ZERO_UUID) for each in offsets]
    return OffsetCommit(
        request.group_id,
        offsets,
        request.generation_id_or_member_epoch,
        request.member_id,
        request.group_instance_id,
        knows_group_id_not_found=version >= BY_ID,
        producer=Producer(request.producer_id, request.producer_epoch),
    )


def _response(answers: Results) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(topics=response_topics(answers, Topic, Topic.TxnOffsetCommitResponsePartition))

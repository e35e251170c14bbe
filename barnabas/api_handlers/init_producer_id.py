"""InitProducerId (API key 22): give an idempotent producer an id that nobody else has (KIP-98, KIP-360).

Knows nothing of how ids are given out. A transactional id is answered as Apache Kafka does where the coordinator of
that id is not: the client asks for the coordinator again, and is told that there is none.
"""

from barnabas.api_handlers.context import Context
from barnabas.api_handlers.registry import api
from barnabas.errors import (
    CoordinatorLoadInProgress,
    InvalidRequest,
    InvalidTransactionTimeout,
    KafkaError,
    NotCoordinator,
)
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

NONE = -1
"""A producer's id, or epoch, that it doesn't have yet."""

FIRST_EPOCH = 0


@api(InitProducerIdRequest, versions="0-5", changes_metadata=True)
def init_producer_id(request: InitProducerIdRequest, context: Context) -> InitProducerIdResponse:
    """Give out the next id. What the producer had before doesn't matter: without transactions nobody else has that."""
    try:
        check(request, context)
        producer_id = next_id(context)
    except KafkaError as error:
        return InitProducerIdResponse(error_code=error.code, producer_id=NONE, producer_epoch=NONE)
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=FIRST_EPOCH)


def check(request: InitProducerIdRequest, context: Context) -> None:
    """Raise what is wrong with the request, in the order in which Apache Kafka's ``TransactionCoordinator`` looks."""
    if (request.producer_id == NONE) != (request.producer_epoch == NONE):
        raise InvalidRequest("a producer has both an id and an epoch, or none of them")
    transactional_id = request.transactional_id
    if transactional_id is None:
        return
    if not transactional_id:
        raise InvalidRequest("a transactional id is empty")
    if not 0 < request.transaction_timeout_ms <= context.broker.config["transaction.max.timeout.ms"]:
        raise InvalidTransactionTimeout(f"{request.transaction_timeout_ms} ms is no time for a transaction")
    raise NotCoordinator(f"no coordinator of the transactional id {transactional_id} is here")


def next_id(context: Context) -> int:
    try:
        return context.broker.next_producer_id()
    except KafkaError as error:  # an idempotent producer waits and asks again
        raise CoordinatorLoadInProgress(f"there are no producer ids to be had: {error}") from error

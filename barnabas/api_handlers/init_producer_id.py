"""InitProducerId (API key 22): an id and an epoch for an idempotent or transactional producer (KIP-98, KIP-360).

Knows nothing of how ids are allocated, nor of how the transaction coordinator handles a transactional id.
"""

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.error_responses import derived, error_shape
from barnabas.api_handlers.outcome import coordinators_code
from barnabas.api_handlers.registry import api
from barnabas.errors import (
    CoordinatorLoadInProgress,
    InvalidRequest,
    KafkaError,
)
from barnabas.transactions.messages import InitProducer, InitResult
from barnabas.wire.message import Response
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

NONE = -1
"""The id, or epoch, of a producer that has none yet."""

FIRST_EPOCH = 0

FENCED_SINCE = 4
"""The first version that knows PRODUCER_FENCED (KIP-588)."""


@api(InitProducerIdRequest)
def init_producer_id(
    request: InitProducerIdRequest, context: Context
) -> InitProducerIdResponse | Later[InitProducerIdResponse]:
    """Returns the next producer id, or the one of the transactional id.

    Without a transactional id the producer's previous id does not matter: no other producer has it.
    """
    version = context.api_version
    if (request.producer_id == NONE) != (request.producer_epoch == NONE):
        return _response(InitResult(InvalidRequest()), version)
    producer_ids = context.broker.producer_ids
    later: Later[InitProducerIdResponse] = Later()

    def answer(result: InitResult) -> None:
        later.resolve(_response(result, version))

    def available(error: KafkaError | None) -> None:
        if error is not None:  # retriable
            answer(InitResult(CoordinatorLoadInProgress()))
        elif request.transactional_id is None:
            answer(InitResult(None, producer_ids.next(), FIRST_EPOCH))
        else:
            ask = InitProducer(
                request.transactional_id, request.transaction_timeout_ms, request.producer_id, request.producer_epoch
            )
            context.broker.transactions.init_producer_id(ask, answer)

    producer_ids.when_available(available)
    return later if later.response is None else later.response


@error_shape(InitProducerIdRequest)
def _failed(request: InitProducerIdRequest, error: KafkaError, version: int) -> Response:
    return derived(request, error, version, producer_id=NONE, producer_epoch=NONE)


def _response(result: InitResult, version: int) -> InitProducerIdResponse:
    return InitProducerIdResponse(
        error_code=coordinators_code(result.error, version, fenced_since=FENCED_SINCE),
        producer_id=result.producer_id,
        producer_epoch=result.producer_epoch,
    )

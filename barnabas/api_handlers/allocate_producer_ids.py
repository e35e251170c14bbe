"""AllocateProducerIds (API key 67): gives a broker a block of producer ids (KIP-730).

Knows nothing of producers.
"""

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.registry import api
from barnabas.api_handlers.submitting import submit
from barnabas.cluster.controller.commands.nodes import AllocateProducerIds
from barnabas.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse


@api(AllocateProducerIdsRequest)
def allocate_producer_ids(
    request: AllocateProducerIdsRequest, context: Context
) -> AllocateProducerIdsResponse | Later[AllocateProducerIdsResponse]:
    """Returns the first id of the block, and their number."""

    def respond(block: tuple[int, int]) -> AllocateProducerIdsResponse:
        first, count = block
        return AllocateProducerIdsResponse(producer_id_start=first, producer_id_len=count)

    return submit(AllocateProducerIds(request.broker_id, request.broker_epoch), request, context, respond)

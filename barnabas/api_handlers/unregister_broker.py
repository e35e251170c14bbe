"""UnregisterBroker (API key 64): removes the registration of a broker that will not return (KIP-631).

Knows nothing of the broker's partitions.
"""

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.registry import api
from barnabas.api_handlers.submitting import submit
from barnabas.cluster.controller.commands.nodes import UnregisterBroker
from barnabas.wire.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse


@api(UnregisterBrokerRequest)
def unregister_broker(
    request: UnregisterBrokerRequest, context: Context
) -> UnregisterBrokerResponse | Later[UnregisterBrokerResponse]:
    return submit(
        UnregisterBroker(request.broker_id), request, context, lambda result: UnregisterBrokerResponse(error_message="")
    )

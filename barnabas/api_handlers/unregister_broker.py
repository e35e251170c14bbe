"""UnregisterBroker (API key 64): removes a broker that does not come back from the cluster (KIP-631).

Knows nothing of what the broker has had.
"""

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.registry import api
from barnabas.api_handlers.submitting import submit
from barnabas.cluster.controller.commands import UnregisterBroker
from barnabas.wire.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse


@api(UnregisterBrokerRequest)
def unregister_broker(
    request: UnregisterBrokerRequest, context: Context
) -> UnregisterBrokerResponse | Later[UnregisterBrokerResponse]:
    return submit(
        UnregisterBroker(request.broker_id), request, context, lambda result: UnregisterBrokerResponse(error_message="")
    )

"""BrokerRegistration (API key 62): registers a broker that has started (KIP-631).

Knows nothing of what makes a registration valid: the controller decides. The response has no field for an error
message, which is logged here.
"""

import logging

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.registration import endpoints_of, features_of
from barnabas.api_handlers.registry import api
from barnabas.api_handlers.submitting import submit_refusing
from barnabas.cluster.controller.commands.nodes import RegisterBroker
from barnabas.errors import KafkaError
from barnabas.wire.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse

logger = logging.getLogger(__name__)


@api(BrokerRegistrationRequest)
def broker_registration(
    request: BrokerRegistrationRequest, context: Context
) -> BrokerRegistrationResponse | Later[BrokerRegistrationResponse]:
    """Registers the broker. The response has its broker epoch."""
    command = RegisterBroker(
        request.broker_id,
        request.incarnation_id,
        endpoints_of(request.listeners),
        request.log_dirs,
        features_of(request.features),
        request.cluster_id,
        request.rack,
        request.previous_broker_epoch,
        request.is_migrating_zk_broker,
    )

    def refuse(error: KafkaError) -> BrokerRegistrationResponse:
        logger.info("Broker %d is not registered: %s", request.broker_id, error)
        return BrokerRegistrationResponse(error_code=error.code)

    return submit_refusing(command, context, lambda epoch: BrokerRegistrationResponse(broker_epoch=epoch), refuse)

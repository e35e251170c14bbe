"""ControllerRegistration (API key 70): registers a controller that has started (KIP-919).

Knows nothing of the quorum: a controller registers whether it has a vote or not.
"""

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.registration import endpoints_of, features_of
from barnabas.api_handlers.registry import api
from barnabas.api_handlers.submitting import submit
from barnabas.cluster.controller.commands.nodes import RegisterController
from barnabas.wire.messages.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)


@api(ControllerRegistrationRequest)
def controller_registration(
    request: ControllerRegistrationRequest, context: Context
) -> ControllerRegistrationResponse | Later[ControllerRegistrationResponse]:
    command = RegisterController(
        request.controller_id,
        request.incarnation_id,
        endpoints_of(request.listeners),
        features_of(request.features),
    )
    return submit(command, request, context, lambda result: ControllerRegistrationResponse(error_message=""))

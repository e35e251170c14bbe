"""SaslHandshake (API key 17) where there is nothing to authenticate: the listener has no SASL, or the client has
authenticated.

Knows nothing of mechanisms: :mod:`barnabas.server.sasl` answers while a client authenticates.
"""

from barnabas.api_handlers.context import Context
from barnabas.api_handlers.registry import api
from barnabas.errors import IllegalSaslState
from barnabas.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


@api(SaslHandshakeRequest)
def sasl_handshake(request: SaslHandshakeRequest, context: Context) -> SaslHandshakeResponse:
    """Refuses the handshake (``KafkaApis.handleSaslHandshakeRequest``)."""
    return SaslHandshakeResponse(error_code=IllegalSaslState.code, mechanisms=[])

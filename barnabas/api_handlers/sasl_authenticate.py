"""SaslAuthenticate (API key 36) where there is nothing to authenticate: the listener has no SASL, or the client has
authenticated.

Knows nothing of mechanisms: :mod:`barnabas.server.sasl` answers while a client authenticates.
"""

from barnabas.api_handlers.context import Context
from barnabas.api_handlers.registry import api
from barnabas.errors import IllegalSaslState
from barnabas.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse


@api(SaslAuthenticateRequest)
def sasl_authenticate(request: SaslAuthenticateRequest, context: Context) -> SaslAuthenticateResponse:
    """Refuses the token (``KafkaApis.handleSaslAuthenticateRequest``)."""
    return SaslAuthenticateResponse(
        error_code=IllegalSaslState.code,
        error_message="SaslAuthenticate request received after successful authentication",
        auth_bytes=b"",
    )

"""RenewDelegationToken (API key 39): moves the expiry of a token (KIP-48).

Knows nothing of who may change a token: the controller decides. Apache Kafka's ``KafkaApis.handleRenewTokenRequest``.
"""

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.registry import api
from barnabas.api_handlers.submitting import submit
from barnabas.api_handlers.token_requests import NO_TIME, is_allowed
from barnabas.cluster.controller.commands.tokens import RenewDelegationToken
from barnabas.errors import DelegationTokenRequestNotAllowed
from barnabas.wire.messages.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse

Answer = RenewDelegationTokenResponse | Later[RenewDelegationTokenResponse]


@api(RenewDelegationTokenRequest)
def renew_delegation_token(request: RenewDelegationTokenRequest, context: Context) -> Answer:
    """Responds with the new expiry of the token."""
    if not is_allowed(context):
        return RenewDelegationTokenResponse(
            error_code=DelegationTokenRequestNotAllowed.code, expiry_timestamp_ms=NO_TIME
        )
    if context.is_elsewhere:
        from barnabas.api_handlers.forwarding import forward

        answer: Answer = forward(request, context)
        return answer
    command = RenewDelegationToken(request.hmac, str(context.session.principal), request.renew_period_ms)
    return submit(command, request, context, respond)


def respond(expires_at_ms: int) -> RenewDelegationTokenResponse:
    return RenewDelegationTokenResponse(expiry_timestamp_ms=expires_at_ms)

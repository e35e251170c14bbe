"""ExpireDelegationToken (API key 40): brings the expiry of a token forward (KIP-48).

Knows nothing of who may change a token: the controller decides. Apache Kafka's ``KafkaApis.handleExpireTokenRequest``.
"""

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.registry import api
from barnabas.api_handlers.submitting import submit
from barnabas.api_handlers.token_requests import NO_TIME, is_allowed
from barnabas.cluster.controller.commands.tokens import ExpireDelegationToken
from barnabas.errors import DelegationTokenRequestNotAllowed
from barnabas.wire.messages.expire_delegation_token import ExpireDelegationTokenRequest, ExpireDelegationTokenResponse

Answer = ExpireDelegationTokenResponse | Later[ExpireDelegationTokenResponse]


@api(ExpireDelegationTokenRequest)
def expire_delegation_token(request: ExpireDelegationTokenRequest, context: Context) -> Answer:
    """Responds with the new expiry of the token."""
    if not is_allowed(context):
        return ExpireDelegationTokenResponse(
            error_code=DelegationTokenRequestNotAllowed.code, expiry_timestamp_ms=NO_TIME
        )
    if context.is_elsewhere:
        from barnabas.api_handlers.forwarding import forward

        answer: Answer = forward(request, context)
        return answer
    command = ExpireDelegationToken(request.hmac, str(context.session.principal), request.expiry_time_period_ms)
    return submit(command, request, context, respond)


def respond(expires_at_ms: int) -> ExpireDelegationTokenResponse:
    return ExpireDelegationTokenResponse(expiry_timestamp_ms=expires_at_ms)

"""CreateDelegationToken (API key 38): creates a token with which clients authenticate as its owner (KIP-48, KIP-373).

Knows nothing of how long a token lives: the controller decides. Apache Kafka's ``KafkaApis.handleCreateTokenRequest``.
"""

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.error_responses import error_shape
from barnabas.api_handlers.outcome import code_of
from barnabas.api_handlers.registry import api
from barnabas.api_handlers.submitting import submit_refusing
from barnabas.api_handlers.token_requests import NO_TIME, is_allowed
from barnabas.cluster.controller.commands.tokens import CreateDelegationToken
from barnabas.errors import DelegationTokenRequestNotAllowed, InvalidPrincipalType, KafkaError, UnknownServerError
from barnabas.security.principals import ANONYMOUS, USER, Principal
from barnabas.wire.messages.create_delegation_token import CreateDelegationTokenRequest, CreateDelegationTokenResponse
from barnabas.wire.messages.metadata_records import DelegationTokenRecord

Answer = CreateDelegationTokenResponse | Later[CreateDelegationTokenResponse]


@api(CreateDelegationTokenRequest)
def create_delegation_token(request: CreateDelegationTokenRequest, context: Context) -> Answer:
    """Creates one token. A refusal names its owner and its requester."""
    if not is_allowed(context):
        return refused(request, context, DelegationTokenRequestNotAllowed())
    if context.is_elsewhere:
        from barnabas.api_handlers.forwarding import forward

        answer: Answer = forward(request, context)
        return answer
    renewers = [Principal(each.principal_type, each.principal_name) for each in request.renewers]
    if any(each.type != USER for each in renewers):
        return refused(request, context, InvalidPrincipalType())
    owner, requester = owner_of(request, context), context.session.principal
    command = CreateDelegationToken(str(owner), str(requester), list(map(str, renewers)), request.max_lifetime_ms)

    def respond(created: tuple[DelegationTokenRecord, bytes]) -> CreateDelegationTokenResponse:
        return response(owner, requester, *created)

    def refuse(error: KafkaError) -> CreateDelegationTokenResponse:
        return response(owner, requester, error=error, no_time=0)

    return submit_refusing(command, context, respond, refuse)


def owner_of(request: CreateDelegationTokenRequest, context: Context) -> Principal:
    """Returns the owner of the new token: the requester, unless the request names another principal.

    :raises UnknownServerError: the request names an owner without a type; Apache Kafka has the same error
    """
    if not request.owner_principal_name:
        return context.session.principal
    if request.owner_principal_type is None:
        raise UnknownServerError
    return Principal(request.owner_principal_type, request.owner_principal_name)


def refused(
    request: CreateDelegationTokenRequest, context: Context, error: KafkaError
) -> CreateDelegationTokenResponse:
    """Returns the error response of this broker. That of the controller has other times."""
    return response(owner_of(request, context), context.session.principal, error=error)


@error_shape(CreateDelegationTokenRequest)
def failed(request: CreateDelegationTokenRequest, error: KafkaError, version: int) -> CreateDelegationTokenResponse:
    """Returns the error response, without owner and requester (``CreateDelegationTokenRequest.getErrorResponse``)."""
    return response(ANONYMOUS, ANONYMOUS, error=error)


def response(
    owner: Principal,
    requester: Principal,
    token: DelegationTokenRecord | None = None,
    hmac: bytes = b"",
    error: KafkaError | None = None,
    no_time: int = NO_TIME,
) -> CreateDelegationTokenResponse:
    """
    :param no_time: the value of the three times if there is no token
    """
    return CreateDelegationTokenResponse(
        error_code=code_of(error),
        principal_type=owner.type,
        principal_name=owner.name,
        token_requester_principal_type=requester.type,
        token_requester_principal_name=requester.name,
        issue_timestamp_ms=no_time if token is None else token.issue_timestamp,
        expiry_timestamp_ms=no_time if token is None else token.expiration_timestamp,
        max_timestamp_ms=no_time if token is None else token.max_timestamp,
        token_id="" if token is None else token.token_id,
        hmac=hmac,
    )

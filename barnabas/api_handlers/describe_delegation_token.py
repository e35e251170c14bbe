"""DescribeDelegationToken (API key 41): lists tokens by their owners and renewers (KIP-48, KIP-373).

Knows nothing of how tokens are made. Apache Kafka's ``KafkaApis.handleDescribeTokensRequest`` and
``DelegationTokenManager.filterToken``.
"""

from collections.abc import Sequence

from barnabas.api_handlers.access import Access, access_to
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.registry import api
from barnabas.api_handlers.token_requests import is_allowed
from barnabas.errors import DelegationTokenAuthDisabled, DelegationTokenRequestNotAllowed
from barnabas.security.acls import Operation, ResourceType
from barnabas.security.principals import Principal
from barnabas.security.tokens import SECRET_KEY, hmac_of, may_see, principal_of
from barnabas.wire.messages.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from barnabas.wire.messages.metadata_records import DelegationTokenRecord

Described = DescribeDelegationTokenResponse.DescribedDelegationToken


@api(DescribeDelegationTokenRequest)
def describe_delegation_token(
    request: DescribeDelegationTokenRequest, context: Context
) -> DescribeDelegationTokenResponse:
    """Lists the tokens that the sender may see: all of them, or those of the named owners and renewers.

    :raises DelegationTokenRequestNotAllowed: the session may not use token APIs
    :raises DelegationTokenAuthDisabled: there are no tokens in this cluster
    """
    if not is_allowed(context):
        raise DelegationTokenRequestNotAllowed
    secret_key = context.broker.config[SECRET_KEY]
    if secret_key is None:
        raise DelegationTokenAuthDisabled
    wanted = None
    if request.owners is not None:
        wanted = [str(Principal(each.principal_type, each.principal_name)) for each in request.owners]
    asks, access = str(context.session.principal), access_to(context, "DescribeDelegationToken")
    return DescribeDelegationTokenResponse(
        tokens=[
            described(token, secret_key)
            for token in context.broker.image.tokens.values()
            if is_wanted(token, wanted) and (may_see(token, asks) or may_describe(token, access))
        ]
    )


def is_wanted(token: DelegationTokenRecord, principals: Sequence[str] | None) -> bool:
    return principals is None or any(may_see(token, each) for each in principals)


def may_describe(token: DelegationTokenRecord, access: Access | None) -> bool:
    """Returns whether the sender may describe a token of other users. Without an authorizer every sender may."""
    if access is None:
        return True
    return access.allows(
        Operation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token.token_id, logs_refusal=False
    ) or access.allows(Operation.DESCRIBE_TOKENS, ResourceType.USER, token.owner, logs_refusal=False)


def described(token: DelegationTokenRecord, secret_key: str) -> Described:
    owner, requester = principal_of(token.owner), principal_of(token.requester)
    renewers = map(principal_of, token.renewers)
    return Described(
        principal_type=owner.type,
        principal_name=owner.name,
        token_requester_principal_type=requester.type,
        token_requester_principal_name=requester.name,
        issue_timestamp=token.issue_timestamp,
        expiry_timestamp=token.expiration_timestamp,
        max_timestamp=token.max_timestamp,
        token_id=token.token_id,
        hmac=hmac_of(token.token_id, secret_key),
        renewers=[
            Described.DescribedDelegationTokenRenewer(principal_type=each.type, principal_name=each.name)
            for each in renewers
        ],
    )

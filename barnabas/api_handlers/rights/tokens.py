"""The guard of CreateDelegationToken.

Knows nothing of tokens. Apache Kafka's ``KafkaApis.handleCreateTokenRequest`` (KIP-373).
"""

from barnabas.api_handlers.answering import Answer
from barnabas.api_handlers.create_delegation_token import owner_of, refused
from barnabas.api_handlers.rights.guard import Guarded
from barnabas.errors import DelegationTokenAuthorizationFailed
from barnabas.security.acls import Operation, ResourceType


def create(guarded: Guarded) -> Answer:
    """Needs CREATE_TOKENS on another user that is to own the token."""
    request, context = guarded.request, guarded.context
    owner = owner_of(request, context)
    if owner == context.session.principal or guarded.access.allows(
        Operation.CREATE_TOKENS, ResourceType.USER, str(owner)
    ):
        return guarded.serve(request)
    return refused(request, context, DelegationTokenAuthorizationFailed())

"""The guard of CreateDelegationToken.

Knows nothing of tokens. Apache Kafka's ``KafkaApis.handleCreateTokenRequest`` (KIP-373).
"""

from barnabas.api_handlers.rights.guard import Answer, Guarded
from barnabas.errors import DelegationTokenAuthorizationFailed
from barnabas.security.acls import Operation, ResourceType


def create(guarded: Guarded) -> Answer:
    """Needs CREATE_TOKENS on another user that is to own the token."""
    request, requester = guarded.request, str(guarded.context.session.principal)
    owner = f"{request.owner_principal_type}:{request.owner_principal_name}"
    if not request.owner_principal_name or owner == requester:
        return guarded.serve(request)
    if guarded.access.allows(Operation.CREATE_TOKENS, ResourceType.USER, owner):
        return guarded.serve(request)
    return guarded.refused(DelegationTokenAuthorizationFailed)

"""CreateAcls (API key 30): adds ACLs (KIP-140).

Knows nothing of what ACLs allow. Apache Kafka's ``AclApis`` and ``CreateAclsRequest``.
"""

from collections.abc import Sequence

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.error_responses import shaped
from barnabas.api_handlers.outcome import code_of, text_of
from barnabas.api_handlers.registry import api
from barnabas.api_handlers.submitting import submit
from barnabas.cluster.controller.commands.acls import CreateAcls
from barnabas.errors import CloseConnection, KafkaError, SecurityDisabled, UnknownServerError
from barnabas.security.acls import Acl, has_unknown
from barnabas.wire.messages.create_acls import CreateAclsRequest, CreateAclsResponse

Result = CreateAclsResponse.AclCreationResult


@api(CreateAclsRequest)
def create_acls(request: CreateAclsRequest, context: Context) -> CreateAclsResponse | Later[CreateAclsResponse]:
    """Creates each ACL independently of the others.

    Without an authorizer each entry is SECURITY_DISABLED.
    """
    wanted = [
        Acl(
            each.resource_type,
            each.resource_name,
            each.resource_pattern_type,
            each.principal,
            each.host,
            each.operation,
            each.permission_type,
        )
        for each in request.creations
    ]
    if any(map(has_unknown, wanted)):
        raise CloseConnection("an ACL to create has a code of 0")
    if context.broker.authorizer is None:
        disabled: CreateAclsResponse = shaped(
            request, SecurityDisabled("No Authorizer is configured."), context.api_version
        )
        return disabled
    return submit(CreateAcls(wanted), request, context, respond)


def respond(results: Sequence[KafkaError | None]) -> CreateAclsResponse:
    return CreateAclsResponse(
        results=[Result(error_code=code_of(error), error_message=_message(error)) for error in results]
    )


def _message(error: KafkaError | None) -> str | None:
    """Returns the error message of Apache Kafka's response: none for an unexpected error, an empty text without an
    error.
    """
    return None if isinstance(error, UnknownServerError) else text_of(error) or ""

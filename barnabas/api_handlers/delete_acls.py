"""DeleteAcls (API key 31): removes the ACLs that match filters (KIP-140).

Knows nothing of what ACLs allow. Apache Kafka's ``AclApis`` and ``DeleteAclsRequest``.
"""

from collections.abc import Sequence

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.error_responses import shaped
from barnabas.api_handlers.registry import api
from barnabas.api_handlers.submitting import submit
from barnabas.cluster.controller.commands.acls import DeleteAcls
from barnabas.errors import CloseConnection, KafkaError, SecurityDisabled
from barnabas.security.acls import Acl, AclFilter, has_unknown
from barnabas.wire.messages.delete_acls import DeleteAclsRequest, DeleteAclsResponse

Result = DeleteAclsResponse.DeleteAclsFilterResult


@api(DeleteAclsRequest)
def delete_acls(request: DeleteAclsRequest, context: Context) -> DeleteAclsResponse | Later[DeleteAclsResponse]:
    """Deletes what each filter matches, and lists it.

    Without an authorizer each entry is SECURITY_DISABLED.
    """
    filters = [
        AclFilter(
            each.resource_type_filter,
            each.resource_name_filter,
            each.pattern_type_filter,
            each.principal_filter,
            each.host_filter,
            each.operation,
            each.permission_type,
        )
        for each in request.filters
    ]
    if any(map(has_unknown, filters)):
        raise CloseConnection("a filter of ACLs has a code of 0")
    if context.broker.authorizer is None:
        disabled: DeleteAclsResponse = shaped(
            request, SecurityDisabled("No Authorizer is configured."), context.api_version
        )
        return disabled
    return submit(DeleteAcls(filters), request, context, respond)


def respond(results: Sequence[list[Acl] | KafkaError]) -> DeleteAclsResponse:
    return DeleteAclsResponse(filter_results=[result_of(each) for each in results])


def result_of(deleted: list[Acl] | KafkaError) -> Result:
    if isinstance(deleted, KafkaError):
        return Result(error_code=deleted.code, error_message=str(deleted), matching_acls=[])
    return Result(
        matching_acls=[
            Result.DeleteAclsMatchingAcl(
                resource_type=each.resource_type,
                resource_name=each.resource_name,
                pattern_type=each.pattern_type,
                principal=each.principal,
                host=each.host,
                operation=each.operation,
                permission_type=each.permission,
            )
            for each in deleted
        ]
    )

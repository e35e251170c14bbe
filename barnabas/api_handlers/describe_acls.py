"""DescribeAcls (API key 29): lists the ACLs that match a filter (KIP-140).

Knows nothing of what ACLs allow. Apache Kafka's ``AclApis`` and ``DescribeAclsRequest``.
"""

from barnabas.api_handlers.context import Context
from barnabas.api_handlers.registry import api
from barnabas.errors import CloseConnection, SecurityDisabled
from barnabas.security.acls import Acl, AclFilter, has_unknown
from barnabas.wire.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse

Described = DescribeAclsResponse.DescribeAclsResource


@api(DescribeAclsRequest)
def describe_acls(request: DescribeAclsRequest, context: Context) -> DescribeAclsResponse:
    """Lists the ACLs that match, by the pattern of their resources.

    :raises SecurityDisabled: there is no authorizer
    """
    wanted = AclFilter(
        request.resource_type_filter,
        request.resource_name_filter,
        request.pattern_type_filter,
        request.principal_filter,
        request.host_filter,
        request.operation,
        request.permission_type,
    )
    if has_unknown(wanted):
        raise CloseConnection("a filter of ACLs has a code of 0")
    if context.broker.authorizer is None:
        raise SecurityDisabled("No Authorizer is configured on the broker")
    found: dict[tuple[int, str, int], list[Acl]] = {}
    for acl in context.broker.image.acl_ids:
        if wanted.matches(acl):
            found.setdefault(acl[:3], []).append(acl)
    return DescribeAclsResponse(
        error_message="",
        resources=[
            Described(
                resource_type=resource_type,
                resource_name=name,
                pattern_type=pattern_type,
                acls=[
                    Described.AclDescription(
                        principal=each.principal,
                        host=each.host,
                        operation=each.operation,
                        permission_type=each.permission,
                    )
                    for each in acls
                ],
            )
            for (resource_type, name, pattern_type), acls in found.items()
        ],
    )

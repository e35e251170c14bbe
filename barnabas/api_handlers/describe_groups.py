"""DescribeGroups (API key 15): the state and the members of classic groups.

Knows nothing of how a group rebalances.
"""

from barnabas.api_handlers.context import Context
from barnabas.api_handlers.outcome import ALTER_CONFIGS, DELETE, DESCRIBE, DESCRIBE_CONFIGS, NOT_REQUESTED, READ, bits
from barnabas.api_handlers.registry import api
from barnabas.errors import GroupIdNotFound, KafkaError
from barnabas.wire.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse

Described = DescribeGroupsResponse.DescribedGroup

KNOWS_NOT_FOUND = 6
"""The first version with an error for a group that does not exist (KIP-1043). Older versions have state Dead."""

DEAD = "Dead"

GROUP_OPERATIONS = bits(READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS)
"""The authorized operations without an authorizer: all operations of groups (``AclEntry.supportedOperations``)."""


@api(DescribeGroupsRequest)
def describe_groups(request: DescribeGroupsRequest, context: Context) -> DescribeGroupsResponse:
    """Describes each group."""
    operations = GROUP_OPERATIONS if request.include_authorized_operations else NOT_REQUESTED
    return DescribeGroupsResponse(groups=[_describe(group_id, operations, context) for group_id in request.groups])


def _describe(group_id: str, operations: int, context: Context) -> Described:
    try:
        group = context.broker.groups.describe(group_id)
    except GroupIdNotFound as error:
        knows = context.api_version >= KNOWS_NOT_FOUND
        described = _empty(group_id, DEAD)
        described.error_code = error.code if knows else 0
        described.error_message = str(error) if knows else None
        # Newer versions have no authorized operations for a group that does not exist.
        described.authorized_operations = NOT_REQUESTED if knows else operations
        return described
    except KafkaError as error:
        described = _empty(group_id, "")
        described.error_code = error.code
        return described
    return Described(
        group_id=group_id,
        group_state=group.state,
        protocol_type=group.protocol_type,
        protocol_data=group.protocol_name,
        members=[
            Described.DescribedGroupMember(
                member_id=each.member_id,
                group_instance_id=each.group_instance_id,
                client_id=each.client_id,
                client_host=each.client_host,
                member_metadata=each.metadata,
                member_assignment=each.assignment,
            )
            for each in group.members
        ],
        authorized_operations=operations,
    )


def _empty(group_id: str, state: str) -> Described:
    return Described(group_id=group_id, group_state=state, protocol_type="", protocol_data="", members=[])

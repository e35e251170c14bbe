"""ListGroups (API key 16): the groups of this coordinator.

Knows nothing of how a group rebalances.
"""

from barnabas.api_handlers.context import Context
from barnabas.api_handlers.registry import api
from barnabas.errors import KafkaError
from barnabas.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse


@api(ListGroupsRequest)
def list_groups(request: ListGroupsRequest, context: Context) -> ListGroupsResponse:
    """Lists the groups with one of the states and types; without a filter all of them."""
    broker = context.broker
    try:
        groups = broker.groups.list_groups(request.states_filter, request.types_filter)
    except KafkaError as error:
        return ListGroupsResponse(error_code=error.code, groups=[])
    return ListGroupsResponse(
        groups=[
            ListGroupsResponse.ListedGroup(
                group_id=each.group_id,
                protocol_type=each.protocol_type,
                group_state=each.state,
                group_type=each.type,
            )
            for each in groups
        ]
    )

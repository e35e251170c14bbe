"""DeleteGroups (API key 42): deletes empty groups and their offsets.

Knows nothing of what makes a group empty.
"""

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.outcome import code_of
from barnabas.api_handlers.registry import api
from barnabas.errors import KafkaError
from barnabas.wire.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse

Result = DeleteGroupsResponse.DeletableGroupResult


@api(DeleteGroupsRequest)
def delete_groups(request: DeleteGroupsRequest, context: Context) -> DeleteGroupsResponse | Later[DeleteGroupsResponse]:
    """Deletes each group. Responds once all tombstones, and earlier writes, are durable."""
    later: Later[DeleteGroupsResponse] = Later()
    group_ids = list(dict.fromkeys(request.groups_names))
    errors: dict[str, KafkaError | None] = {}

    def delete(group_id: str) -> None:
        def deleted(error: KafkaError | None) -> None:
            errors[group_id] = error
            if len(errors) == len(group_ids):
                later.resolve(DeleteGroupsResponse(results=[_result(each, errors[each]) for each in group_ids]))

        context.broker.groups.delete(group_id, deleted)

    for group_id in group_ids:
        delete(group_id)
    return later if group_ids else DeleteGroupsResponse(results=[])


def _result(group_id: str, error: KafkaError | None) -> Result:
    return Result(group_id=group_id, error_code=code_of(error), error_message=None if error is None else str(error))

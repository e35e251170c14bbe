"""DeleteShareGroupState (API key 86): deletes the state of share partitions (KIP-932).

Knows nothing of how the state is stored. Brokers send this request; without an authorizer every client may.
"""

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.registry import api
from barnabas.api_handlers.share_state import ask_each, error_of, partitions_of
from barnabas.share.messages import Outcome
from barnabas.wire.messages.delete_share_group_state import DeleteShareGroupStateRequest, DeleteShareGroupStateResponse

Result = DeleteShareGroupStateResponse.DeleteStateResult
Answer = DeleteShareGroupStateResponse | Later[DeleteShareGroupStateResponse]


@api(DeleteShareGroupStateRequest)
def delete_share_group_state(request: DeleteShareGroupStateRequest, context: Context) -> Answer:
    """Deletes the state of each partition. It is no error if there is none."""
    delete = context.broker.share_state.delete
    asks = [((topic_id, each.partition), delete) for topic_id, each in partitions_of(request.topics)]
    return ask_each(request.group_id, asks, DeleteShareGroupStateResponse, Result, _partition)


def _partition(index: int, outcome: Outcome) -> Result.PartitionResult:
    return Result.PartitionResult(partition=index, **error_of(outcome))

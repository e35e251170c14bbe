"""WriteShareGroupState (API key 85): writes the states of records of share partitions (KIP-932).

Knows nothing of how the state is stored. Brokers send this request; without an authorizer every client may.
"""

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.registry import api
from barnabas.api_handlers.share_state import ask_each, error_of, partitions_of
from barnabas.share.coordinator import ShareCoordinator
from barnabas.share.gathering import Ask
from barnabas.share.messages import Outcome, StateBatch
from barnabas.wire.messages.write_share_group_state import WriteShareGroupStateRequest, WriteShareGroupStateResponse

PartitionData = WriteShareGroupStateRequest.WriteStateData.PartitionData
Result = WriteShareGroupStateResponse.WriteStateResult
Answer = WriteShareGroupStateResponse | Later[WriteShareGroupStateResponse]


@api(WriteShareGroupStateRequest)
def write_share_group_state(request: WriteShareGroupStateRequest, context: Context) -> Answer:
    """Writes the changes of each partition, unless the leader epoch is fenced."""
    coordinator = context.broker.share_state
    asks = [((topic_id, each.partition), _ask(coordinator, each)) for topic_id, each in partitions_of(request.topics)]
    return ask_each(request.group_id, asks, WriteShareGroupStateResponse, Result, _partition)


def _ask(coordinator: ShareCoordinator, data: PartitionData) -> Ask:
    batches = [
        StateBatch(each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
        for each in data.state_batches
    ]
    return lambda key, reply: coordinator.write(
        key,
        data.state_epoch,
        data.leader_epoch,
        data.start_offset,
        data.delivery_complete_count,
        batches,
        reply,
    )


def _partition(index: int, outcome: Outcome) -> Result.PartitionResult:
    return Result.PartitionResult(partition=index, **error_of(outcome))

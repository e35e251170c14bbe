"""ReadShareGroupState (API key 84): the state of share partitions, for their leaders (KIP-932).

Knows nothing of how the state is stored. Brokers send this request; without an authorizer every client may.
"""

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.registry import api
from barnabas.api_handlers.share_state import ask_each, error_of, partitions_of
from barnabas.share.coordinator import ShareCoordinator
from barnabas.share.gathering import Ask
from barnabas.share.messages import Outcome
from barnabas.wire.messages.read_share_group_state import ReadShareGroupStateRequest, ReadShareGroupStateResponse

PartitionData = ReadShareGroupStateRequest.ReadStateData.PartitionData
Result = ReadShareGroupStateResponse.ReadStateResult
PartitionResult = Result.PartitionResult
Answer = ReadShareGroupStateResponse | Later[ReadShareGroupStateResponse]


@api(ReadShareGroupStateRequest)
def read_share_group_state(request: ReadShareGroupStateRequest, context: Context) -> Answer:
    """Returns the state of each partition. A newer leader epoch fences older ones."""
    coordinator = context.broker.share_state
    asks = [((topic_id, each.partition), _ask(coordinator, each)) for topic_id, each in partitions_of(request.topics)]
    return ask_each(request.group_id, asks, ReadShareGroupStateResponse, Result, _partition)


def _ask(coordinator: ShareCoordinator, data: PartitionData) -> Ask:
    return lambda key, reply: coordinator.read(key, data.leader_epoch, reply)


def _partition(index: int, outcome: Outcome) -> PartitionResult:
    if outcome.error is not None:
        return PartitionResult(
            partition=index,
            **error_of(outcome),
            state_epoch=0,
            start_offset=0,
            state_batches=[],
        )
    state = outcome.state
    return PartitionResult(
        partition=index,
        state_epoch=state.state_epoch,
        start_offset=state.start_offset,
        state_batches=[
            PartitionResult.StateBatch(
                first_offset=first, last_offset=last, delivery_state=delivery_state, delivery_count=count
            )
            for first, last, delivery_state, count in state.batches
        ],
    )

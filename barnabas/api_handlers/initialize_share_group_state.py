"""InitializeShareGroupState (API key 83): initializes the state of share partitions, or replaces it (KIP-932).

Knows nothing of how the state is stored. Brokers send this request; without an authorizer every client may.
"""

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.registry import api
from barnabas.api_handlers.share_state import ask_each, error_of
from barnabas.share.coordinator import ShareCoordinator
from barnabas.share.gathering import Ask
from barnabas.share.messages import Outcome
from barnabas.wire.messages.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
)

PartitionData = InitializeShareGroupStateRequest.InitializeStateData.PartitionData
Result = InitializeShareGroupStateResponse.InitializeStateResult
Answer = InitializeShareGroupStateResponse | Later[InitializeShareGroupStateResponse]


@api(InitializeShareGroupStateRequest)
def initialize_share_group_state(request: InitializeShareGroupStateRequest, context: Context) -> Answer:
    """Initializes the state of each partition."""
    coordinator = context.broker.share_state
    asks = [
        ((topic.topic_id, each.partition), _ask(coordinator, each))
        for topic in request.topics
        for each in topic.partitions
    ]
    return ask_each(request.group_id, asks, InitializeShareGroupStateResponse, Result, _partition)


def _ask(coordinator: ShareCoordinator, data: PartitionData) -> Ask:
    return lambda key, reply: coordinator.initialize(key, data.state_epoch, data.start_offset, reply)


def _partition(index: int, outcome: Outcome) -> Result.PartitionResult:
    return Result.PartitionResult(partition=index, **error_of(outcome))

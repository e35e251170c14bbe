"""InitializeShareGroupState (API key 83): initializes the state of share partitions, or replaces it (KIP-932).

Knows nothing of how the state is stored. Brokers send this request; without an authorizer every client may.
"""

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.registry import api
from barnabas.api_handlers.share_state import ByTopic, ask_each, error_of
from barnabas.share.coordinator import ShareCoordinator
from barnabas.share.gathering import Ask
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
    return ask_each(request.group_id, asks, _answer)


def _ask(coordinator: ShareCoordinator, data: PartitionData) -> Ask:
    return lambda key, reply: coordinator.initialize(key, data.state_epoch, data.start_offset, reply)


def _answer(found: ByTopic) -> InitializeShareGroupStateResponse:
    return InitializeShareGroupStateResponse(
        results=[
            Result(
                topic_id=topic_id,
                partitions=[
                    Result.PartitionResult(partition=index, **error_of(outcome)) for index, outcome in outcomes
                ],
            )
            for topic_id, outcomes in found
        ]
    )

"""ReadShareGroupStateSummary (API key 87): the start offsets and delivery-complete counts of share partitions
(KIP-932).

Knows nothing of how the state is stored. Brokers send this request; without an authorizer every client may.
"""

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.registry import api
from barnabas.api_handlers.share_state import ask_each, error_of, partitions_of
from barnabas.share.messages import Outcome, Reply, SharePartitionKey
from barnabas.wire.messages.read_share_group_state_summary import (
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
)

Result = ReadShareGroupStateSummaryResponse.ReadStateSummaryResult
PartitionResult = Result.PartitionResult
Answer = ReadShareGroupStateSummaryResponse | Later[ReadShareGroupStateSummaryResponse]


@api(ReadShareGroupStateSummaryRequest)
def read_share_group_state_summary(request: ReadShareGroupStateSummaryRequest, context: Context) -> Answer:
    """Returns the summary of each partition. Leader epochs do not matter."""
    coordinator = context.broker.share_state

    def ask(key: SharePartitionKey, reply: Reply) -> None:
        reply(coordinator.read_summary(key))

    asks = [((topic_id, each.partition), ask) for topic_id, each in partitions_of(request.topics)]
    return ask_each(request.group_id, asks, ReadShareGroupStateSummaryResponse, Result, _partition)


def _partition(index: int, outcome: Outcome) -> PartitionResult:
    if outcome.error is not None:
        return PartitionResult(
            partition=index,
            **error_of(outcome),
            state_epoch=0,
            leader_epoch=0,
            start_offset=0,
        )
    state = outcome.state
    return PartitionResult(
        partition=index,
        state_epoch=state.state_epoch,
        leader_epoch=state.leader_epoch,
        start_offset=state.start_offset,
        delivery_complete_count=state.delivery_complete_count,
    )

"""AlterPartitionReassignments (API key 45): partitions are to move to other brokers, or not to, after all (KIP-455).

Knows nothing of how they move.
"""

from barnabas.api_handlers.context import Context
from barnabas.api_handlers.outcome import code_of, message_of, out_of_time
from barnabas.api_handlers.registry import api
from barnabas.cluster.commands import AlterPartitionReassignments, PartitionResult, PartitionResults
from barnabas.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)

Topic = AlterPartitionReassignmentsResponse.ReassignableTopicResponse


@api(AlterPartitionReassignmentsRequest)
def alter_partition_reassignments(
    request: AlterPartitionReassignmentsRequest, context: Context
) -> AlterPartitionReassignmentsResponse:
    """Each partition has an outcome of its own. Where nothing is asked, Apache says it with an empty message."""
    wanted = [
        (topic.name, [(each.partition_index, each.replicas) for each in topic.partitions]) for topic in request.topics
    ]
    late = out_of_time(request.timeout_ms) if wanted else None
    results: PartitionResults
    if late is not None:
        results = [(name, [PartitionResult(index, late) for index, _ in moves]) for name, moves in wanted]
    else:
        results = context.broker.controller.submit(
            AlterPartitionReassignments(wanted, request.allow_replication_factor_change)
        )
    return AlterPartitionReassignmentsResponse(
        error_code=code_of(late),
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_message=None if results else "",
        responses=[
            Topic(
                name=name,
                partitions=[
                    Topic.ReassignablePartitionResponse(
                        partition_index=each.partition,
                        error_code=code_of(each.error),
                        error_message=message_of(each.error),
                    )
                    for each in partitions
                ],
            )
            for name, partitions in results
        ],
    )

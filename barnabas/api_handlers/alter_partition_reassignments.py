"""AlterPartitionReassignments (API key 45): moves partitions to other brokers, or cancels a move (KIP-455).

Knows nothing of how a partition is moved.
"""

from functools import partial

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.error_responses import derived, error_shape
from barnabas.api_handlers.outcome import code_of, message_of, out_of_time
from barnabas.api_handlers.registry import api
from barnabas.api_handlers.submitting import submit
from barnabas.cluster.controller.commands.replicas import AlterPartitionReassignments, PartitionResult, PartitionResults
from barnabas.errors import KafkaError
from barnabas.wire.message import Response
from barnabas.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)

Topic = AlterPartitionReassignmentsResponse.ReassignableTopicResponse


@api(AlterPartitionReassignmentsRequest)
def alter_partition_reassignments(
    request: AlterPartitionReassignmentsRequest, context: Context
) -> AlterPartitionReassignmentsResponse | Later[AlterPartitionReassignmentsResponse]:
    """Reassigns each partition. Apache Kafka's response to an empty request has an empty error message."""
    wanted = [
        (topic.name, [(each.partition_index, each.replicas) for each in topic.partitions]) for topic in request.topics
    ]
    late = out_of_time(request.timeout_ms) if wanted else None
    change_allowed = request.allow_replication_factor_change
    if late is not None:
        refused = [(name, [PartitionResult(index, late) for index, _ in moves]) for name, moves in wanted]
        return respond(change_allowed, refused, late)
    command = AlterPartitionReassignments(wanted, change_allowed)
    return submit(command, request, context, partial(respond, change_allowed))


def respond(
    change_allowed: bool, results: PartitionResults, refusal: KafkaError | None = None
) -> AlterPartitionReassignmentsResponse:
    return AlterPartitionReassignmentsResponse(
        error_code=code_of(refusal),
        allow_replication_factor_change=change_allowed,
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


@error_shape(AlterPartitionReassignmentsRequest)
def failed(request: AlterPartitionReassignmentsRequest, error: KafkaError, version: int) -> Response:
    return derived(request, error, version, in_entries=True)

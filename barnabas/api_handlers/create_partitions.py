"""CreatePartitions (API key 37): adds partitions to topics.

Knows nothing of how replicas are placed: the controller decides.
"""

from collections.abc import Sequence

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.mutation_quotas import mutation_quota
from barnabas.api_handlers.outcome import code_of, message_of, out_of_time
from barnabas.api_handlers.registry import api
from barnabas.api_handlers.submitting import submit
from barnabas.cluster.controller.commands.topics import CreatePartitions, MorePartitions, TopicResult
from barnabas.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse

Result = CreatePartitionsResponse.CreatePartitionsTopicResult

KNOWS_QUOTA = 3
"""The first version that knows THROTTLING_QUOTA_EXCEEDED (KIP-599)."""


@api(CreatePartitionsRequest)
def create_partitions(
    request: CreatePartitionsRequest, context: Context
) -> CreatePartitionsResponse | Later[CreatePartitionsResponse]:
    """Adds partitions to each topic, or only checks whether that is possible."""
    if late := out_of_time(request.timeout_ms):
        return CreatePartitionsResponse(
            results=[Result(name=topic.name, error_code=late.code) for topic in request.topics]
        )
    wanted = [
        MorePartitions(
            topic.name,
            topic.count,
            None if topic.assignments is None else [each.broker_ids for each in topic.assignments],
        )
        for topic in request.topics
    ]
    return submit(
        CreatePartitions(wanted, request.validate_only, mutation_quota(context, strict_since=KNOWS_QUOTA)),
        request,
        context,
        respond,
    )


def respond(results: Sequence[TopicResult]) -> CreatePartitionsResponse:
    return CreatePartitionsResponse(
        results=[
            Result(name=result.name, error_code=code_of(result.error), error_message=message_of(result.error))
            for result in results
        ]
    )

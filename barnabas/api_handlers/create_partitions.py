"""CreatePartitions (API key 37): topics get more partitions, never fewer.

Knows nothing of where they go: the controller does.
"""

from barnabas.api_handlers.context import Context
from barnabas.api_handlers.outcome import code_of, message_of
from barnabas.api_handlers.registry import api
from barnabas.cluster.commands import CreatePartitions, MorePartitions
from barnabas.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse


@api(CreatePartitionsRequest, versions="0-3")
def create_partitions(request: CreatePartitionsRequest, context: Context) -> CreatePartitionsResponse:
    """Each topic has an outcome of its own."""
    wanted = [
        MorePartitions(
            topic.name,
            topic.count,
            None if topic.assignments is None else [each.broker_ids for each in topic.assignments],
        )
        for topic in request.topics
    ]
    results = context.broker.controller.submit(CreatePartitions(wanted, request.validate_only))
    return CreatePartitionsResponse(
        results=[
            CreatePartitionsResponse.CreatePartitionsTopicResult(
                name=result.name, error_code=code_of(result.error), error_message=message_of(result.error)
            )
            for result in results
        ]
    )

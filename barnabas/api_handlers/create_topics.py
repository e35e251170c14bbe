"""CreateTopics (API key 19): make topics, or see whether they could be made.

Knows nothing of what makes a topic possible: the controller does. A topic that the answer calls made can be written to.
"""

from collections.abc import Sequence

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.outcome import code_of, message_of, out_of_time
from barnabas.api_handlers.registry import api
from barnabas.api_handlers.submitting import submit
from barnabas.broker import Broker
from barnabas.cluster.commands import CreatedTopic, CreateTopics, NewTopic
from barnabas.config.describe import describe_created_topic
from barnabas.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse

Result = CreateTopicsResponse.CreatableTopicResult

TOLD_WITH_CONFIGS = 5
"""From this version on the answer says what the topic has become (KIP-525)."""


@api(CreateTopicsRequest)
def create_topics(request: CreateTopicsRequest, context: Context) -> CreateTopicsResponse | Later[CreateTopicsResponse]:
    """Each topic has an outcome of its own."""
    if late := out_of_time(request.timeout_ms):
        return CreateTopicsResponse(topics=[Result(name=topic.name, error_code=late.code) for topic in request.topics])
    wanted = [
        NewTopic(
            topic.name,
            topic.num_partitions,
            topic.replication_factor,
            [(each.partition_index, each.broker_ids) for each in topic.assignments],
            [(each.name, each.value) for each in topic.configs],
        )
        for topic in request.topics
    ]
    broker, version = context.broker, context.api_version

    def respond(results: Sequence[CreatedTopic]) -> CreateTopicsResponse:
        return CreateTopicsResponse(topics=[told(created, broker, version) for created in results])

    return submit(CreateTopics(wanted, request.validate_only), request, context, respond)


def told(made: CreatedTopic, broker: Broker, version: int) -> Result:
    if made.error is not None:
        return Result(name=made.name, error_code=code_of(made.error), error_message=message_of(made.error))
    result = Result(
        name=made.name,
        topic_id=made.id,
        num_partitions=made.num_partitions,
        replication_factor=made.replication_factor,
    )
    if version >= TOLD_WITH_CONFIGS:
        result.configs = [
            Result.CreatableTopicConfigs(
                name=config.name,
                value=config.value,
                read_only=config.read_only,
                config_source=config.source,
                is_sensitive=config.sensitive,
            )
            for config in describe_created_topic(broker.config, made.configs)
        ]
    return result

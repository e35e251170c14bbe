"""CreateTopics (API key 19): creates topics, or only checks whether they could be created.

Knows nothing of the rules for topics: the controller decides. The response is sent once the topics can be produced to.
"""

from collections.abc import Sequence

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.mutation_quotas import mutation_quota
from barnabas.api_handlers.outcome import code_of, message_of, out_of_time
from barnabas.api_handlers.registry import api
from barnabas.api_handlers.submitting import submit
from barnabas.broker import Broker
from barnabas.cluster.controller.commands.topics import CreatedTopic, CreateTopics, NewTopic
from barnabas.config.describe import describe_created_topic
from barnabas.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse

Result = CreateTopicsResponse.CreatableTopicResult

RETURNS_CONFIGS = 5
"""The first version whose response has the configs of the topic (KIP-525)."""

KNOWS_QUOTA = 6
"""The first version that knows THROTTLING_QUOTA_EXCEEDED (KIP-599)."""


@api(CreateTopicsRequest)
def create_topics(request: CreateTopicsRequest, context: Context) -> CreateTopicsResponse | Later[CreateTopicsResponse]:
    """Creates each topic, or only checks whether that is possible."""
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
        return CreateTopicsResponse(topics=[result_of(created, broker, version) for created in results])

    return submit(
        CreateTopics(wanted, request.validate_only, mutation_quota(context, strict_since=KNOWS_QUOTA)),
        request,
        context,
        respond,
    )


def result_of(created: CreatedTopic, broker: Broker, version: int) -> Result:
    if created.error is not None:
        return Result(name=created.name, error_code=code_of(created.error), error_message=message_of(created.error))
    result = Result(
        name=created.name,
        topic_id=created.id,
        num_partitions=created.num_partitions,
        replication_factor=created.replication_factor,
    )
    if version >= RETURNS_CONFIGS:
        result.configs = [
            Result.CreatableTopicConfigs(
                name=config.name,
                value=config.value,
                read_only=config.read_only,
                config_source=config.source,
                is_sensitive=config.sensitive,
            )
            for config in describe_created_topic(broker.config, created.configs)
        ]
    return result

"""DeleteTopics (API key 20): topics go, by name or by id, with all that is in them.

Knows nothing of logs: whoever hosts the partitions hears that they are gone.
"""

from collections.abc import Sequence

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.outcome import code_of, message_of, out_of_time
from barnabas.api_handlers.registry import api
from barnabas.api_handlers.submitting import submit
from barnabas.cluster.commands import DeletedTopic, DeleteTopics
from barnabas.errors import InvalidRequest, KafkaError, TopicDeletionDisabled
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from barnabas.wire.types import ZERO_UUID

DISABLED_IS_TOLD = 3
"""From this version on there is an error of its own for a broker that deletes nothing (KIP-322)."""


@api(DeleteTopicsRequest)
def delete_topics(request: DeleteTopicsRequest, context: Context) -> DeleteTopicsResponse | Later[DeleteTopicsResponse]:
    """Each topic has an outcome of its own. They come in no order that says anything."""
    asked: list[tuple[str | None, bytes]] = [(topic.name, topic.topic_id) for topic in request.topics]
    asked += [(name, ZERO_UUID) for name in request.topic_names]
    if late := out_of_time(request.timeout_ms):
        return respond([DeletedTopic(name, topic_id, late) for name, topic_id in asked])
    if not context.broker.config["delete.topic.enable"]:
        is_told = context.api_version >= DISABLED_IS_TOLD
        refusal: KafkaError = TopicDeletionDisabled() if is_told else InvalidRequest()
        return respond([DeletedTopic(name, topic_id, refusal) for name, topic_id in asked])
    return submit(DeleteTopics(asked), request, context, respond)


def respond(results: Sequence[DeletedTopic]) -> DeleteTopicsResponse:
    return DeleteTopicsResponse(
        responses=[
            DeleteTopicsResponse.DeletableTopicResult(
                name=topic.name,
                topic_id=topic.id,
                error_code=code_of(topic.error),
                error_message=message_of(topic.error),
            )
            for topic in results
        ]
    )

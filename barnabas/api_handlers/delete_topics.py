"""DeleteTopics (API key 20): deletes topics, by name or by id.

Knows nothing of logs: the brokers that host the partitions delete them when they see the change.
"""

from collections.abc import Sequence

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.mutation_quotas import mutation_quota
from barnabas.api_handlers.outcome import code_of, out_of_time, text_of
from barnabas.api_handlers.registry import api
from barnabas.api_handlers.submitting import submit
from barnabas.cluster.controller.commands.topics import DeletedTopic, DeleteTopics
from barnabas.errors import InvalidRequest, RequestTimedOut, ThrottlingQuotaExceeded, TopicDeletionDisabled
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from barnabas.wire.types import ZERO_UUID

KNOWS_TOPIC_DELETION_DISABLED = 3
"""The first version that knows TOPIC_DELETION_DISABLED (KIP-322)."""

WITHOUT_TEXT = (RequestTimedOut, ThrottlingQuotaExceeded, TopicDeletionDisabled)
"""Errors of the whole request, and of quotas. Apache Kafka has no error message for these."""

KNOWS_QUOTA = 5
"""The first version that knows THROTTLING_QUOTA_EXCEEDED (KIP-599)."""


@api(DeleteTopicsRequest)
def delete_topics(request: DeleteTopicsRequest, context: Context) -> DeleteTopicsResponse | Later[DeleteTopicsResponse]:
    """Deletes each topic. The order of the results means nothing."""
    topics: list[tuple[str | None, bytes]] = [(topic.name, topic.topic_id) for topic in request.topics]
    topics += [(name, ZERO_UUID) for name in request.topic_names]
    refusal = out_of_time(request.timeout_ms)
    if refusal is None and not context.broker.config["delete.topic.enable"]:
        refusal = TopicDeletionDisabled() if context.api_version >= KNOWS_TOPIC_DELETION_DISABLED else InvalidRequest()
    if refusal is not None:
        return respond([DeletedTopic(name, topic_id, refusal) for name, topic_id in topics])
    return submit(DeleteTopics(topics, mutation_quota(context, strict_since=KNOWS_QUOTA)), request, context, respond)


def respond(results: Sequence[DeletedTopic]) -> DeleteTopicsResponse:
    return DeleteTopicsResponse(
        responses=[
            DeleteTopicsResponse.DeletableTopicResult(
                name=topic.name,
                topic_id=topic.id,
                error_code=code_of(topic.error),
                error_message=None if isinstance(topic.error, WITHOUT_TEXT) else text_of(topic.error),
            )
            for topic in results
        ]
    )

"""The guards of Produce and Fetch.

Knows nothing of logs. Apache Kafka's ``KafkaApis.handleProduceRequest`` and ``handleFetchRequest``.
"""

from typing import Any

from barnabas.api_handlers.answering import Answer
from barnabas.api_handlers.fetch import fetch as handle_fetch
from barnabas.api_handlers.produce import refused_before
from barnabas.api_handlers.produce_in_transaction import any_transactional
from barnabas.api_handlers.rights.guard import EachOf, Guarded, on_cluster
from barnabas.api_handlers.share_acknowledge import share_acknowledge as handle_share_acknowledge
from barnabas.api_handlers.share_fetch import share_fetch as handle_share_fetch
from barnabas.errors import CloseConnection, TopicAuthorizationFailed, TransactionalIdAuthorizationFailed
from barnabas.security.acls import Operation, ResourceType
from barnabas.wire.messages.produce import ProduceRequest, ProduceResponse


def produce(guarded: Guarded) -> Answer:
    """Needs WRITE on the transactional id of transactional batches, and on each topic. IDEMPOTENT_WRITE is not needed.

    :raises CloseConnection: a topic is refused, and ``acks`` wants no response
    """
    request = guarded.request
    transactional_id = request.transactional_id
    if any_transactional(request.topic_data) and (
        transactional_id is None  # a transactional batch without a transactional id is always refused
        or not guarded.access.allows(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id)
    ):
        return guarded.refused(TransactionalIdAuthorizationFailed)
    each = EachOf(Operation.WRITE, ResourceType.TOPIC, "topic_data", "name", "responses", refuse=refused_topics)
    answer = each(guarded)
    if request.acks == 0 and hides(each, guarded):
        raise CloseConnection("a produce request with acks=0 lacks the right to write")
    return answer


def hides(each: EachOf, guarded: Guarded) -> bool:
    """Returns whether a topic of the request was refused, although there is no response with the error."""
    names = (each.name_of(topic, guarded.context) for topic in guarded.request.topic_data)
    return not all(
        name is None or guarded.access.allows(each.operation, each.kind, name, logs_refusal=False) for name in names
    )


def refused_topics(guarded: Guarded, request: ProduceRequest) -> ProduceResponse:
    error = TopicAuthorizationFailed()
    return ProduceResponse(
        responses=[
            ProduceResponse.TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[refused_before(each.index, error) for each in topic.partition_data],
            )
            for topic in request.topic_data
        ]
    )


def fetch(guarded: Guarded) -> Answer:
    """Needs READ on each topic, at each request of a session; a follower needs CLUSTER_ACTION on the cluster."""
    if guarded.context.session.promise.is_controllers:
        return metadata_log(guarded)
    return handle_fetch(guarded.request, guarded.context, guarded.access)


metadata_log = on_cluster(Operation.CLUSTER_ACTION)


def share_fetch(guarded: Guarded) -> Answer:
    """Needs READ on each topic, at each request of a session."""
    return handle_share_fetch(guarded.request, guarded.context, guarded.access)


def share_acknowledge(guarded: Guarded) -> Answer:
    """Needs READ on each topic."""
    answer: Any = handle_share_acknowledge(guarded.request, guarded.context, guarded.access)
    return answer  # type: ignore[no-any-return]

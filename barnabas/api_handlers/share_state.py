"""The common parts of the requests for the state of share partitions.

Knows nothing of what each request does.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.outcome import code_of
from barnabas.share.gathering import Ask, gather
from barnabas.share.messages import Outcome, Outcomes, TopicPartition
from barnabas.wire.message import Response

R = TypeVar("R", bound=Response)
P = TypeVar("P", covariant=True)


class Topic(Protocol[P]):
    """A topic of a request, with its partitions."""

    @property
    def topic_id(self) -> bytes: ...

    @property
    def partitions(self) -> Sequence[P]: ...


ByTopic = list[tuple[bytes, list[tuple[int, Outcome]]]]


def ask_each(
    group_id: str,
    asks: Sequence[tuple[TopicPartition, Ask]],
    response: Callable[..., R],
    topic_result: Callable[..., Any],
    partition_result: Callable[[int, Outcome], Any],
) -> "Later[R] | R":
    """Runs a command for each partition. Responds when all have an outcome; at once if the group id is empty.

    :param response: the class of the response
    :param topic_result: the class of its results, each of which is about a topic
    :param partition_result: makes the result of a partition from its index and its outcome
    """
    if not asks or not group_id:
        return response(results=[])
    later: Later[R] = Later()

    def respond(outcomes: Outcomes) -> None:
        later.resolve(
            response(
                results=[
                    topic_result(topic_id=topic_id, partitions=[partition_result(*each) for each in found])
                    for topic_id, found in by_topic(outcomes)
                ]
            )
        )

    gather(group_id, asks, respond)
    return later


def partitions_of(topics: Sequence[Topic[P]]) -> list[tuple[bytes, P]]:
    """Returns the partitions of a request with their topic ids; none if a topic has no partitions.

    (All methods of ``ShareCoordinatorService`` except ``initializeState`` do the same.)
    """
    found = []
    for topic in topics:
        if not topic.partitions:
            return []
        for each in topic.partitions:
            found.append((topic.topic_id, each))
    return found


def by_topic(outcomes: Outcomes) -> ByTopic:
    """Groups (partition, outcome)s by topic."""
    topics: dict[bytes, list[tuple[int, Outcome]]] = {}
    for (topic_id, index), outcome in outcomes.items():
        topics.setdefault(topic_id, []).append((index, outcome))
    return list(topics.items())


def error_of(outcome: Outcome) -> dict[str, Any]:
    """Returns error code and message, as fields of a response."""
    error = outcome.error
    return {"error_code": code_of(error), "error_message": None if error is None else str(error)}

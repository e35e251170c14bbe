"""What the requests about the state of share partitions have in common: how partitions are asked about, and listed.

Knows nothing of what is asked.
"""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from barnabas.api_handlers.answering import Later
from barnabas.errors import NONE
from barnabas.share.gathering import Ask, gather
from barnabas.share.messages import Outcome, Outcomes, TopicPartition
from barnabas.wire.message import Response

R = TypeVar("R", bound=Response)
P = TypeVar("P", covariant=True)


class Topic(Protocol[P]):
    """A topic, and what is asked of its partitions."""

    @property
    def topic_id(self) -> bytes: ...

    @property
    def partitions(self) -> Sequence[P]: ...


ByTopic = list[tuple[bytes, list[tuple[int, Outcome]]]]


def ask_each(
    group_id: str, asks: Sequence[tuple[TopicPartition, Ask]], answer: Callable[[ByTopic], R]
) -> "Later[R] | R":
    """Ask about each partition, and answer when all outcomes are there; a group without a name has nothing to ask."""
    if not asks or not group_id:
        return answer([])
    later: Later[R] = Later()
    gather(group_id, asks, lambda outcomes: later.resolve(answer(by_topic(outcomes))))
    return later


def partitions_of(topics: Sequence[Topic[P]]) -> list[tuple[bytes, P]]:
    """What is asked of each partition, beside its topic's id. A topic without partitions spoils it: nothing is asked.

    (Of ``ShareCoordinatorService`` this is all but ``initializeState``.)
    """
    if not all(topic.partitions for topic in topics):
        return []
    return [(topic.topic_id, each) for topic in topics for each in topic.partitions]


def by_topic(outcomes: Outcomes) -> ByTopic:
    """Groups the outcomes by topic: (partition, outcome)s of each."""
    topics: dict[bytes, list[tuple[int, Outcome]]] = {}
    for (topic_id, index), outcome in outcomes.items():
        topics.setdefault(topic_id, []).append((index, outcome))
    return list(topics.items())


def code_of(outcome: Outcome) -> int:
    return NONE if outcome.error is None else outcome.error.code

"""Lays the answers about partitions out as Apache Kafka does, where some were refused before the others were asked.

Knows nothing of any API: a topic is whatever tells it from others, an answer whatever is said of a partition.
"""

from collections.abc import Hashable, Sequence
from typing import TypeVar

K = TypeVar("K", bound=Hashable)
A = TypeVar("A")

Answers = list[tuple[K, list[A]]]
"""Topics, each with the answers about its partitions."""


def merged(refused: Sequence[tuple[K, A]], answered: Answers[K, A]) -> Answers[K, A]:
    """One entry for each topic: what was refused stands first, then what was asked about.

    Without refusals the answers stay as they are, even where a topic was named twice (the builders of Kafka's
    ``OffsetCommitResponse`` and ``OffsetDeleteResponse``).

    >>> merged([("b", "no")], [("a", ["yes"]), ("b", ["yes"])])
    [('b', ['no', 'yes']), ('a', ['yes'])]
    >>> merged([], [("a", ["yes"]), ("a", ["yes"])])
    [('a', ['yes']), ('a', ['yes'])]
    """
    if not refused:
        return answered
    topics: dict[K, list[A]] = {}
    for topic, answer in refused:
        topics.setdefault(topic, []).append(answer)
    for topic, answers in answered:
        topics.setdefault(topic, []).extend(answers)
    return list(topics.items())

"""Groups the results of partitions by topic, as responses list them.

Knows nothing of any API: a topic is any hashable key, a result any object.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

K = TypeVar("K", bound=Hashable)
A = TypeVar("A")

Answers = list[tuple[K, list[A]]]
"""Topics, each with the results of its partitions."""


def by_topic(results: Mapping[tuple[K, int], A]) -> Answers[K, A]:
    """Groups the results of (topic, partition)s by topic, in their order.

    >>> by_topic({("b", 1): "yes", ("a", 0): "no", ("b", 0): "no"})
    [('b', ['yes', 'no']), ('a', ['no'])]
    """
    topics: dict[K, list[A]] = {}
    for (topic, _), result in results.items():
        topics.setdefault(topic, []).append(result)
    return list(topics.items())


def merged(refused: Sequence[tuple[K, A]], answered: Answers[K, A]) -> Answers[K, A]:
    """Returns one entry for each topic: first the partitions that were refused, then the others.

    Without refusals the answers stay as they are, even if the request names a topic twice (the builders of Kafka's
    ``OffsetCommitResponse`` and ``OffsetDeleteResponse`` do the same).

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

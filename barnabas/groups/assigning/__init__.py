"""The assignors of the broker: pure functions of the members of a group and their topics.

Knows nothing of how members get their assignments. An assignor returns the assignments of all members at once. They are
those of Apache Kafka, even where these depend on the order of hash tables.

>>> from types import SimpleNamespace
>>> orders = bytes(15) + b"1"
>>> topics = {orders: SimpleNamespace(name="orders", id=orders, partitions={0: None, 1: None, 2: None})}
>>> members = {name: Subscriber(frozenset({orders})) for name in ("one", "two")}
>>> {member: sorted(found[orders]) for member, found in sorted(ASSIGNORS["range"](members, topics).items())}
{'one': [0, 1], 'two': [2]}
"""

from collections.abc import Callable, Iterable, Mapping

from barnabas.groups.assigning.ranges import assign_ranges
from barnabas.groups.assigning.subscriber import Assignment, Subscriber, TopicsView
from barnabas.groups.assigning.uniform import assign_uniformly

__all__ = ["ASSIGNORS", "Assignment", "Subscriber", "TopicsView", "names_of"]

#: The assignors of consumer groups, by their names in ``group.consumer.assignors`` and in requests.
ASSIGNORS: dict[str, Callable[[Mapping[str, Subscriber], TopicsView], Assignment]] = {
    "uniform": assign_uniformly,
    "range": assign_ranges,
}


def names_of(configured: Iterable[str]) -> list[str]:
    """Returns the names of assignors in ``group.consumer.assignors``, which may have names of Kafka's classes.

    >>> names_of(["org.apache.kafka.coordinator.group.assignor.RangeAssignor", "uniform"])
    ['range', 'uniform']
    """
    return [each.rpartition(".")[2].removesuffix("Assignor").lower() for each in configured]

"""Assignors: who of a group reads which partitions. Pure functions of the members and the topics.

Knows nothing of how members learn of it. Each takes all members at once, and gives each of them an assignment, which
may be what it had; all of a broker's answers come out as Apache Kafka's would, hash tables' orders included.

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

#: Those of consumer groups, by the names that ``group.consumer.assignors`` and members give them.
ASSIGNORS: dict[str, Callable[[Mapping[str, Subscriber], TopicsView], Assignment]] = {
    "uniform": assign_uniformly,
    "range": assign_ranges,
}


def names_of(configured: Iterable[str]) -> list[str]:
    """Assignors by their names, whether ``group.consumer.assignors`` has these or the names of Kafka's classes.

    >>> names_of(["org.apache.kafka.coordinator.group.assignor.RangeAssignor", "uniform"])
    ['range', 'uniform']
    """
    return [each.rpartition(".")[2].removesuffix("Assignor").lower() for each in configured]

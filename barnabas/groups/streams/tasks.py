"""Sets of tasks. A task is one partition of a subtopology, and active, standby or warm-up.

Knows nothing of members or groups.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

Tasks = Mapping[str, frozenset[int]]
"""Partitions by subtopology, without empty sets."""

NO_TASKS: Tasks = {}

Epochs = Mapping[str, Mapping[int, int]]
"""Partitions by subtopology, each with the epoch in which it was assigned (KIP-1251)."""


class Target(NamedTuple):
    """The target of a member, or the tasks that it reports (``TasksTuple``)."""

    active: Tasks = NO_TASKS
    standby: Tasks = NO_TASKS
    warmup: Tasks = NO_TASKS

    def overlaps(self, held: "TasksWithEpochs") -> bool:
        """Returns whether a task is in both, in the same role."""
        return (
            any(not partitions.isdisjoint(held.active.get(each, ())) for each, partitions in self.active.items())
            or any(not partitions.isdisjoint(held.standby.get(each, ())) for each, partitions in self.standby.items())
            or any(not partitions.isdisjoint(held.warmup.get(each, ())) for each, partitions in self.warmup.items())
        )

    @property
    def is_empty(self) -> bool:
        return not (self.active or self.standby or self.warmup)

    def has_all(self, held: "TasksWithEpochs") -> bool:
        """Returns whether all of the other tasks are in this."""
        return (
            all(partitions.keys() <= self.active.get(each, frozenset()) for each, partitions in held.active.items())
            and all(partitions <= self.standby.get(each, frozenset()) for each, partitions in held.standby.items())
            and all(partitions <= self.warmup.get(each, frozenset()) for each, partitions in held.warmup.items())
        )

    def is_within(self, held: "TasksWithEpochs") -> bool:
        """Returns whether all of these tasks are in the other ones."""
        return (
            all(partitions <= held.active.get(each, {}).keys() for each, partitions in self.active.items())
            and all(partitions <= held.standby.get(each, frozenset()) for each, partitions in self.standby.items())
            and all(partitions <= held.warmup.get(each, frozenset()) for each, partitions in self.warmup.items())
        )


class TasksWithEpochs(NamedTuple):
    """The tasks that a member owns, or has to revoke (``TasksTupleWithEpochs``)."""

    active: Epochs = {}
    standby: Tasks = NO_TASKS
    warmup: Tasks = NO_TASKS

    @property
    def is_empty(self) -> bool:
        return not (self.active or self.standby or self.warmup)

    def merge(self, other: "TasksWithEpochs") -> "TasksWithEpochs":
        active = {each: dict(partitions) for each, partitions in self.active.items()}
        for subtopology, partitions in other.active.items():
            active.setdefault(subtopology, {}).update(partitions)
        return TasksWithEpochs(active, _union(self.standby, other.standby), _union(self.warmup, other.warmup))


NONE_ASSIGNED = TasksWithEpochs()
NO_TARGET = Target()


def tasks_of(pairs: Iterable[tuple[str, Collection[int]]]) -> Tasks:
    """Returns the tasks of (subtopology, partitions) pairs."""
    gathered: dict[str, frozenset[int]] = {}
    for subtopology, partitions in pairs:
        gathered[subtopology] = gathered.get(subtopology, frozenset()).union(partitions)
    return {subtopology: partitions for subtopology, partitions in gathered.items() if partitions}


def _union(one: Tasks, other: Tasks) -> Tasks:
    joined = dict(one)
    for subtopology, partitions in other.items():
        joined[subtopology] = joined.get(subtopology, frozenset()) | partitions
    return joined

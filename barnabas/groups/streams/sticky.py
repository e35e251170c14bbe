"""The assignor of streams groups: balanced, with as few moved tasks as possible (``StickyTaskAssignor``).

Knows nothing of clocks, records or groups. Ties are decided by the order of Java's hash tables and heaps, as in Apache
Kafka: a group that moves between the two brokers keeps its tasks.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from barnabas.groups.java_hash import hash_code, hash_map_order, spread
from barnabas.groups.java_heap import JavaHeap
from barnabas.groups.streams.configuring import ConfiguredSubtopology
from barnabas.groups.streams.tasks import Target, tasks_of

LOAD_FACTOR = 0.75

LARGEST_CAPACITY = 1 << 30


class TaskId(NamedTuple):
    """One partition of a subtopology."""

    subtopology: str
    partition: int

    @property
    def by_partition(self) -> tuple[int, str]:
        return self.partition, self.subtopology


class MemberSpec(NamedTuple):
    """What the assignor knows of a member."""

    process_id: str
    former: Target
    """The member's target so far."""


def assign(
    specs: Mapping[str, MemberSpec], subtopologies: Mapping[str, ConfiguredSubtopology], standby_replicas: int
) -> dict[str, Target]:
    """Returns each member's target by member id, in the order of Apache Kafka's table of members.

    >>> def subtopology(tasks):
    ...     return ConfiguredSubtopology(tasks, frozenset(), {}, frozenset(), {})
    >>> assign({"m": MemberSpec("p", Target()), "n": MemberSpec("p", Target())}, {"0": subtopology(3)}, 0)["m"].active
    {'0': frozenset({0, 2})}
    """
    return _Assigning(specs, subtopologies, standby_replicas).result()


class _Member(NamedTuple):
    process_id: str
    member_id: str


class _Process:
    """A process, and the tasks of its members (``ProcessState``)."""

    __slots__ = ("_heap", "active", "counts", "load", "standby", "tasks", "total")

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        """The number of tasks of each member."""
        self.tasks: set[TaskId] = set()
        self.total = 0
        self.load = 0.0
        """The number of tasks per member."""
        self.active: dict[str, list[TaskId]] = {}
        self.standby: dict[str, list[TaskId]] = {}
        self._heap: JavaHeap[str] | None = None

    def add_member(self, member_id: str) -> None:
        self.counts[member_id] = 0

    def add(self, member_id: str, task: TaskId, *, is_active: bool) -> int:
        """Adds a task to that member. Returns the member's number of tasks."""
        self._heap = None
        return self._give(member_id, task, is_active)

    def add_to_least_loaded(self, task: TaskId, *, is_active: bool) -> int:
        """Adds a task to the member with the fewest. Returns that member's number of tasks."""
        if len(self.counts) == 1:
            return self._give(next(iter(self.counts)), task, is_active)
        if self._heap is None:
            self._heap = JavaHeap()
            for member_id in hash_map_order(self.counts):
                self._heap.push(self.counts[member_id], member_id)
        member_id = self._heap.pop()
        count = self._give(member_id, task, is_active)
        self._heap.push(count, member_id)
        return count

    def _give(self, member_id: str, task: TaskId, is_active: bool) -> int:
        self.total += 1
        self.tasks.add(task)
        (self.active if is_active else self.standby).setdefault(member_id, []).append(task)
        self.counts[member_id] += 1
        self.load = self.total / len(self.counts)
        return self.counts[member_id]


class _Quota:
    """How many tasks a member may have, so that all have about as many."""

    __slots__ = ("_members", "_tasks", "each")

    def __init__(self, tasks: int, members: int) -> None:
        self._tasks, self._members = tasks, members
        self.each = _ceil(tasks, members)

    def given(self, count: int) -> None:
        """Notes a member's number of tasks. A member that reaches the quota no longer counts."""
        if count == self.each:
            self._members -= 1
            self._tasks -= count
            self.each = _ceil(self._tasks, self._members)


class _Assigning:
    def __init__(
        self, specs: Mapping[str, MemberSpec], subtopologies: Mapping[str, ConfiguredSubtopology], standby_replicas: int
    ) -> None:
        self._members = hash_map_order(specs)
        self._subtopologies = subtopologies
        self._replicas = standby_replicas
        actives = sum(each.tasks for each in subtopologies.values())
        standbys = sum(each.tasks * standby_replicas for each in subtopologies.values() if each.is_stateful)
        self._active_quota = _Quota(actives, len(specs))
        self._quota = _Quota(actives + standbys, len(specs))
        processes: dict[str, _Process] = {}
        self._former_active: dict[TaskId, _Member] = {}
        self._former_standby: dict[TaskId, list[_Member]] = {}
        for member_id in self._members:
            spec = specs[member_id]
            member = _Member(spec.process_id, member_id)
            processes.setdefault(spec.process_id, _Process()).add_member(member_id)
            for task in _task_ids(spec.former.active.items()):
                self._former_active[task] = member
            for task in _task_ids(spec.former.standby.items()):
                self._former_standby.setdefault(task, []).append(member)
        self._processes = {each: processes[each] for each in _table_order(processes, len(specs))}

    def result(self) -> dict[str, Target]:
        every = {each: range(found.tasks) for each, found in self._subtopologies.items()}
        self._assign_active(list(_task_ids(every.items())))
        if self._replicas > 0:
            stateful = {each: every[each] for each, found in self._subtopologies.items() if found.is_stateful}
            self._assign_standby(list(_task_ids(stateful.items())))
        targets = dict.fromkeys(self._members, Target())
        for process in self._processes.values():
            for member_id in process.counts:
                active, standby = process.active.get(member_id, ()), process.standby.get(member_id, ())
                targets[member_id] = Target(_compact(active), _compact(standby))
        return targets

    # ------------------------------------------------------------ active tasks

    def _assign_active(self, tasks: list[TaskId]) -> None:
        """Assigns each task to its former member, or to one with a standby, or to the least loaded."""
        tasks.sort(key=lambda task: task.by_partition)
        tasks = [task for task in tasks if not self._give_active(task, self._former_active.get(task))]
        tasks = [
            task
            for task in tasks
            if not self._give_active(task, self._least_loaded(self._former_standby.get(task), None))
        ]
        queue = self._by_load()
        for task in sorted(tasks):
            process = queue.pop()
            self._count_active(process.add_to_least_loaded(task, is_active=True))
            queue.push(process.load, process)

    def _give_active(self, task: TaskId, member: _Member | None) -> bool:
        if member is None:
            return False
        process = self._processes[member.process_id]
        if process.counts[member.member_id] >= self._active_quota.each:
            return False
        self._count_active(process.add(member.member_id, task, is_active=True))
        return True

    def _count_active(self, count: int) -> None:
        self._active_quota.given(count)
        self._quota.given(count)

    # ------------------------------------------------------------ standby tasks

    def _assign_standby(self, tasks: list[TaskId]) -> None:
        """Assigns each standby to the task's former member, or to a former standby, or to the least loaded."""
        open_ones: list[tuple[TaskId, int]] = []
        for task in sorted(tasks, key=lambda task: task.by_partition, reverse=True):
            for given in range(self._replicas):
                if not (
                    self._give_standby(task, self._former_active.get(task))
                    or self._give_standby(task, self._least_loaded(self._former_standby.get(task), task))
                ):
                    open_ones.append((task, self._replicas - given))
                    break
        queue = self._by_load()
        for task, replicas in sorted(open_ones, reverse=True):
            for _ in range(replicas):
                if not self._give_least_loaded(queue, task):
                    break  # there are fewer processes than copies

    def _give_standby(self, task: TaskId, member: _Member | None) -> bool:
        if member is None:
            return False
        process = self._processes[member.process_id]
        if task in process.tasks or process.counts[member.member_id] >= self._quota.each:
            return False
        self._quota.given(process.add(member.member_id, task, is_active=False))
        return True

    def _give_least_loaded(self, queue: JavaHeap[_Process], task: TaskId) -> bool:
        """Assigns a standby to the least loaded process without the task. Returns False if every process has it."""
        passed_over: list[_Process] = []
        is_given = False
        while queue and not is_given:
            process = queue.pop()
            passed_over.append(process)
            if task not in process.tasks:
                self._quota.given(process.add_to_least_loaded(task, is_active=False))
                is_given = True
        for process in reversed(passed_over):
            queue.push(process.load, process)
        return is_given

    # ------------------------------------------------------------ least loaded

    def _least_loaded(self, members: list[_Member] | None, task: TaskId | None) -> _Member | None:
        """Returns the least loaded of the members, if its process does not have the task yet.

        Returns None if the process of the first member has it: Apache Kafka checks that one alone.
        """
        if not members:
            return None
        chosen, *others = members
        first = self._processes[chosen.process_id]
        load, count = first.load, first.counts[chosen.member_id]
        for each in others:
            other = self._processes[each.process_id]
            is_lighter = other.load < load and other.counts[each.member_id] < count
            if is_lighter and (task is None or task not in other.tasks):
                chosen = each
                load, count = other.load, other.counts[each.member_id]
        return None if task is not None and task in first.tasks else chosen

    def _by_load(self) -> JavaHeap[_Process]:
        heap: JavaHeap[_Process] = JavaHeap()
        for process in self._processes.values():
            heap.push(process.load, process)
        return heap


def _task_ids(tasks: Iterable[tuple[str, Collection[int]]]) -> Iterable[TaskId]:
    return (TaskId(subtopology, partition) for subtopology, partitions in tasks for partition in partitions)


def _compact(tasks: Iterable[TaskId]) -> Mapping[str, frozenset[int]]:
    return tasks_of((task.subtopology, (task.partition,)) for task in tasks)


def _ceil(tasks: int, members: int) -> int:
    return -(-tasks // members) if members else 0


def _table_order(keys: Iterable[str], capacity: int) -> list[str]:
    """Returns the keys in the order of a ``HashMap`` that was created with that capacity."""
    listed = list(keys)
    size = 1
    while size < min(capacity, LARGEST_CAPACITY):
        size *= 2
    while len(listed) > size * LOAD_FACTOR:
        size *= 2
    return sorted(listed, key=lambda key: spread(hash_code(key) & 0xFFFFFFFF) & size - 1)

"""The uniform assignor for members with different subscriptions: partitions move from the most to the least loaded.

Knows nothing of members with equal subscriptions, for which ``uniform.py`` has a faster algorithm.
"""

from collections.abc import Iterable, Mapping, Sequence

from barnabas.groups.assigning.subscriber import Assignment, Subscriber, TopicsView
from barnabas.groups.java_hash import hash_map_order, uuid_key

ROUNDS = 16
"""The maximum number of rounds over all topics."""

NOBODY = -1


class Balancing:
    """One assignment (Kafka's ``UniformHeterogeneousAssignmentBuilder``). Members are identified by an index."""

    def __init__(self, members: Mapping[str, Subscriber], topics: TopicsView) -> None:
        self.members = members
        self.member_ids = hash_map_order(members)
        self.loads = [0] * len(members)
        self.subscribers: dict[bytes, list[int]] = {}
        for index, member_id in enumerate(self.member_ids):
            for topic_id in members[member_id].topic_ids:
                self.subscribers.setdefault(topic_id, []).append(index)
        #: The member of each partition, or NOBODY.
        self.owners = {topic_id: [NOBODY] * len(topics[topic_id].partitions) for topic_id in self.subscribers}

    def assign(self) -> Assignment:
        self._keep()
        self._assign_free()
        self._balance([topic_id for topic_id, subscribers in self.subscribers.items() if len(subscribers) > 1])
        found: dict[str, dict[bytes, list[int]]] = {member_id: {} for member_id in self.member_ids}
        for topic_id, owners in self.owners.items():
            for partition, owner in enumerate(owners):
                found[self.member_ids[owner]].setdefault(topic_id, []).append(partition)
        return {
            member_id: {topic_id: frozenset(partitions) for topic_id, partitions in mine.items()}
            for member_id, mine in found.items()
        }

    def _keep(self) -> None:
        """Leaves members the partitions of topics that they still subscribe to."""
        for index, member_id in enumerate(self.member_ids):
            member = self.members[member_id]
            for topic_id, partitions in member.assigned.items():
                if topic_id in member.topic_ids:
                    self.loads[index] += len(partitions)
                    for partition in partitions:
                        self.owners[topic_id][partition] = index

    def _assign_free(self) -> None:
        free = {
            topic_id: partitions
            for topic_id, owners in self.owners.items()
            if (partitions := [partition for partition, owner in enumerate(owners) if owner == NOBODY])
        }
        for topic_id in self._hardest_first(free):
            balance = Balance(self.loads, self.subscribers[topic_id])
            for partition in free[topic_id]:
                self._move(topic_id, partition, balance.next_least_loaded())

    def _hardest_first(self, topic_ids: Iterable[bytes]) -> list[bytes]:
        """Sorts topics: those with the most partitions per subscriber first, then those with the fewest subscribers."""
        return sorted(
            topic_ids,
            key=lambda each: (
                -len(self.owners[each]) / len(self.subscribers[each]),
                len(self.subscribers[each]),
                uuid_key(each),
            ),
        )

    def _balance(self, topic_ids: Iterable[bytes]) -> None:
        """Moves partitions until a whole round moves none."""
        order = self._hardest_first(topic_ids)
        changed_last = -1
        for _ in range(ROUNDS):
            for index, topic_id in enumerate(order):
                if index == changed_last:
                    return
                if self._balance_topic(topic_id) or changed_last < 0:
                    changed_last = index

    def _balance_topic(self, topic_id: bytes) -> int:
        """Moves partitions of the topic until its subscribers are balanced, and returns how many."""
        balance = Balance(self.loads, self.subscribers[topic_id])
        if balance.spread <= 1:
            return 0
        movable: dict[int, list[int]] = {}
        for partition, owner in enumerate(self.owners[topic_id]):
            movable.setdefault(owner, []).append(partition)
        moved = 0
        while not balance.is_balanced:
            while (giver := balance.next_most_loaded()) != NOBODY and not movable.get(giver):
                balance.exclude_most_loaded()  # its partitions are of other topics
            if giver == NOBODY:
                break
            partition = movable[giver].pop()
            taker = balance.next_least_loaded()
            if balance.is_balanced:
                break
            self._move(topic_id, partition, taker)
            moved += 1
        return moved

    def _move(self, topic_id: bytes, partition: int, member: int) -> None:
        owner = self.owners[topic_id][partition]
        if owner != NOBODY:
            self.loads[owner] -= 1
        self.owners[topic_id][partition] = member
        self.loads[member] += 1


class Balance:
    """Members by load: which one gives the next partition, and which one takes it (Kafka's
    ``MemberAssignmentBalancer``).

    At both ends there is a range of members with equal load, which is used up before the next load is. So nothing has
    to be sorted again, though each step changes two loads.
    """

    def __init__(self, loads: Sequence[int], members: Iterable[int]) -> None:
        """:param loads: read at each step; whoever moves a partition updates it"""
        self._loads = loads
        order = self._order = sorted(members, key=lambda each: (loads[each], each))
        self._least_end, self._least_load, self._next_least = 0, loads[order[0]] - 1, 0
        self._most_start = self._most_end = len(order)
        self._most_load, self._next_most = loads[order[-1]] + 1, len(order) - 1
        self.spread = loads[order[-1]] - loads[order[0]]

    @property
    def is_balanced(self) -> bool:
        return self._most_load - self._least_load <= 1

    def next_least_loaded(self) -> int:
        order = self._order
        if self._next_least >= self._least_end:
            self._least_load += 1
            while self._least_end < len(order) and self._loads[order[self._least_end]] == self._least_load:
                self._least_end += 1
            self._next_least = 0
        member = order[self._next_least]
        self._next_least += 1
        return member

    def next_most_loaded(self) -> int:
        """Returns NOBODY if all members are excluded."""
        order = self._order
        if self._next_most < self._most_start:
            if self._most_end <= self._most_start > 0:
                self._most_load = self._loads[order[self._most_start - 1]]
            else:
                self._most_load -= 1
            while self._most_start > 0 and self._loads[order[self._most_start - 1]] == self._most_load:
                self._most_start -= 1
            self._next_most = self._most_end - 1
        if self._next_most < 0:
            return NOBODY
        member = order[self._next_most]
        self._next_most -= 1
        return member

    def exclude_most_loaded(self) -> None:
        """Excludes the member that was returned last, as it has nothing to give."""
        order, last, end = self._order, self._next_most + 1, self._most_end - 1
        order[last], order[end] = order[end], order[last]
        self._most_end = end

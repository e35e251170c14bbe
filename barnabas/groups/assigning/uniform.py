"""The uniform assignor: balances the partitions of all members, and moves as few as possible.

Knows nothing of members with different subscriptions, for which there is ``balancing.py``.
"""

from collections.abc import Collection, Mapping

from barnabas.groups.assigning.balancing import Balancing
from barnabas.groups.assigning.subscriber import (
    Assignment,
    Subscriber,
    TopicsView,
    in_order_of_names,
    is_homogeneous,
)
from barnabas.groups.java_hash import copied_order, hash_map_order, table_order, uuid_code


def assign_uniformly(members: Mapping[str, Subscriber], topics: TopicsView) -> Assignment:
    """Returns an assignment in which no member has more than one partition more than another (Kafka's
    ``UniformAssignor``)."""
    if not members:
        return {}
    if is_homogeneous(members):
        return _Uniform(members, topics).assign()
    return Balancing(members, topics).assign()


class _Uniform:
    """Assigns to members with equal subscriptions (Kafka's ``UniformHomogeneousAssignmentBuilder``)."""

    def __init__(self, members: Mapping[str, Subscriber], topics: TopicsView) -> None:
        self.members = members
        self.topic_ids = next(iter(members.values())).topic_ids
        self.free = _unassigned(members, topics, self.topic_ids)
        count = sum(len(topics[each].partitions) for each in self.topic_ids)
        self.quota, self.extra = divmod(count, len(members))  # how many members get one more than the quota
        self.found: Assignment = {}
        self.room: list[tuple[str, int]] = []  # members with less than their quota, and how many partitions they lack

    def assign(self) -> Assignment:
        for index, member_id in enumerate(hash_map_order(self.members)):
            self._keep(member_id, len(self.members) - index)
        at = 0
        for member_id, room in self.room:
            if at == len(self.free):
                break
            added: dict[bytes, list[int]] = {}
            for topic_id, partition in self.free[at : at + room]:
                added.setdefault(topic_id, []).append(partition)
            at += room
            kept = self.found[member_id]
            self.found[member_id] = {
                **kept,
                **{topic_id: kept.get(topic_id, frozenset()).union(more) for topic_id, more in added.items()},
            }
        return self.found

    def _keep(self, member_id: str, members_left: int) -> None:
        """Leaves the member its partitions up to its quota, and notes how many it lacks."""
        has_extra = self.extra > 0
        room = self.quota + has_extra
        kept: dict[bytes, frozenset[int]] = {}
        assigned = self.members[member_id].assigned
        # The order is costly, and needed only if there are several topics.
        for topic_id in table_order({each: uuid_code(each) for each in assigned}) if len(assigned) > 1 else assigned:
            partitions = assigned[topic_id]
            if topic_id not in self.topic_ids:
                continue
            if len(partitions) <= room:
                room -= len(partitions)
                kept[topic_id] = _frozen(partitions)
                continue
            in_order = copied_order({each: each for each in partitions})
            if room:
                kept[topic_id] = frozenset(in_order[:room])
            self.free.extend((topic_id, partition) for partition in in_order[room:])
            room = 0
        if room and has_extra and members_left > self.extra:
            room -= 1  # enough other members are left to get the extra partitions
            has_extra = False
        if room:
            self.room.append((member_id, room))
        if has_extra:
            self.extra -= 1
        self.found[member_id] = kept


def _unassigned(
    members: Mapping[str, Subscriber], topics: TopicsView, topic_ids: frozenset[bytes]
) -> list[tuple[bytes, int]]:
    owned: dict[bytes, set[int]] = {}
    for member in members.values():
        for topic_id, partitions in member.assigned.items():
            owned.setdefault(topic_id, set()).update(partitions)
    order = copied_order({each: uuid_code(each) for each in in_order_of_names(topic_ids, topics)})
    return [
        (topic_id, partition)
        for topic_id in order
        for partition in sorted(set(topics[topic_id].partitions).difference(owned.get(topic_id, ())))
    ]


def _frozen(partitions: Collection[int]) -> frozenset[int]:
    return partitions if isinstance(partitions, frozenset) else frozenset(partitions)

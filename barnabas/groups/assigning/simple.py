"""The simple assignor, for share groups: balances the members of each partition, and the partitions of each member.

Knows nothing of the records that members acquire. If there are more members than partitions, members share partitions.
"""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Generic, TypeVar

from barnabas.groups.assigning.subscriber import Assignment, Subscriber, TopicsView, in_order_of_names, is_homogeneous
from barnabas.groups.java_hash import LOAD_FACTOR, copied_order, hash_map_order, table_order, uuid_code

Share = TypeVar("Share", int, tuple[bytes, int])


def assign_simply(members: Mapping[str, Subscriber], topics: TopicsView) -> Assignment:
    """Returns the assignment of a share group (Kafka's ``SimpleAssignor``).

    :param topics: the partitions that may be assigned, which for a share group are those with initialized state
    """
    if not members:
        return {}
    member_ids = hash_map_order(members)
    current = [_current(members[member_id]) for member_id in member_ids]
    if is_homogeneous(members):
        everything = _homogeneous(members[member_ids[0]], topics, len(members), current)
        return {member_id: _by_topic(mine) for member_id, mine in zip(member_ids, everything, strict=True)}
    found: list[dict[bytes, frozenset[int]]] = [{} for _ in member_ids]
    for topic_id, subscribers in _subscribers(member_ids, members, topics).items():
        for mine, shares in zip(found, _heterogeneous_topic(topic_id, subscribers, topics, current), strict=True):
            if shares:
                mine[topic_id] = frozenset(shares)
    return dict(zip(member_ids, found, strict=True))


def _current(member: Subscriber) -> dict[bytes, list[int]]:
    """Returns the member's current assignment, in the order of its hash tables."""
    topic_ids = table_order({topic_id: uuid_code(topic_id) for topic_id in member.assigned})
    return {topic_id: copied_order({each: each for each in member.assigned[topic_id]}) for topic_id in topic_ids}


def _by_topic(shares: Iterable[tuple[bytes, int]]) -> dict[bytes, frozenset[int]]:
    found: dict[bytes, set[int]] = {}
    for topic_id, partition in shares:
        found.setdefault(topic_id, set()).add(partition)
    return {topic_id: frozenset(partitions) for topic_id, partitions in found.items()}


def _homogeneous(
    member: Subscriber, topics: TopicsView, count: int, current: Sequence[Mapping[bytes, Collection[int]]]
) -> list[Collection[tuple[bytes, int]]]:
    """Assigns to members with equal subscriptions (Kafka's ``SimpleHomogeneousAssignmentBuilder``)."""
    in_order = in_order_of_names(member.topic_ids, topics)
    targets = [(topic_id, partition) for topic_id in in_order for partition in sorted(topics[topic_id].partitions)]
    shares_of_members = PartitionShares(targets, range(count), lambda each: uuid_code(each[0]) * 31 + each[1])
    for index, mine in enumerate(current):
        shares_of_members.add_current(
            index,
            [(topic_id, each) for topic_id, theirs in mine.items() if topic_id in member.topic_ids for each in theirs],
        )
    return shares_of_members.assign(count)


def _subscribers(
    member_ids: Sequence[str], members: Mapping[str, Subscriber], topics: TopicsView
) -> dict[bytes, list[int]]:
    """Returns the members of each topic, in the order of the hash table in which Kafka collects them."""
    subscribers: dict[bytes, list[int]] = {}
    for index, member_id in enumerate(member_ids):
        for topic_id in in_order_of_names(members[member_id].topic_ids, topics):
            subscribers.setdefault(topic_id, []).append(index)
    return {each: subscribers[each] for each in table_order({each: uuid_code(each) for each in subscribers})}


def _heterogeneous_topic(
    topic_id: bytes, subscribers: Sequence[int], topics: TopicsView, current: Sequence[Mapping[bytes, Collection[int]]]
) -> list[Collection[int]]:
    """Assigns one topic to its subscribers (Kafka's ``SimpleHeterogeneousAssignmentBuilder``)."""
    shares_of_members = PartitionShares(sorted(topics[topic_id].partitions), subscribers, lambda each: each)
    for index, mine in enumerate(current):
        shares_of_members.add_current(index, mine.get(topic_id, ()))
    return shares_of_members.assign(len(current))


def table_capacity(count: int) -> int:
    """Returns the capacity with which the assignor creates a hash table for ``count`` keys (``AssignorHelpers``)."""
    return int((count + 1) / LOAD_FACTOR) + 1


class PartitionShares(Generic[Share]):
    """Partitions and their members. Members are identified by an index.

    A member keeps its partitions, unless it has too many, or a partition has too many members.
    """

    def __init__(self, targets: Sequence[Share], members: Sequence[int], code: Callable[[Share], int]) -> None:
        """:param code: returns the hash code of a partition"""
        self._targets: Sequence[Share] = targets
        self._members = members
        self._code: Callable[[Share], int] = code
        self._members_per_partition = -(-len(members) // len(targets)) if targets else 0  # rounded up
        each = self._members_per_partition * len(targets) / len(members)
        #: How many partitions each member gets. Their sum is the number of shares.
        self._desired = {
            member: math.ceil(each * (index + 1)) - math.ceil(each * index) for index, member in enumerate(members)
        }
        self._members_of: dict[Share, dict[int, bool]] = {}  # False once the member has to revoke it
        self._shares_of: dict[int, dict[Share, bool]] = {}

    def add_current(self, member: int, shares: Iterable[Share]) -> None:
        """Adds partitions that the member has now."""
        for share in shares:
            self._members_of.setdefault(share, {})[member] = True
            self._shares_of.setdefault(member, {})[share] = True

    def assign(self, count: int) -> list[Collection[Share]]:
        """Returns what each of ``count`` members gets, including those without a subscription."""
        for member in self._shares_of:
            self._revoke_excess_partitions(member)
        for share in self._members_of:
            self._revoke_excess_members(share)
        for share in self._targets:
            self._members_of.setdefault(share, {})
        self._fill()
        return [
            [share for share, has_it in self._shares_of.get(member, {}).items() if has_it] for member in range(count)
        ]

    def _revoke_excess_partitions(self, member: int) -> None:
        shares, wanted = self._shares_of[member], self._desired.get(member, 0)
        excess = len(shares) - wanted
        if excess > 0:
            for share in table_order({share: self._code(share) for share in shares})[:excess]:
                self._revoke(share, member)

    def _revoke_excess_members(self, share: Share) -> None:
        members = self._members_of[share]
        excess = sum(members.values()) - self._members_per_partition
        if excess > 0:
            present = [each for each in table_order({each: each for each in members}) if members[each]]
            for member in present[:excess]:
                self._revoke(share, member)

    def _revoke(self, share: Share, member: int) -> None:
        self._members_of[share][member] = self._shares_of[member][share] = False

    def _fill(self) -> None:
        """Gives partitions that have too few members to members that have too few partitions, in turns."""
        counts = {member: sum(self._shares_of.get(member, {}).values()) for member in self._members}
        unfilled = sorted(member for member in self._members if counts[member] < self._desired[member])
        at, was_given = 0, False
        newest_first = reversed(self._members_of)  # the order within one slot of the table
        codes = {share: self._code(share) for share in newest_first}
        for share in table_order(codes, capacity=table_capacity(len(self._targets))):
            members = {member for member, has_it in self._members_of[share].items() if has_it}
            lacking = self._members_per_partition - len(members)
            while lacking > 0 and unfilled:
                if at == len(unfilled):
                    if not was_given:
                        break
                    at, was_given = 0, False
                member = unfilled[at]
                at += 1
                if member in members:
                    continue
                shares = self._shares_of.setdefault(member, {})
                if not shares.get(share):
                    shares[share] = True
                    counts[member] += 1
                lacking -= 1
                was_given = True
                if counts[member] >= self._desired[member]:
                    at -= 1
                    del unfilled[at]

"""Simple, for share groups: as many members on each partition as on the others, and all members with about as many.

Knows nothing of what is delivered to whom: members of a share group share partitions, when there are more members than
partitions.
"""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Generic, TypeVar

from barnabas.groups.assigning.subscriber import Assignment, Subscriber, TopicsView, in_order_of_names, is_homogeneous
from barnabas.groups.java_hash import LOAD_FACTOR, copied_order, hash_map_order, table_order, uuid_code

Share = TypeVar("Share", int, tuple[bytes, int])


def assign_simply(members: Mapping[str, Subscriber], topics: TopicsView) -> Assignment:
    """What each member of a share group is to have (Kafka's ``SimpleAssignor``).

    The partitions of ``topics`` are those that may be assigned: in a share group only those of which it has a state.
    """
    if not members:
        return {}
    member_ids = hash_map_order(members)
    held = [_held(members[member_id]) for member_id in member_ids]
    if is_homogeneous(members):
        everything = _all_together(members[member_ids[0]], topics, len(members), held)
        return {member_id: _by_topic(mine) for member_id, mine in zip(member_ids, everything, strict=True)}
    found: list[dict[bytes, frozenset[int]]] = [{} for _ in member_ids]
    for topic_id, subscribers in _subscribers(member_ids, members, topics).items():
        for mine, shares in zip(found, _of_topic(topic_id, subscribers, topics, held), strict=True):
            if shares:
                mine[topic_id] = frozenset(shares)
    return dict(zip(member_ids, found, strict=True))


def _held(member: Subscriber) -> dict[bytes, list[int]]:
    """What the member has, in the order of its hash tables."""
    topic_ids = table_order({topic_id: uuid_code(topic_id) for topic_id in member.assigned})
    return {topic_id: copied_order({each: each for each in member.assigned[topic_id]}) for topic_id in topic_ids}


def _by_topic(shares: Iterable[tuple[bytes, int]]) -> dict[bytes, frozenset[int]]:
    found: dict[bytes, set[int]] = {}
    for topic_id, partition in shares:
        found.setdefault(topic_id, set()).add(partition)
    return {topic_id: frozenset(partitions) for topic_id, partitions in found.items()}


def _all_together(
    member: Subscriber, topics: TopicsView, count: int, held: Sequence[Mapping[bytes, Collection[int]]]
) -> list[Collection[tuple[bytes, int]]]:
    """All members subscribe to the same (Kafka's ``SimpleHomogeneousAssignmentBuilder``)."""
    in_order = in_order_of_names(member.topic_ids, topics)
    targets = [(topic_id, partition) for topic_id in in_order for partition in sorted(topics[topic_id].partitions)]
    sharing = Sharing(targets, range(count), lambda each: uuid_code(each[0]) * 31 + each[1])
    for index, mine in enumerate(held):
        sharing.hold(
            index,
            [(topic_id, each) for topic_id, theirs in mine.items() if topic_id in member.topic_ids for each in theirs],
        )
    return sharing.share_out(count)


def _subscribers(
    member_ids: Sequence[str], members: Mapping[str, Subscriber], topics: TopicsView
) -> dict[bytes, list[int]]:
    """The members of each topic, which come in the order of the table that they were put in one after the other."""
    subscribers: dict[bytes, list[int]] = {}
    for index, member_id in enumerate(member_ids):
        for topic_id in in_order_of_names(members[member_id].topic_ids, topics):
            subscribers.setdefault(topic_id, []).append(index)
    return {each: subscribers[each] for each in table_order({each: uuid_code(each) for each in subscribers})}


def _of_topic(
    topic_id: bytes, subscribers: Sequence[int], topics: TopicsView, held: Sequence[Mapping[bytes, Collection[int]]]
) -> list[Collection[int]]:
    """One topic, for itself (Kafka's ``SimpleHeterogeneousAssignmentBuilder``)."""
    sharing = Sharing(sorted(topics[topic_id].partitions), subscribers, lambda each: each)
    for index, mine in enumerate(held):
        sharing.hold(index, mine.get(topic_id, ()))
    return sharing.share_out(len(held))


def roomy(count: int) -> int:
    """With which capacity the assignor makes its tables for ``count`` keys (Kafka's ``AssignorHelpers``)."""
    return int((count + 1) / LOAD_FACTOR) + 1


class Sharing(Generic[Share]):
    """Partitions among members, each with as many members as the others. Members are told apart by their index.

    What members have they keep, as far as they have not too much and as a partition has not too many of them.
    """

    def __init__(self, targets: Sequence[Share], members: Sequence[int], code: Callable[[Share], int]) -> None:
        """``code`` gives the hash code of a partition."""
        self._targets: Sequence[Share] = targets
        self._members = members
        self._code: Callable[[Share], int] = code
        self._sharing = -(-len(members) // len(targets)) if targets else 0  # how many members each partition gets
        each = self._sharing * len(targets) / len(members)
        #: How many partitions each member is to have: together that is just as many as there are to give.
        self._wanted = {
            member: math.ceil(each * (index + 1)) - math.ceil(each * index) for index, member in enumerate(members)
        }
        self._members_of: dict[Share, dict[int, bool]] = {}  # False: has had it
        self._shares_of: dict[int, dict[Share, bool]] = {}

    def hold(self, member: int, shares: Iterable[Share]) -> None:
        """The member has had these."""
        for share in shares:
            self._members_of.setdefault(share, {})[member] = True
            self._shares_of.setdefault(member, {})[share] = True

    def share_out(self, count: int) -> list[Collection[Share]]:
        """What each of all members has in the end, whether it was among them or not."""
        for member in self._shares_of:
            self._take_too_much(member)
        for share in self._members_of:
            self._take_too_many(share)
        for share in self._targets:
            self._members_of.setdefault(share, {})
        self._fill()
        return [
            [share for share, has_it in self._shares_of.get(member, {}).items() if has_it] for member in range(count)
        ]

    def _take_too_much(self, member: int) -> None:
        shares, wanted = self._shares_of[member], self._wanted.get(member, 0)
        excess = len(shares) - wanted
        if excess > 0:
            for share in table_order({share: self._code(share) for share in shares})[:excess]:
                self._take(share, member)

    def _take_too_many(self, share: Share) -> None:
        members = self._members_of[share]
        excess = sum(members.values()) - self._sharing
        if excess > 0:
            present = [each for each in table_order({each: each for each in members}) if members[each]]
            for member in present[:excess]:
                self._take(share, member)

    def _take(self, share: Share, member: int) -> None:
        self._members_of[share][member] = self._shares_of[member][share] = False

    def _fill(self) -> None:
        """Give partitions with too few members to members with too few partitions, in turns."""
        counts = {member: sum(self._shares_of.get(member, {}).values()) for member in self._members}
        unfilled = sorted(member for member in self._members if counts[member] < self._wanted[member])
        at, was_given = 0, False
        newest_first = reversed(self._members_of)  # as they stand in one place of the table
        codes = {share: self._code(share) for share in newest_first}
        for share in table_order(codes, capacity=roomy(len(self._targets))):
            members = {member for member, has_it in self._members_of[share].items() if has_it}
            lacking = self._sharing - len(members)
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
                if counts[member] >= self._wanted[member]:
                    at -= 1
                    del unfilled[at]

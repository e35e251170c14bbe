"""Ranges: of each topic every member gets neighbouring partitions, so that topics of one size are read together.

Knows nothing of what members had before: who is where in the order of members decides alone.
"""

from collections.abc import Mapping

from barnabas.groups.assigning.subscriber import Assignment, Subscriber, TopicsView
from barnabas.groups.java_hash import text_place


def assign_ranges(members: Mapping[str, Subscriber], topics: TopicsView) -> Assignment:
    """Each topic in as many ranges as it has subscribers; the first ones get one more (Kafka's ``RangeAssignor``).

    Static members come first, by their instance ids, so that one that comes back under another member id has what it
    had; the others by their member ids.
    """
    subscribers: dict[bytes, list[str]] = {}
    for member_id in sorted(members, key=lambda each: _place(each, members[each])):
        for topic_id in members[member_id].topic_ids:
            subscribers.setdefault(topic_id, []).append(member_id)
    found: dict[str, dict[bytes, frozenset[int]]] = {member_id: {} for member_id in members}
    for topic_id, its_members in subscribers.items():
        count, extra = divmod(len(topics[topic_id].partitions), len(its_members))
        start = 0
        for index, member_id in enumerate(its_members):
            end = start + count + (index < extra)
            if end == start:
                break
            found[member_id][topic_id] = frozenset(range(start, end))
            start = end
    return {**found}


def _place(member_id: str, member: Subscriber) -> tuple[bool, bytes]:
    return member.instance_id is None, text_place(member_id if member.instance_id is None else member.instance_id)

"""The range assignor: each member gets a range of adjacent partitions of each topic.

Knows nothing of former assignments: the result depends on the order of the members alone.
"""

from collections.abc import Mapping

from barnabas.groups.assigning.subscriber import Assignment, Subscriber, TopicsView
from barnabas.groups.java_hash import utf16_key


def assign_ranges(members: Mapping[str, Subscriber], topics: TopicsView) -> Assignment:
    """Divides each topic into a range for each subscriber; the first ones get one partition more (``RangeAssignor``).

    Static members come first, in the order of their instance ids, so that they keep their ranges under a new member id.
    Other members follow in the order of their member ids.
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
    return member.instance_id is None, utf16_key(member_id if member.instance_id is None else member.instance_id)

"""The input and output of assignors.

Knows nothing of how they assign.
"""

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple, Protocol

from barnabas.groups.java_hash import copied_order, hash_code, utf16_key


class Topic(Protocol):
    """What an assignor knows of a topic; a ``TopicView`` of the cluster is one."""

    @property
    def name(self) -> str: ...

    @property
    def partitions(self) -> Collection[int]: ...


TopicsView = Mapping[bytes, Topic]
"""The subscribed topics by id."""

MemberAssignment = Mapping[bytes, frozenset[int]]
"""Partitions by topic id, without empty sets."""

Assignment = dict[str, MemberAssignment]
"""The assignment of each member by member id. If it has not changed it may be the same object."""

NOTHING: Mapping[bytes, Collection[int]] = MappingProxyType({})


class Subscriber(NamedTuple):
    """What an assignor knows of a member (Kafka's ``MemberSubscription`` and ``MemberAssignment``)."""

    topic_ids: frozenset[bytes]  #: of the subscribed topics that exist
    rack: str | None = None  #: ignored by all assignors since Apache Kafka 4.0
    instance_id: str | None = None
    assigned: Mapping[bytes, Collection[int]] = NOTHING  #: its target assignment so far


def is_homogeneous(members: Mapping[str, Subscriber]) -> bool:
    """Returns whether all members subscribe to the same topics."""
    return len({each.topic_ids for each in members.values()}) < 2


def in_order_of_names(topic_ids: Iterable[bytes], topics: TopicsView) -> list[bytes]:
    """Returns topic ids in the order of the hash set of names that Kafka fills from a record with sorted names."""
    names = {topics[topic_id].name: topic_id for topic_id in topic_ids}
    return [names[name] for name in copied_order({name: hash_code(name) for name in sorted(names, key=utf16_key)})]

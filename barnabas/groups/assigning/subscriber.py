"""What assignors are told and what they say.

Knows nothing of what they do with it.
"""

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple, Protocol

from barnabas.groups.java_hash import copied_order, hash_code, text_place


class Topic(Protocol):
    """A topic, as far as an assignor has to know it; a ``TopicView`` of the cluster is one."""

    @property
    def name(self) -> str: ...

    @property
    def partitions(self) -> Collection[int]: ...


TopicsView = Mapping[bytes, Topic]
"""Topics by their ids; all that anybody subscribes to."""

MemberAssignment = Mapping[bytes, frozenset[int]]
"""Partitions by topic id; no topic without partitions."""

Assignment = dict[str, MemberAssignment]
"""What each member is to have, by member id. A member that keeps what it had may get the very same object."""

NOTHING: Mapping[bytes, Collection[int]] = MappingProxyType({})


class Subscriber(NamedTuple):
    """A member (Kafka's ``MemberSubscription`` and ``MemberAssignment``)."""

    topic_ids: frozenset[bytes]  #: of the topics that it subscribes to and that there are
    rack: str | None = None  #: since Apache Kafka 4.0 no assignor of the broker looks at it
    instance_id: str | None = None
    assigned: Mapping[bytes, Collection[int]] = NOTHING  #: what it is to have so far


def is_homogeneous(members: Mapping[str, Subscriber]) -> bool:
    """Whether all members subscribe to the same topics."""
    return len({each.topic_ids for each in members.values()}) < 2


def in_order_of_names(topic_ids: Iterable[bytes], topics: TopicsView) -> list[bytes]:
    """Topics as a member's set of names has them, which was filled from a record, where they are sorted."""
    names = {topics[topic_id].name: topic_id for topic_id in topic_ids}
    return [names[name] for name in copied_order({name: hash_code(name) for name in sorted(names, key=text_place)})]

"""What classic members of a consumer group say and are topic_partitions, in the protocol that is embedded in the classic one.

Knows nothing of groups. Topics have names there, and ids everywhere else.
"""

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from barnabas.errors import MalformedMessage
from barnabas.groups.consumer.records import in_order
from barnabas.groups.environment import ClusterView
from barnabas.groups.messages import Protocols
from barnabas.wire.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription

OLDEST, NEWEST = ConsumerProtocolAssignment.versions


class Subscription(NamedTuple):
    """What a classic consumer reads, where, and what it has in its hands."""

    topics: frozenset[str]
    rack_id: str | None
    owned: dict[bytes, Sequence[int]]
    """Partitions by topic id. Nothing where its version, or its protocol, does not let it keep any."""


def subscription_of(metadata: bytes, image: ClusterView) -> Subscription:
    """What a member says of itself under one of its protocols.

    :raises MalformedMessage: it says nothing that could be understood
    """
    said = ConsumerProtocolSubscription.decode_prefixed(metadata)
    owned = by_id(((each.topic, each.partitions) for each in said.owned_partitions), image)
    return Subscription(frozenset(said.topics), said.rack_id, owned)


class CustomAssignment(Exception):
    """An assignment tells its member more than partitions."""


def partitions_of(assignment: bytes, image: ClusterView) -> dict[bytes, Sequence[int]]:
    """The partitions that an assignment names, of topics that there are; none in one that is empty.

    :raises MalformedMessage: it is no assignment
    :raises CustomAssignment: partitions are not all there is in it
    """
    if not assignment:
        return {}
    said = ConsumerProtocolAssignment.decode_prefixed(assignment)
    if said.user_data:
        raise CustomAssignment
    return by_id(((each.topic, each.partitions) for each in said.assigned_partitions), image)


def by_id(named: Iterable[tuple[str, Sequence[int]]], image: ClusterView) -> dict[bytes, Sequence[int]]:
    """The same partitions under the ids of their topics, without what there is not."""
    found: dict[bytes, Sequence[int]] = {}
    for name, partitions in named:
        topic = image.topics_by_name.get(name)
        if topic is not None and (there := [each for each in partitions if each in topic.partitions]):
            found[topic.id] = there
    return found


def assignment_of(partitions: Mapping[bytes, Iterable[int]], version: int, image: ClusterView) -> bytes:
    """An assignment of these partitions, in that version; topics that are not there any more are left out."""
    kind = ConsumerProtocolAssignment.TopicPartition
    topic_partitions = [
        kind(topic=image.topics_by_id[topic_id].name, partitions=sorted(partitions[topic_id]))
        for topic_id in in_order(partitions)
        if topic_id in image.topics_by_id
    ]
    assignment = ConsumerProtocolAssignment(assigned_partitions=topic_partitions)
    return assignment.encode_prefixed(version)


def preferred(protocols: Protocols) -> tuple[str, bytes]:
    """What a member is in a consumer group under: the protocol it likes best, for the group chooses none."""
    return protocols[0]


def version_of(metadata: bytes) -> int:
    """In which version a member that subscribed by ``metadata`` understands an assignment.

    :raises MalformedMessage: it did not say
    """
    if len(metadata) < struct.calcsize(">h"):
        raise MalformedMessage("a subscription without a version")
    (version,) = struct.unpack_from(">h", metadata)
    if version < OLDEST:
        raise MalformedMessage(f"a subscription of version {version}")
    return int(min(version, NEWEST))

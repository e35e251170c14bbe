"""The consumer protocol that the classic protocol embeds: subscriptions and assignments of classic members.

Knows nothing of groups. It names topics, while everything else uses topic ids.
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
    """The subscription of a classic member."""

    topics: frozenset[str]
    rack_id: str | None
    owned: dict[bytes, Sequence[int]]
    """The partitions that the member owns, by topic id. Empty if its version or its protocol does not keep any."""


def subscription_of(metadata: bytes, image: ClusterView) -> Subscription:
    """Decodes the metadata of a member for one of its protocols.

    :raises MalformedMessage: it cannot be decoded
    """
    said = ConsumerProtocolSubscription.decode_prefixed(metadata)
    owned = by_id(((each.topic, each.partitions) for each in said.owned_partitions), image)
    return Subscription(frozenset(said.topics), said.rack_id, owned)


class CustomAssignment(Exception):
    """An assignment has user data beside the partitions."""


def partitions_of(assignment: bytes, image: ClusterView) -> dict[bytes, Sequence[int]]:
    """Decodes an assignment. Returns its partitions by topic id, without topics and partitions that do not exist.

    :raises MalformedMessage: it cannot be decoded
    :raises CustomAssignment: it has user data
    """
    if not assignment:
        return {}
    said = ConsumerProtocolAssignment.decode_prefixed(assignment)
    if said.user_data:
        raise CustomAssignment
    return by_id(((each.topic, each.partitions) for each in said.assigned_partitions), image)


def by_id(named: Iterable[tuple[str, Sequence[int]]], image: ClusterView) -> dict[bytes, Sequence[int]]:
    """Returns the partitions by topic id, without topics and partitions that do not exist."""
    found: dict[bytes, Sequence[int]] = {}
    for name, partitions in named:
        topic = image.topics_by_name.get(name)
        if topic is not None and (there := [each for each in partitions if each in topic.partitions]):
            found[topic.id] = there
    return found


def assignment_of(partitions: Mapping[bytes, Iterable[int]], version: int, image: ClusterView) -> bytes:
    """Encodes an assignment, without topics that do not exist."""
    kind = ConsumerProtocolAssignment.TopicPartition
    topic_partitions = [
        kind(topic=image.topics_by_id[topic_id].name, partitions=sorted(partitions[topic_id]))
        for topic_id in in_order(partitions)
        if topic_id in image.topics_by_id
    ]
    assignment = ConsumerProtocolAssignment(assigned_partitions=topic_partitions)
    return assignment.encode_prefixed(version)


def preferred(protocols: Protocols) -> tuple[str, bytes]:
    """Returns the protocol that a member prefers. In a consumer group no protocol is selected."""
    return protocols[0]


def version_of(metadata: bytes) -> int:
    """Returns the assignment version for a member whose subscription is ``metadata``.

    :raises MalformedMessage: the metadata has no valid version
    """
    if len(metadata) < struct.calcsize(">h"):
        raise MalformedMessage("a subscription without a version")
    (version,) = struct.unpack_from(">h", metadata)
    if version < OLDEST:
        raise MalformedMessage(f"a subscription of version {version}")
    return int(min(version, NEWEST))

"""The hashes of a group's topics, which show whether a new assignment is needed (KIP-1101).

Knows nothing of groups. The hashes are in records of groups, and equal those of Apache Kafka, so that a group that
moves between the two brokers does not need a new assignment.

A hash is a 64-bit XXH3 over the fields in little endian. A string is its UTF-16 code units, followed by their number.
"""

import struct
from collections.abc import Mapping
from typing import Protocol

from barnabas.groups.java_hash import utf16_key

NO_TOPIC = 0
"""The hash of a topic that does not exist, and of an empty set of topics."""

LAYOUT = 0
"""The version of the format, which comes first."""


class Partition(Protocol):
    """What is hashed of a partition."""

    @property
    def replicas(self) -> tuple[int, ...]: ...


class Broker(Protocol):
    """What is hashed of a broker."""

    @property
    def rack(self) -> str | None: ...


class Topic(Protocol):
    """What is hashed of a topic."""

    @property
    def name(self) -> str: ...

    @property
    def id(self) -> bytes: ...

    @property
    def partitions(self) -> Mapping[int, Partition]: ...


def topic_hash(topic: Topic, brokers: Mapping[int, Broker]) -> int:
    """Returns the hash of a topic, an int64: of its id, its name, and the racks of each partition (Kafka's
    ``Utils.computeTopicHash``).

    :param brokers: by id; a broker that is missing has no rack
    """
    racks = {broker_id: broker.rack for broker_id, broker in brokers.items() if broker.rack is not None}
    parts = [struct.pack("<b", LAYOUT), topic.id[7::-1], topic.id[:7:-1], _text(topic.name)]
    parts.append(struct.pack("<i", len(topic.partitions)))
    for index in range(len(topic.partitions)):
        parts.append(struct.pack("<i", index))
        if racks:
            its_racks = [racks[broker] for broker in topic.partitions[index].replicas if broker in racks]
            for rack in sorted(its_racks, key=utf16_key):
                parts += (struct.pack("<i", len(utf16_key(rack)) // 2), _text(rack))
    return _xxh3(b"".join(parts))


def group_hash(topic_hashes: Mapping[str, int]) -> int:
    """Returns the hash of all topics of a group, an int64 (Kafka's ``Utils.computeGroupHash``).

    :param topic_hashes: by topic name

    >>> group_hash({}), group_hash({"a": 1}) == group_hash({"b": 1}), group_hash({"a": 1, "b": 2})
    (0, True, 571542372673154031)
    """
    if not topic_hashes:
        return NO_TOPIC
    in_order = (topic_hashes[name] for name in sorted(topic_hashes, key=utf16_key))
    return _xxh3(b"".join(struct.pack("<q", each) for each in in_order))


def _text(text: str) -> bytes:
    encoded = text.encode("utf-16-le", "surrogatepass")
    return encoded + struct.pack("<i", len(encoded) // 2)


def _xxh3(data: bytes) -> int:
    import xxhash  # imported here, to keep the start of the broker short

    value: int = xxhash.xxh3_64_intdigest(data)
    return value - ((value & 1 << 63) << 1)

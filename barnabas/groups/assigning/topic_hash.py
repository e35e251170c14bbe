"""Hashes of what groups know of their topics: by them a group sees that there is something to assign anew (KIP-1101).

Knows nothing of groups. The numbers are Apache Kafka's own, as they stand in groups' records: a group that moves
between the two brokers is not assigned anew for that.

A hash is XXH3, of 64 bits, over the fields one after the other in little endian; a text is its UTF-16 code units and
then how many they are.
"""

import struct
from collections.abc import Mapping
from typing import Protocol

from barnabas.groups.java_hash import text_place

NO_TOPIC = 0
"""The hash of a topic that is not there, and of no topics at all."""

LAYOUT = 0
"""What stands first, should there ever be another layout."""


class Partition(Protocol):
    """A partition, as far as it is hashed."""

    @property
    def replicas(self) -> tuple[int, ...]: ...


class Broker(Protocol):
    """A broker, as far as it is hashed."""

    @property
    def rack(self) -> str | None: ...


class Topic(Protocol):
    """A topic, as far as it is hashed."""

    @property
    def name(self) -> str: ...

    @property
    def id(self) -> bytes: ...

    @property
    def partitions(self) -> Mapping[int, Partition]: ...


def topic_hash(topic: Topic, brokers: Mapping[int, Broker]) -> int:
    """The hash of a topic, an int64: its id, its name, and the racks that each partition is in.

    ``brokers`` by their ids: those that are not among them have no rack (Kafka's ``Utils.computeTopicHash``).
    """
    racks = {broker_id: broker.rack for broker_id, broker in brokers.items() if broker.rack is not None}
    parts = [struct.pack("<b", LAYOUT), topic.id[7::-1], topic.id[:7:-1], _text(topic.name)]
    parts.append(struct.pack("<i", len(topic.partitions)))
    for index in range(len(topic.partitions)):
        parts.append(struct.pack("<i", index))
        if racks:
            its_racks = [racks[broker] for broker in topic.partitions[index].replicas if broker in racks]
            for rack in sorted(its_racks, key=text_place):
                parts += (struct.pack("<i", len(text_place(rack)) // 2), _text(rack))
    return _xxh3(b"".join(parts))


def group_hash(topic_hashes: Mapping[str, int]) -> int:
    """The hash of all topics of a group by their names, an int64 (Kafka's ``Utils.computeGroupHash``).

    >>> group_hash({}), group_hash({"a": 1}) == group_hash({"b": 1}), group_hash({"a": 1, "b": 2})
    (0, True, 571542372673154031)
    """
    if not topic_hashes:
        return NO_TOPIC
    in_order = (topic_hashes[name] for name in sorted(topic_hashes, key=text_place))
    return _xxh3(b"".join(struct.pack("<q", each) for each in in_order))


def _text(text: str) -> bytes:
    encoded = text.encode("utf-16-le", "surrogatepass")
    return encoded + struct.pack("<i", len(encoded) // 2)


def _xxh3(data: bytes) -> int:
    import xxhash  # here, as a broker without such groups starts without it

    value: int = xxhash.xxh3_64_intdigest(data)
    return value - ((value & 1 << 63) << 1)

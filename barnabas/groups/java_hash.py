"""Java's hash of a string, and the order that it gives a HashMap: which partition keeps a group, and who wins a tie.

Knows nothing of groups. Kafka's choices that rest on it must come out the same here, or else a data directory that
moves between the two brokers has its groups in the wrong partitions.
"""

import struct
from collections.abc import Iterable
from typing import TypeVar

K = TypeVar("K")

SMALLEST_TABLE = 16
LOAD_FACTOR = 0.75


def hash_code(text: str) -> int:
    """``String.hashCode``: a signed int32 over the UTF-16 code units.

    >>> hash_code("barnabas"), hash_code("polygenelubricants")
    (-1741437618, -2147483648)
    """
    encoded = text.encode("utf-16-be", "surrogatepass")
    result = 0
    for unit in struct.unpack(f">{len(encoded) // 2}H", encoded):
        result = result * 31 + unit & 0xFFFFFFFF
    return result - ((result & 0x80000000) << 1)


def partition_of(key: str, partitions: int) -> int:
    """Which partition of an internal topic keeps ``key``; Kafka's ``Utils.abs``, for which the lowest int is 0.

    >>> partition_of("barnabas", 50), partition_of("polygenelubricants", 50)
    (18, 0)
    """
    code = hash_code(key)
    return 0 if code == -(1 << 31) else abs(code) % partitions


def hash_map_order(keys: Iterable[str]) -> list[str]:
    """The keys in the order in which a ``java.util.HashMap`` gives them after they were put in this order.

    >>> hash_map_order(["roundrobin", "range", "sticky"])
    ['sticky', 'range', 'roundrobin']
    """
    return _in_order({key: hash_code(key) for key in keys})


def partitions_in_order(topic: str, partitions: Iterable[int]) -> list[int]:
    """The partitions in the order of a HashMap of Kafka's ``TopicPartition``, filled by ``computeIfAbsent``.

    Requests about several groups are answered partition by partition, in this order.

    >>> partitions_in_order("__consumer_offsets", [16, 32, 47])
    [47, 32, 16]
    """
    topic_code = hash_code(topic)
    # computeIfAbsent puts what is new in front of what is in the same bin, unlike put.
    newest_first = reversed(list(dict.fromkeys(partitions)))
    return _in_order({partition: (31 + partition) * 31 + topic_code for partition in newest_first})


def _in_order(codes: dict[K, int]) -> list[K]:
    size = SMALLEST_TABLE
    while len(codes) > size * LOAD_FACTOR:
        size *= 2
    return sorted(codes, key=lambda key: _spread(codes[key] & 0xFFFFFFFF) & (size - 1))


def _spread(code: int) -> int:
    return code ^ code >> 16

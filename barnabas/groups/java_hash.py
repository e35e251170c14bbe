"""Java's hash codes, and the iteration orders of its hash tables.

Knows nothing of groups. Apache Kafka's choices depend on them: which partition stores a group, how an assignor decides
a tie, in which order a batch has its records. They are the same here, so that a data directory can move between the two
brokers: every group stays in its partition, and keeps its assignment.
"""

import functools
import struct
from collections.abc import Iterable, Mapping
from typing import TypeVar

K = TypeVar("K")

SMALLEST_TABLE = 16
LOAD_FACTOR = 0.75
CACHED_HASHES = 4096
"""How many hashes of strings are cached: each assignment of a group needs those of its member ids."""

LONGEST_CACHED = 256
"""The longest string whose hash is cached. Clients may send ids of 32 KiB."""

GOLDEN_RATIO = 0x9E3779B97F4A7C15
"""The factor of Knuth's multiplicative hashing for 64 bits."""


def hash_code(text: str) -> int:
    """Returns ``String.hashCode``: a signed int32 over the UTF-16 code units.

    >>> hash_code("barnabas"), hash_code("polygenelubricants")
    (-1741437618, -2147483648)
    """
    return _cached_hash(text) if len(text) <= LONGEST_CACHED else _hash(text)


def _hash(text: str) -> int:
    encoded = text.encode("utf-16-be", "surrogatepass")
    result = 0
    for unit in struct.unpack(f">{len(encoded) // 2}H", encoded):
        result = result * 31 + unit & 0xFFFFFFFF
    return result - ((result & 0x80000000) << 1)


_cached_hash = functools.lru_cache(maxsize=CACHED_HASHES)(_hash)


def partition_of(key: str, partitions: int) -> int:
    """Returns the partition of an internal topic that stores ``key``. As in Kafka's ``Utils.abs``, the lowest int
    gives 0.

    >>> partition_of("barnabas", 50), partition_of("polygenelubricants", 50)
    (18, 0)
    """
    code = _cached_hash(key) if len(key) <= LONGEST_CACHED else _hash(key)
    return 0 if code == -(1 << 31) else abs(code) % partitions


def hash_map_order(keys: Iterable[str]) -> list[str]:
    """Returns the keys in the iteration order of a ``java.util.HashMap`` into which they were put in this order.

    >>> hash_map_order(["roundrobin", "range", "sticky"])
    ['sticky', 'range', 'roundrobin']
    """
    return table_order({key: hash_code(key) for key in keys})


def timeline_order(keys: Iterable[str]) -> list[str]:
    """Returns the keys in the iteration order of Kafka's ``TimelineHashMap`` into which they were put in this order.

    >>> timeline_order(["range", "roundrobin", "sticky"])
    ['range', 'sticky', 'roundrobin']
    """
    slots = {key: hash_code(key) * GOLDEN_RATIO & 0xFFFFFFFFFFFFFFFF for key in keys}
    bits = 1
    while len(slots) * LOAD_FACTOR > 1 << bits:
        bits += 1
    newest_first = list(reversed(slots))  # the order within one slot
    newest_first.sort(key=lambda key: slots[key] >> 64 - bits)
    return newest_first


def uuid_code(uuid: bytes) -> int:
    """Returns ``hashCode`` of Kafka's ``Uuid``, as an unsigned int32.

    >>> uuid_code(bytes.fromhex("00000000000000010000000000000003"))
    2
    """
    first, second, third, fourth = struct.unpack(">4I", uuid)
    code: int = first ^ second ^ third ^ fourth
    return code


def uuid_key(uuid: bytes) -> tuple[int, int]:
    """Returns the sort key of ``Uuid.compareTo``: two signed int64."""
    high, low = struct.unpack(">qq", uuid)
    return high, low


def utf16_key(text: str) -> bytes:
    """Returns the sort key of ``String.compareTo``: UTF-16 code units."""
    return text.encode("utf-16-be", "surrogatepass")


def copied_order(codes: Mapping[K, int]) -> list[K]:
    """Returns keys in the iteration order of ``new HashSet(collection)``, which sizes its table for their number."""
    return table_order(codes, capacity=max(int(len(codes) / LOAD_FACTOR) + 1, SMALLEST_TABLE))


def table_order(codes: Mapping[K, int], *, capacity: int = SMALLEST_TABLE) -> list[K]:
    """Returns keys in the iteration order of a ``HashMap`` into which they were put in this order.

    :param codes: the ``hashCode`` of each key
    :param capacity: the argument of its constructor; the size of the table is the next power of two
    """
    size = 1 << (capacity - 1).bit_length()
    while len(codes) > size * LOAD_FACTOR:
        size *= 2
    return sorted(codes, key=lambda key: spread(codes[key] & 0xFFFFFFFF) & (size - 1))


def spread(code: int) -> int:
    """Returns the bits of a hash, an unsigned int32, of which a ``HashMap`` takes the lowest."""
    return code ^ code >> 16

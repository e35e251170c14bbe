"""The partition that Kafka's clients choose for a record: by the murmur2 hash of its key.

Knows nothing of records and topics. Follows Apache Kafka's ``BuiltInPartitioner`` and ``Utils.murmur2``.
"""

from typing import Final

FACTOR: Final = 0x5BD1E995
SEED: Final = 0x9747B28C
ALL_BITS: Final = 0xFFFFFFFF


def partition_for(key: bytes | None, partitions: int, turn: int) -> int:
    """Returns the partition of a key; records without a key take turns."""
    return (turn if key is None else murmur2_of(key) & 0x7FFFFFFF) % partitions


def murmur2_of(key: bytes) -> int:
    """Returns the hash of one key, as an unsigned number of 32 bits."""
    whole = len(key) & ~3
    hashed = SEED ^ len(key)
    for at in range(0, whole, 4):
        word = int.from_bytes(key[at : at + 4], "little") * FACTOR & ALL_BITS
        word ^= word >> 24
        hashed = hashed * FACTOR & ALL_BITS ^ word * FACTOR & ALL_BITS
    if whole < len(key):
        hashed = (hashed ^ int.from_bytes(key[whole:], "little")) * FACTOR & ALL_BITS
    hashed ^= hashed >> 13
    hashed = hashed * FACTOR & ALL_BITS
    return hashed ^ hashed >> 15

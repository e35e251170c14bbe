"""The orders in which Apache Kafka's answers name topics and partitions, where they come out of its hash tables.

Knows nothing of any API. No client should care; but who lays our answers beside Apache Kafka's finds them the same.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from barnabas.groups.java_hash import LOAD_FACTOR, SMALLEST_TABLE, hash_code, spread, table_order

A = TypeVar("A")
K = TypeVar("K")

TopicPartition = tuple[str, int]

SMALL_MAP = 4
"""Scala's immutable maps of so many keys are no hash tables: they keep the order in which they were filled."""

BITS_A_LEVEL = 5
HASH_BITS = 32


def by_topic_from_mutable(answers: Mapping[TopicPartition, A]) -> list[tuple[str, list[A]]]:
    """What a ``mutable.Map`` of ``TopicPartition`` comes to when it is grouped by topics.

    >>> by_topic_from_mutable({("bb", partition): partition for partition in range(8)})
    [('bb', [1, 0, 7, 6, 5, 4, 3, 2])]
    """
    topics = _grouped(answers)
    return [(topic, [answers[key] for key in mutable_order(topics[topic])]) for topic in topic_order(topics)]


def by_topic_from_immutable(answers: Mapping[TopicPartition, A]) -> list[tuple[str, list[A]]]:
    """What an immutable ``Map`` of ``TopicPartition``, filled from these in their order, comes to when it is grouped.

    >>> by_topic_from_immutable({("bb", partition): partition for partition in range(8)})
    [('bb', [0, 4, 5, 1, 6, 2, 7, 3])]
    """
    topics = _grouped(answers)
    if len(answers) > SMALL_MAP:
        topics = {topic: _in_trie({key: _improved(code_of(key)) for key in keys}) for topic, keys in topics.items()}
    return [(topic, [answers[key] for key in topics[topic]]) for topic in topic_order(topics)]


def _grouped(keys: Iterable[TopicPartition]) -> dict[str, list[TopicPartition]]:
    topics: dict[str, list[TopicPartition]] = {}
    for key in keys:
        topics.setdefault(key[0], []).append(key)
    return topics


def mutable_order(keys: Sequence[TopicPartition]) -> list[TopicPartition]:
    """The order of Scala's ``mutable.HashMap``: by slot, and in it by signed hash."""
    codes = {key: spread(code_of(key)) for key in keys}
    size = _table_size(len(codes))
    return sorted(codes, key=lambda key: (codes[key] & size - 1, _signed(codes[key])))


def concurrent_order(keys: Sequence[TopicPartition]) -> list[TopicPartition]:
    """The order of Java's ``ConcurrentHashMap`` after they were put in this order."""
    return table_order({key: code_of(key) for key in keys}, grows_when_full=True)


def hash_set_order(keys: Iterable[TopicPartition]) -> list[TopicPartition]:
    """The order of Java's ``HashSet`` after they were added in this order.

    >>> hash_set_order([("t", 7), ("t", 5), ("u", 3), ("t", 1)])
    [('t', 5), ('u', 3), ('t', 1), ('t', 7)]
    """
    return table_order({key: code_of(key) for key in keys})


def long_order(keys: Sequence[int]) -> list[int]:
    """The order of Java's ``ConcurrentHashMap`` of ``Long`` after they were put in this order.

    >>> long_order([300, 5, 17, 2**33 + 1, 2**32, 64])
    [64, 17, 4294967296, 8589934593, 5, 300]
    """
    return table_order({key: _long_code(key) for key in keys}, grows_when_full=True)


def longs_of_a_map(keys: Sequence[int]) -> list[int]:
    """The order of Java's ``HashMap`` of ``Long`` after they were put in this order: not the same, if full."""
    return table_order({key: _long_code(key) for key in keys})


def _long_code(key: int) -> int:
    """``Long.hashCode``."""
    return (key ^ key >> 32) & 0xFFFFFFFF


def topic_order(topics: Iterable[str]) -> list[str]:
    """The order of Scala's ``immutable.HashMap``, into which ``groupBy`` puts even one topic."""
    return _in_trie({topic: _improved(hash_code(topic)) for topic in topics})


def names_in_a_set(names: Sequence[str]) -> list[str]:
    """The order of Scala's immutable ``Set`` of names that was filled in this order."""
    return list(names) if len(names) <= SMALL_MAP else topic_order(names)


def names_from_mutable(names: Iterable[str]) -> list[str]:
    """The order of Scala's ``mutable.HashMap`` of names."""
    codes = {name: spread(hash_code(name) & 0xFFFFFFFF) for name in names}
    size = _table_size(len(codes))
    return sorted(codes, key=lambda name: (codes[name] & size - 1, _signed(codes[name])))


def names_of_the_image(names: Iterable[str]) -> list[str]:
    """The order of a Java ``HashSet`` made out of the image's names, which stand there by their hashes.

    Made at once of what it is to hold, such a set is larger than one that has grown.

    >>> names_of_the_image(["orders", "a", "b"])
    ['a', 'b', 'orders']
    """
    codes = sorted((hash_code(name), name) for name in names)
    size = SMALLEST_TABLE
    while size < int(len(codes) / LOAD_FACTOR) + 1:
        size *= 2
    return [name for _, name in sorted(codes, key=lambda each: spread(each[0] & 0xFFFFFFFF) & size - 1)]


def copied_map_order(codes: Mapping[K, int]) -> list[K]:
    """The order of Scala's immutable ``Map`` that was filled out of Java's ``HashMap``: keys with their hashes.

    >>> copied_map_order({7: 7, 1: 1}), copied_map_order({number: 31 * number for number in range(1, 6)})
    ([1, 7], [3, 4, 5, 1, 2])
    """
    keys = table_order(codes)
    return keys if len(keys) <= SMALL_MAP else _in_trie({key: _improved(codes[key]) for key in keys})


def _in_trie(codes: Mapping[K, int], shift: int = 0) -> list[K]:
    """A trie over five bits of the hash at a time; a node gives what hangs on it alone first, then its branches."""
    if shift > HASH_BITS or len(codes) < 2:
        return list(codes)
    branches: dict[int, dict[K, int]] = {}
    for key, code in codes.items():
        branches.setdefault(code >> shift & (1 << BITS_A_LEVEL) - 1, {})[key] = code
    in_order = [branches[bits] for bits in sorted(branches)]
    alone = [key for branch in in_order if len(branch) == 1 for key in branch]
    return alone + [key for branch in in_order if len(branch) > 1 for key in _in_trie(branch, shift + BITS_A_LEVEL)]


def _table_size(count: int) -> int:
    """Slots of a hash table that had so many keys put into it, one after the other."""
    size = SMALLEST_TABLE
    while count >= size * LOAD_FACTOR:
        size *= 2
    return size


def code_of(key: TopicPartition) -> int:
    """``TopicPartition.hashCode``, as an unsigned int32."""
    topic, index = key
    return (31 + index) * 31 + hash_code(topic) & 0xFFFFFFFF


def _signed(code: int) -> int:
    return code - ((code & 0x80000000) << 1)


def _improved(code: int) -> int:
    """``scala.collection.Hashing.improve``."""
    code = code + ~(code << 9) & 0xFFFFFFFF
    code ^= code >> 14
    code = code + (code << 4) & 0xFFFFFFFF
    return code ^ code >> 10

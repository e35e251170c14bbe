"""Assigns partitions to columns of records as Java's producer does.

Knows nothing of topics and connections: a topic is its number of partitions here.
"""

import random
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from barnabas.columnar.encoding import binary
from barnabas.records import partitioner
from barnabas.records.partitioner import murmur2_of

Integers = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint32]

SEED: Final = np.uint32(partitioner.SEED)
FACTOR: Final = np.uint32(partitioner.FACTOR)
FEW: Final = 16  # keys; hashing so few one by one is as fast as in columns


class NoSuchPartition(Exception):
    """The partition of a record does not exist."""


class StickyPartitions:
    """Assigns partitions to records without a key: a number of bytes to one partition, then to the next (KIP-480,
    KIP-794).

    Runs of records make large batches. The first partition is random, so that many writers, or many small writes, fill
    all partitions evenly.
    """

    def __init__(self, run_bytes: int, chance: random.Random) -> None:
        self._run_bytes = max(run_bytes, 1)
        self._turn = chance.randrange(1 << 30)
        self._written = 0

    def next(self, sizes: Integers, count: int) -> Integers:
        """Returns the partitions, out of `count`, of records of these sizes in bytes."""
        if not len(sizes):
            return np.zeros(0, np.int64)
        ends = np.cumsum(sizes) + self._written
        # The record that completes the bytes of a run belongs to the run.
        turns = self._turn + (ends - sizes) // self._run_bytes
        self._turn = self._turn + int(ends[-1]) // self._run_bytes
        self._written = int(ends[-1]) % self._run_bytes
        partitions: Integers = turns % count
        return partitions


def partitions_of(
    key: pa.Array | None,
    sizes: Integers,
    count: int,
    *,
    sticky: StickyPartitions,
    explicit: pa.Array | None = None,
    topic: str = "",
) -> Integers:
    """Returns the partition of each record of a topic with `count` partitions.

    The partition is the one in `explicit`, or follows from the hash of the key, or is the next of `sticky`.

    :param sizes: the sizes of the records in bytes.
    :param explicit: partitions as integers, or null.
    :raises NoSuchPartition: the topic does not have an explicit partition.
    """
    partitions = np.full(len(sizes), -1, np.int64)
    open_rows = np.ones(len(sizes), bool)
    if explicit is not None and explicit.null_count < len(explicit):
        open_rows = explicit.is_null().to_numpy(zero_copy_only=False)
        partitions = explicit.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        wrong = np.flatnonzero(~open_rows & ((partitions < 0) | (partitions >= count)))
        if len(wrong):
            raise NoSuchPartition(
                f"a row names partition {partitions[wrong[0]]} of topic {topic!r}, which has {_range(count)}"
            )
    keys = binary(key)
    if keys is not None:
        hashed = open_rows & keys.is_valid().to_numpy(zero_copy_only=False)
        if hashed.any():
            rows = np.flatnonzero(hashed)
            some = keys if len(rows) == len(keys) else keys.take(pa.array(rows))
            partitions[rows] = (murmur2(some) & np.uint32(0x7FFFFFFF)).astype(np.int64) % count
            open_rows &= ~hashed
    rows = np.flatnonzero(open_rows)
    partitions[rows] = sticky.next(sizes[rows], count)
    return partitions


def murmur2(keys: pa.BinaryArray) -> Hashes:
    """Returns the hash of each key as Java's ``Utils.murmur2`` does, but unsigned. No key may be null."""
    count = len(keys)
    offsets = np.frombuffer(keys.buffers()[1], np.int32, count + 1, keys.offset * 4).astype(np.int64)
    starts, lengths = offsets[:-1], np.diff(offsets)
    buffer = keys.buffers()[2]
    size = 0 if buffer is None else buffer.size
    # Three more bytes than the keys have, so that a word can be read at every byte.
    data = np.zeros(int(offsets[-1]) + 4, np.uint8)
    if size:
        data[: int(offsets[-1])] = np.frombuffer(buffer, np.uint8, int(offsets[-1]))
    words = np.ndarray((len(data) - 3,), np.dtype("<u4"), data.data, strides=(1,))
    hashes: Hashes = SEED ^ lengths.astype(np.uint32)
    whole = lengths >> 2
    # Sorted by length, longest first: the keys that have an n-th word are a prefix, which gets shorter.
    order = np.argsort(-whole, kind="stable")
    active = np.searchsorted(-whole[order], -np.arange(int(whole.max(initial=0))), side="left")
    left_over: npt.NDArray[np.int64] = order[:0]
    for index, alive in enumerate(active):
        rows = order[:alive]
        if alive < FEW and len(active) - index > FEW:
            left_over = rows
            break
        word = words[starts[rows] + 4 * index] * FACTOR
        word ^= word >> np.uint32(24)
        hashes[rows] = hashes[rows] * FACTOR ^ word * FACTOR
    hashes = _finished(hashes, words, starts + 4 * whole, lengths & 3)
    for row in left_over:
        hashes[row] = murmur2_of(data[starts[row] : starts[row] + lengths[row]].tobytes())
    return hashes


def _finished(hashes: Hashes, words: Hashes, tails: Integers, rest: Integers) -> Hashes:
    """Mixes in the up to three bytes after the last whole word, and finishes the hashes."""
    rows = np.flatnonzero(rest)
    if len(rows):
        mask = ((np.uint64(1) << (rest[rows] * 8).astype(np.uint64)) - np.uint64(1)).astype(np.uint32)
        hashes[rows] = (hashes[rows] ^ words[tails[rows]] & mask) * FACTOR
    hashes ^= hashes >> np.uint32(13)
    hashes *= FACTOR
    hashes ^= hashes >> np.uint32(15)
    return hashes


def _range(count: int) -> str:
    return "partition 0 only" if count == 1 else f"partitions 0 to {count - 1}"

"""Partitions as Java's producer, and compatible ones, assign them."""

import random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2 as theirs

from barnabas.columnar.partitioning import NoSuchPartition, StickyPartitions, murmur2, partitions_of
from barnabas.records.partitioner import murmur2_of

JAVAS = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}
"""From the test of Apache Kafka's ``Utils.murmur2``."""


def sticky(run_bytes: int = 1000, seed: int = 1) -> StickyPartitions:
    return StickyPartitions(run_bytes, random.Random(seed))


def test_hashes_are_java_s() -> None:
    assert murmur2(pa.array(list(JAVAS))).astype(np.int32).tolist() == list(JAVAS.values())
    assert [murmur2_of(key) - (murmur2_of(key) >> 31 << 32) for key in JAVAS] == list(JAVAS.values())


@settings(deadline=None)
@given(st.lists(st.binary(max_size=30) | st.binary(min_size=200, max_size=300), max_size=60), st.integers(0, 3))
def test_hashes_are_a_clients(keys: list[bytes], skipped: int) -> None:
    hashes = murmur2(pa.array(keys, pa.binary()).slice(skipped))
    assert hashes.tolist() == [theirs(key) & 0xFFFFFFFF for key in keys[skipped:]]


def test_a_few_keys_far_longer_than_the_others() -> None:
    keys = [b"k%d" % number for number in range(40)] + [random.Random(2).randbytes(5_003)]
    assert murmur2(pa.array(keys)).tolist() == [theirs(key) & 0xFFFFFFFF for key in keys]


def test_a_key_s_partition_is_java_s() -> None:
    """Java's hash becomes positive by a mask, not by ``abs``."""
    chosen = partitions_of(pa.array(list(JAVAS)), np.ones(len(JAVAS), np.int64), 7, sticky=sticky())
    assert chosen.tolist() == [(hashed & 0x7FFFFFFF) % 7 for hashed in JAVAS.values()]


def test_a_partition_that_is_named_wins_over_the_key() -> None:
    keys = pa.array([b"21", b"21", None, None, b""])
    named = pa.array([3, None, 2, None, None], pa.int32())
    chosen = partitions_of(keys, np.full(5, 10), 4, sticky=sticky(), explicit=named)
    by_hash = (JAVAS[b"21"] & 0x7FFFFFFF) % 4
    assert chosen.tolist()[:3] == [3, by_hash, 2]
    assert chosen[4] == (theirs(b"") & 0x7FFFFFFF) % 4
    assert 0 <= chosen[3] < 4


@pytest.mark.parametrize("wrong", [-1, 4])
def test_a_partition_that_is_not_there_is_named(wrong: int) -> None:
    named = pa.array([0, wrong], pa.int32())
    with pytest.raises(NoSuchPartition, match=f"partition {wrong} of topic 'orders', which has partitions 0 to 3"):
        partitions_of(None, np.ones(2, np.int64), 4, sticky=sticky(), explicit=named, topic="orders")


def test_records_without_a_key_stay_together_and_go_round() -> None:
    chooser = sticky(run_bytes=1_000)
    chosen = np.concatenate([partitions_of(None, np.full(35, 100), 4, sticky=chooser) for _ in range(8)])
    changes = np.flatnonzero(np.diff(chosen))
    assert np.diff(changes).tolist() == [10] * (len(changes) - 1)
    assert np.bincount(chosen).tolist() == [70] * 4
    assert set(np.diff(chosen)[changes] % 4) == {1}


def test_writers_begin_apart() -> None:
    firsts = {int(partitions_of(None, np.ones(1, np.int64), 50, sticky=sticky(seed=n))[0]) for n in range(20)}
    assert len(firsts) > 10

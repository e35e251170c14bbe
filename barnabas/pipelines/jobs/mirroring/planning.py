"""Computes the ranges that are mirrored next, and distributes them among tasks.

Knows nothing of clusters and of Spark: offsets are passed in.
"""

import heapq
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from barnabas.pipelines.client import TopicPartition
from barnabas.pipelines.offsets import StreamOffset, rate_limited


class Range(NamedTuple):
    """A range of offsets of a source partition, which a task mirrors."""

    topic: str
    partition: int
    start: int
    end: int
    topic_id: str | None
    target: str  #: the topic in the target
    pieces: int  #: the known number of mirrored pieces, in case the marker has expired


def limited(
    start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int], most: int | None
) -> dict[TopicPartition, int]:
    """Returns the end offsets of a batch of at most about `most` offsets, or of all offsets if `most` is None."""
    return dict(end) if most is None else rate_limited(most, start, end)


def shared_out(ranges: Iterable[Range], tasks: int) -> list[list[Range]]:
    """Distributes the ranges among at most `tasks` tasks with about equally many offsets, the largest first."""
    heap: list[tuple[int, int]] = [(0, number) for number in range(max(1, tasks))]
    shares: list[list[Range]] = [[] for _ in heap]
    for each in sorted(ranges, key=lambda found: (found.start - found.end, found)):
        load, number = heapq.heappop(heap)
        shares[number].append(each)
        heapq.heappush(heap, (load + each.end - each.start, number))
    return [share for share in shares if share]


def ranges(
    start: StreamOffset,
    end: StreamOffset,
    begin: Mapping[TopicPartition, int],
    targets: Mapping[str, str],
    pieces: Mapping[TopicPartition, int],
) -> list[Range]:
    """Returns the ranges between two positions.

    :param begin: the start offsets of partitions that `start` lacks, or has from a deleted topic; for other partitions
        the offset up to which the target is known to be complete.
    """
    fresh = start.recreated(end)
    found = []
    for key, stop in sorted(end.at.items()):
        topic, partition = key
        known = None if topic in fresh else start.at.get(key)
        first = max(known, begin.get(key, known)) if known is not None else begin.get(key, 0)
        if first < stop:
            found.append(Range(topic, partition, first, stop, end.ids.get(topic), targets[topic], pieces.get(key, 0)))
    return found

"""What of the source is mirrored next, and how it is shared out among tasks.

Knows nothing of clusters and of Spark: offsets come in.
"""

import heapq
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from barnabas.pipelines.client import TopicPartition
from barnabas.pipelines.offsets import StreamOffset, rate_limited


class Range(NamedTuple):
    """A stretch of a partition of the source that a task mirrors."""

    topic: str
    partition: int
    start: int
    end: int
    topic_id: str | None
    target: str  #: the topic at the target
    pieces: int  #: how many pieces of it the target is known to have, should its marker be gone


def limited(
    start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int], most: int | None
) -> dict[TopicPartition, int]:
    """How far to go with at most about `most` offsets in all; None for as far as there is something."""
    return dict(end) if most is None else rate_limited(most, start, end)


def shared_out(ranges: Iterable[Range], tasks: int) -> list[list[Range]]:
    """The ranges in at most so many tasks of about the same number of offsets; largest first within a task."""
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
    """What lies between two positions.

    `begin` is where partitions begin that `start` lacks, or has of an older topic; and up to where the target is known
    to have them already.
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

"""What is known of offsets, and what is new, made into one list in which no offset is twice.

Knows nothing of where either comes from. The answer is that of Kafka's ``PersisterStateBatchCombiner``, which is not
always the shortest: neighbours that say the same may stay apart where one of them came out of a conflict.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heappush
from itertools import pairwise
from operator import attrgetter

from barnabas.share.messages import UNKNOWN_START_OFFSET, StateBatch

Ranked = tuple[int, int, int, int]
"""First and last offset, delivery count, delivery state: a batch in the order in which Kafka sorts them."""

PATIENCE, AT_LEAST = 16, 10_000
"""Steps for each batch, and for all. What a leader writes takes one or two each; what is tangled to do harm takes as
many as there are batches."""


class Tangled(ValueError):
    """So many batches overlap each other that nobody would wait for what they come to."""


FIRST_OFFSET, LAST_OFFSET = attrgetter("first_offset"), attrgetter("last_offset")


def combine(batches: Iterable[StateBatch], start_offset: int) -> tuple[StateBatch, ...]:
    """The batches in order, without what is below ``start_offset`` (-1: all of it counts).

    Where two say something else of an offset, the one that knows of more deliveries is right, and of as many the one
    whose state is the later. A batch that ends before it begins says nothing.

    :raises Tangled: there is no end to it; not where the batches are two lists in which no offset is twice

    >>> combine([StateBatch(0, 9, 0, 1), StateBatch(4, 5, 2, 1), StateBatch(10, 12, 0, 1)], 2)  # doctest: +ELLIPSIS
    (StateBatch(first_offset=2, last_offset=3, ...), StateBatch(first_offset=4, ...), StateBatch(first_offset=6, ...))
    """
    left = [(first, last, count, state) for first, last, state, count in batches if first <= last]
    if start_offset != UNKNOWN_START_OFFSET:
        left = [(max(each[0], start_offset), *each[1:]) for each in left if each[1] >= start_offset]
    left = list(dict.fromkeys(left))
    steps = max(PATIENCE * len(left), AT_LEAST)
    heapify(left)
    done: list[Ranked] = []
    before = heappop(left) if left else None
    while before is not None:
        if not left:
            done.append(before)
            break
        after = heappop(left)
        agree = before[2:] == after[2:]
        if after[0] > before[1] + agree:
            done.append(before)
            before = after
            continue
        steps -= 1
        if steps < 0:
            raise Tangled
        for piece in _united(before, after) if agree else _parted(before, after):
            heappush(left, piece)
        before = heappop(left)
        while left and left[0] == before:
            heappop(left)
    return tuple(StateBatch(first, last, state, count) for first, last, count, state in done)


def add(
    known: tuple[StateBatch, ...], batches: Sequence[StateBatch], start_offset: int
) -> tuple[tuple[StateBatch, ...], bool]:
    """What :func:`combine` makes of both, and whether that is settled, at a cost of what is near the new batches.

    ``known`` is settled: it came from here or from :func:`combine`, and no neighbours in it say the same.
    """
    if start_offset != UNKNOWN_START_OFFSET:
        known = known[bisect_left(known, start_offset, key=LAST_OFFSET) :]
        if known and known[0].first_offset < start_offset:
            known = (known[0]._replace(first_offset=start_offset), *known[1:])
        batches = [each for each in batches if each.last_offset >= start_offset]
    if not batches:
        return known, True
    # What touches a new batch may become one with it; and none that does not, as it touches nobody who says the same.
    lowest = max(min(each.first_offset for each in batches), start_offset)
    highest = max(each.last_offset for each in batches)
    begin = bisect_left(known, lowest - 1, key=LAST_OFFSET)
    end = bisect_right(known, highest + 1, key=FIRST_OFFSET)
    near = combine([*known[begin:end], *batches], start_offset)
    return known[:begin] + near + known[end:], is_settled(near)


def is_settled(batches: Sequence[StateBatch]) -> bool:
    """Whether no two that touch say the same."""
    return not any(before[1] + 1 == after[0] and before[2:] == after[2:] for before, after in pairwise(batches))


def _united(before: Ranked, after: Ranked) -> list[Ranked]:
    return [(before[0], max(before[1], after[1]), *before[2:])]


def _parted(before: Ranked, after: Ranked) -> list[Ranked]:
    """Of two that overlap and do not agree: the one that is right, whole, and what the other says besides."""
    if after[2:] < before[2:]:
        beyond = (max(after[0], before[1] + 1), *after[1:])
        return [before, beyond] if beyond[0] <= beyond[1] else [before]
    pieces = [after]
    if before[0] < after[0]:
        pieces.append((before[0], after[0] - 1, *before[2:]))
    if after[1] < before[1]:
        pieces.append((after[1] + 1, before[1], *before[2:]))
    return pieces

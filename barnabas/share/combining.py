"""Merges state batches into one list in which no offset occurs twice.

Knows nothing of where the batches come from. The result is that of Kafka's ``PersisterStateBatchCombiner``, which is
not always the shortest: adjacent batches with the same state may stay apart if one of them comes out of a conflict.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heappush
from itertools import pairwise
from operator import attrgetter

from barnabas.share.messages import UNKNOWN_START_OFFSET, StateBatch

Ranked = tuple[int, int, int, int]
"""A batch in Kafka's sort order: first offset, last offset, delivery count, delivery state."""

STEPS_PER_BATCH, MIN_STEPS = 16, 10_000
"""Limits of the steps that merging may take. A leader's writes take one or two steps for each batch. Batches that
overlap each other on purpose take as many steps for each as there are batches."""


class TooManySteps(ValueError):
    """Merging takes too many steps, because too many batches overlap each other."""


FIRST_OFFSET, LAST_OFFSET = attrgetter("first_offset"), attrgetter("last_offset")


def combine(batches: Iterable[StateBatch], start_offset: int) -> tuple[StateBatch, ...]:
    """Returns the batches in offset order, without offsets below ``start_offset`` (-1: no limit).

    Where two batches have the same offset, the higher delivery count wins, then the higher state. A batch that ends
    before it begins is ignored.

    :raises TooManySteps: merging takes too many steps, which never happens with two lists that are free of overlaps

    >>> combine([StateBatch(0, 9, 0, 1), StateBatch(4, 5, 2, 1), StateBatch(10, 12, 0, 1)], 2)  # doctest: +ELLIPSIS
    (StateBatch(first_offset=2, last_offset=3, ...), StateBatch(first_offset=4, ...), StateBatch(first_offset=6, ...))
    """
    left = [(first, last, count, state) for first, last, state, count in batches if first <= last]
    if start_offset != UNKNOWN_START_OFFSET:
        left = [(max(each[0], start_offset), *each[1:]) for each in left if each[1] >= start_offset]
    left = list(dict.fromkeys(left))
    steps = max(STEPS_PER_BATCH * len(left), MIN_STEPS)
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
            raise TooManySteps
        for piece in _merge(before, after) if agree else _split(before, after):
            heappush(left, piece)
        before = heappop(left)
        while left and left[0] == before:
            heappop(left)
    return tuple(StateBatch(first, last, state, count) for first, last, count, state in done)


def add(
    known: tuple[StateBatch, ...], batches: Sequence[StateBatch], start_offset: int
) -> tuple[tuple[StateBatch, ...], bool]:
    """Merges new batches into merged ones. The cost depends on the batches near the new ones alone.

    Returns what :func:`combine` returns for both, and whether that is settled.

    :param known: a settled result of this function or of :func:`combine`
    """
    if start_offset != UNKNOWN_START_OFFSET:
        known = known[bisect_left(known, start_offset, key=LAST_OFFSET) :]
        if known and known[0].first_offset < start_offset:
            known = (known[0]._replace(first_offset=start_offset), *known[1:])
        batches = [each for each in batches if each.last_offset >= start_offset]
    if not batches:
        return known, True
    # A new batch merges only with batches that it touches. Those do not touch others with the same state.
    lowest = max(min(each.first_offset for each in batches), start_offset)
    highest = max(each.last_offset for each in batches)
    begin = bisect_left(known, lowest - 1, key=LAST_OFFSET)
    end = bisect_right(known, highest + 1, key=FIRST_OFFSET)
    near = combine([*known[begin:end], *batches], start_offset)
    return known[:begin] + near + known[end:], is_settled(near)


def is_settled(batches: Sequence[StateBatch]) -> bool:
    """Returns whether no two adjacent batches have the same state and delivery count."""
    return not any(before[1] + 1 == after[0] and before[2:] == after[2:] for before, after in pairwise(batches))


def _merge(before: Ranked, after: Ranked) -> list[Ranked]:
    return [(before[0], max(before[1], after[1]), *before[2:])]


def _split(before: Ranked, after: Ranked) -> list[Ranked]:
    """Splits two batches that overlap and differ: the one that wins stays whole, the other loses the common offsets."""
    if after[2:] < before[2:]:
        beyond = (max(after[0], before[1] + 1), *after[1:])
        return [before, beyond] if beyond[0] <= beyond[1] else [before]
    pieces = [after]
    if before[0] < after[0]:
        pieces.append((before[0], after[0] - 1, *before[2:]))
    if after[1] < before[1]:
        pieces.append((after[1] + 1, before[1], *before[2:]))
    return pieces

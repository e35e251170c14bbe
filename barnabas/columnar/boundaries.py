"""Finds the positions of the records of many batches, with numpy instead of a loop in Python.

Knows nothing of records except their length, and nothing of batches except their position.

A record starts with its length, so each record is found only after the one before. As a loop in Python that takes 0.15
us a record, more than all other work on a record. But many such walks can advance in parallel, each step of all walks
being one operation of numpy. Each batch is one walk. A batch of thousands of records is walked from several positions,
which are guesses of where a record starts. A wrong guess only costs time: a walk is valid if it arrives exactly at the
start of the next one, and the first walk starts at the start of the batch. Batches with invalid walks are walked by the
loop.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from barnabas.columnar.varints import Bytes, Numbers, Places, read_varints, read_varlongs
from barnabas.errors import InvalidRecord
from barnabas.records.varint import read_varint

SEGMENT: Final = 48  # the number of records between two guesses
COMPANY: Final = 48  # walks; this many or fewer are continued by the loop, as steps of numpy do not pay off
BLOCK: Final = 8  # the number of steps between two checks for walks that have arrived
FEW: Final = 400  # records; this many or fewer are walked by the loop
WIDE: Final = 4096  # bytes; if records are longer on average, guessing costs more than the loop
WINDOW: Final = 2  # records of average length that are searched after a guess
MIN_RECORD: Final = 7  # bytes, including its length
NOWHERE: Final = 1 << 40  # beyond the end of any fetch

Flags = npt.NDArray[np.bool_]


def _jumps() -> npt.NDArray[np.int64]:
    """Returns, by the first two bytes of a record, the distance to the next one; 0 if the length has more than two
    bytes.
    """
    low, high = np.meshgrid(np.arange(256), np.arange(256))  # the index is low | high << 8
    one = np.where(low & 1, 0, (low >> 1) + 1)
    raw = low & 0x7F | high << 7
    two = np.where((raw & 1) | (high > 0x7F), 0, (raw >> 1) + 2)
    return np.where(low < 0x80, one, two).astype(np.int64).ravel()


_JUMPS: Final = _jumps()


def record_starts(data: bytes | memoryview, array: Bytes, lows: Places, highs: Places, counts: Places) -> Places:
    """Returns the positions of the records in batches whose bodies are between `lows` and `highs` in `data`, in order.

    :param array: `data` as a numpy array.
    :param counts: the number of records of each batch, at least one.
    :raises InvalidRecord: a batch does not have the number of records that it says, or they do not fill it.
    """
    if int(counts.sum()) <= FEW:
        return _walked(data, lows, highs, counts)
    quick = np.flatnonzero((counts <= SEGMENT * 2) | (highs - lows <= counts * WIDE))
    proven = np.zeros(len(counts), dtype=np.bool_)
    starts, proven[quick] = _side_by_side(data, array, lows[quick], highs[quick], counts[quick])
    first, last = np.searchsorted(starts, lows), np.searchsorted(starts, highs)
    proven &= last - first == counts
    if proven.all():
        return starts
    rest = ~proven
    keep = np.ones(len(starts), dtype=np.bool_)
    for begin, end in zip(first[rest].tolist(), last[rest].tolist(), strict=True):
        keep[begin:end] = False
    return np.sort(np.concatenate((starts[keep], _walked(data, lows[rest], highs[rest], counts[rest]))))


def _walked(data: bytes | memoryview, lows: Places, highs: Places, counts: Places) -> Places:
    """Does the same as :func:`record_starts` by the loop."""
    every: list[int] = []
    for low, high, count in zip(lows.tolist(), highs.tolist(), counts.tolist(), strict=True):
        starts, end = _to(data, low, high)
        if end != high or len(starts) != count:
            raise InvalidRecord(f"A batch does not consist of {count} records, as its header says.")
        every += starts
    return np.array(every, dtype=np.int64)


def _to(data: bytes | memoryview, at: int, stop: int) -> tuple[list[int], int]:
    """Returns the starts between `at` and `stop`, and the end of the last record: NOWHERE if a length is invalid."""
    starts: list[int] = []
    add = starts.append
    try:
        while at < stop:
            add(at)
            low = data[at]
            if low & 1:
                return starts, NOWHERE
            if low < 0x80:
                at += (low >> 1) + 1
            elif (high := data[at + 1]) < 0x80:
                at += ((low & 0x7F | high << 7) >> 1) + 2
            else:
                at = _next_of_long(data, at)
    except IndexError:
        return starts, NOWHERE
    return starts, at


def _next_of_long(data: bytes | memoryview, at: int) -> int:
    """Returns the end of the record at `at`, whose length has more than two bytes: NOWHERE if the length is invalid."""
    try:
        size, end = read_varint(bytes(data[at : at + 5]), 0)
    except (IndexError, InvalidRecord):
        return NOWHERE
    return NOWHERE if size < 0 else at + end + size


def _side_by_side(
    data: bytes | memoryview, array: Bytes, lows: Places, highs: Places, counts: Places
) -> tuple[Places, Flags]:
    """Returns the starts, and which batches are valid; the starts of the others may be wrong."""
    places, owners = _beginnings(data, array, lows, highs, counts)
    stops = np.append(places[1:], highs[-1:])
    last_of_batch = np.append(owners[1:] != owners[:-1], np.ones(len(owners[:1]), dtype=np.bool_))
    stops[last_of_batch] = highs[owners[last_of_batch]]
    proven = np.ones(len(counts), dtype=np.bool_)
    walked = np.zeros(len(places), dtype=np.int64)
    going = np.arange(len(places))
    blocks = []
    while going.size > COMPANY:
        rows = np.empty((BLOCK + 1, going.size), dtype=np.int64)
        rows[0] = places
        for step in range(BLOCK):
            _step(array, rows[step], rows[step + 1])
        ahead = rows < stops
        stuck = np.flatnonzero((rows[-1] == rows[-2]) & ahead[-1])
        if stuck.size:
            ahead[1:] &= rows[1:] != rows[:-1]
            rows[-1, stuck] = [_next_of_long(data, at) for at in rows[-1, stuck].tolist()]
        blocks.append((going, walked[going], rows[:-1], ahead[:-1]))
        walked[going] += ahead[:-1].sum(axis=0)
        on_stop, on = (rows == stops).any(axis=0), rows[-1] < stops
        proven[owners[going[~on & ~on_stop]]] = False
        going, places, stops = going[on], rows[-1, on], stops[on]
    tails = {}
    for who, place, stop in zip(going.tolist(), places.tolist(), stops.tolist(), strict=True):
        tails[who], end = _to(data, place, stop)
        if end != stop:
            proven[owners[who]] = False
    return _in_order(walked, blocks, tails), proven


def _in_order(
    walked: Numbers, blocks: list[tuple[Places, Numbers, Places, Flags]], tails: dict[int, list[int]]
) -> Places:
    """Returns the positions of all blocks in the order of the walks.

    :param walked: the number of valid steps of each walk.
    :param blocks: for each block the walks in it, the number of their steps before it, the positions, and whether they
        are valid. The valid steps of a walk are the first ones of the block.
    :param tails: the positions that the loop has found after the blocks, by walk.
    """
    sizes = walked.copy()
    for who, tail in tails.items():
        sizes[who] += len(tail)
    begin = np.cumsum(sizes) - sizes
    starts = np.empty(int(sizes.sum()), dtype=np.int64)
    steps = np.arange(BLOCK)[:, None]
    for who_walked, done, rows, counting in blocks:
        targets = (begin[who_walked] + done) + steps
        if counting.all():
            starts[targets] = rows
        else:
            starts[targets[counting]] = rows[counting]
    for who, tail in tails.items():
        first = int(begin[who] + walked[who])
        starts[first : first + len(tail)] = tail
    return starts


def _step(array: Bytes, places: Places, nexts: Places) -> None:
    pair = array.take(places + 1, mode="clip").astype(np.int64)
    pair <<= 8
    pair |= array.take(places, mode="clip")
    np.add(places, _JUMPS.take(pair), out=nexts)


def _beginnings(
    data: bytes | memoryview, array: Bytes, lows: Places, highs: Places, counts: Places
) -> tuple[Places, Places]:
    """Returns the start positions of walks, and their batches: the first byte of each batch, and guesses in large
    batches.
    """
    own = np.arange(len(counts))
    big = np.flatnonzero(counts > SEGMENT * 2)
    if not big.size:
        return lows, own
    strides = (highs[big] - lows[big]) * SEGMENT // counts[big]
    windows = (highs[big] - lows[big]) * WINDOW // counts[big]
    window = int(windows.max()) + 16
    many = np.maximum((highs[big] - window - lows[big]) // strides, 0)
    owners = np.repeat(big, many)
    nth = np.arange(len(owners)) - np.repeat(np.cumsum(many) - many, many) + 1
    guesses = lows[owners] + nth * np.repeat(strides, many)
    places, which = _likely_records(data, array, guesses, highs[owners], window)
    places, owners = np.concatenate((lows, places)), np.concatenate((own, owners[which]))
    order = np.argsort(places, kind="stable")
    return places[order], owners[order]


def _likely_records(
    data: bytes | memoryview, array: Bytes, guesses: Places, ends: Places, window: int
) -> tuple[Places, Places]:
    """Returns the first position within `window` bytes of each guess that looks like three consecutive records.

    A record's attributes are 0, and its offset delta is one more than that of the record before it.
    """
    views = b"".join([data[guess : guess + window] for guess in guesses.tolist()])
    zeros = np.flatnonzero(np.frombuffer(views, dtype=np.uint8) == 0)
    which = zeros // window
    attributes = zeros + (guesses - np.arange(len(guesses)) * window)[which]
    starts = attributes - 1 - (array[attributes - 2] > 0x7F)
    offsets = None
    at = starts
    for _ in range(3):
        nexts = np.empty_like(at)
        _step(array, at, nexts)
        body = at + 1 + (array.take(at, mode="clip") > 0x7F)
        likely = (nexts - body >= MIN_RECORD - 1) & (nexts < ends[which])
        likely &= array.take(body, mode="clip") == 0
        which, starts, body, nexts = which[likely], starts[likely], body[likely], nexts[likely]
        offsets, previous = _offset_deltas(array, body), None if offsets is None else offsets[likely]
        if previous is not None:
            follows = offsets == previous + 1
            which, starts, nexts, offsets = which[follows], starts[follows], nexts[follows], offsets[follows]
        at = nexts
    first = np.append(which[:1] >= 0, which[1:] != which[:-1])
    return starts[first], which[first]


def _offset_deltas(array: Bytes, attributes: Places) -> Numbers:
    """Returns the offset deltas of the records with attributes at these positions, if these are records."""
    _, at = read_varlongs(array, attributes + 1, strict=False)
    return read_varints(array, at, strict=False)[0]

"""Going through a ``.log`` file batch by batch, CRCs included, as fast as Python can.

Knows nothing of what the batches should be, one after the other. What cannot be a batch is told, and skipped if there
is a way on: an index knows where batches start.
"""

import os
import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from struct import Struct
from typing import Final, NamedTuple

from barnabas.records.checksum import crc32c

HEADER: Final = Struct(">qiibIhiqqqhii")
HEADER_SIZE: Final = HEADER.size
OVERHEAD: Final = 12
PIECE: Final = 4 << 20  # bytes that are read at a time

_OLD: Final = Struct(">qiIbb")  # offset, size, CRC-32, magic, attributes
_OLD_TIMESTAMP: Final = Struct(">q")
_OLD_MIN: Final = {0: 14, 1: 22}

Tell = Callable[[str, int, int | None, str], object]
"""Told of damage: its kind, position, offset if one is known, and words."""


class Batch(NamedTuple):
    """A batch that was found. Of message sets (magic 0 and 1), whose header has less in it, ``header`` is None."""

    position: int
    size: int
    base_offset: int  #: -1: not known, of a compressed message set
    last_offset: int
    leader_epoch: int
    max_timestamp: int
    producer_id: int
    header: tuple[int, ...] | None
    data: memoryview  #: only good until the next one is asked for


def scan(path: str, ways_on: Sequence[int], tell: Tell, progress: Callable[[int], object]) -> Iterator[Batch]:
    """The batches in the file. ``ways_on``: where batches start as far as somebody knows, ascending."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield from _scan(fd, os.fstat(fd).st_size, ways_on, tell, progress)
    finally:
        os.close(fd)


def _scan(fd: int, size: int, ways_on: Sequence[int], tell: Tell, progress: Callable[[int], object]) -> Iterator[Batch]:
    unpack = HEADER.unpack_from
    piece, start, there = memoryview(b""), 0, 0
    position = 0
    while position < size:
        at = position - start
        rest = there - at
        if rest >= HEADER_SIZE:
            header = unpack(piece, at)
            length = OVERHEAD + header[1]
            if header[3] == 2 and HEADER_SIZE <= length <= rest:
                data = piece[at : at + length]
                crc = crc32c(data[21:])
                if crc != header[4]:
                    words = f"the batch's CRC is {header[4]}, and that of its bytes is {crc}"
                    tell("crc", position, header[0], words)
                base = header[0]
                yield Batch(position, length, base, base + header[6], header[2], header[8], header[9], header, data)
                position += length
                continue
        wanted = _wanted(piece, at, rest, size - position)
        if wanted > rest:
            progress(position - start)
            piece, start = memoryview(os.pread(fd, max(wanted, PIECE), position)), position
            there = len(piece)
            if there >= min(wanted, size - position):
                continue
        batch = _old_batch(piece, position - start, position, tell)
        if batch is not None:
            yield batch
            position += batch.size
            continue
        onward = _way_on(fd, position, size, ways_on)
        _tell_damage(fd, piece, position - start, position, size, onward, tell)
        position, start, there = onward, onward, 0
        piece = memoryview(b"")
    progress(size - start)


def _wanted(piece: memoryview, at: int, rest: int, left: int) -> int:
    """How many bytes have to be there to see what is ``at`` that place; no more than the file has left."""
    if rest < min(HEADER_SIZE, left):
        return min(HEADER_SIZE, left)
    if rest >= OVERHEAD:
        length: int = OVERHEAD + int.from_bytes(piece[at + 8 : at + 12], signed=True)
        if rest < length <= left:
            return length
    return 0


def _old_batch(piece: memoryview, at: int, position: int, tell: Tell) -> Batch | None:
    """The message of magic 0 or 1 that is ``at`` that place, if there is one."""
    rest = len(piece) - at
    if rest < _OLD.size:
        return None
    offset, length, crc, magic, attributes = _OLD.unpack_from(piece, at)
    if magic not in _OLD_MIN or not _OLD_MIN[magic] <= length <= rest - OVERHEAD:
        return None
    data = piece[at : at + OVERHEAD + length]
    actual = zlib.crc32(data[16:])
    if actual != crc:
        tell("crc", position, offset, f"the message's CRC is {crc}, and that of its bytes is {actual}")
    timestamp = _OLD_TIMESTAMP.unpack_from(data, 18)[0] if magic else -1
    base = -1 if attributes & 7 else offset
    return Batch(position, len(data), base, offset, -1, timestamp, -1, None, data)


def _way_on(fd: int, position: int, size: int, ways_on: Sequence[int]) -> int:
    """The first place behind ``position`` at which there is a good batch, as far as is known; else the file's end."""
    for place in ways_on[bisect_right(ways_on, position) :]:
        head = os.pread(fd, HEADER_SIZE, place)
        if len(head) == HEADER_SIZE:
            header = HEADER.unpack(head)
            length = OVERHEAD + header[1]
            if header[3] == 2 and HEADER_SIZE <= length <= size - place:
                data = memoryview(os.pread(fd, length, place))
                if crc32c(data[21:]) == header[4]:
                    return place
    return size


def _tell_damage(fd: int, piece: memoryview, at: int, position: int, size: int, onward: int, tell: Tell) -> None:
    left = size - position
    if onward == size and _is_zero(fd, position, size):
        tell("zeros", position, None, f"{left} zero bytes are left up to the end of the file")
        return
    skipped = f"; {onward - position} bytes cannot be read"
    if left < HEADER_SIZE:
        tell("torn", position, None, f"{left} bytes are left, too few for a batch")
        return
    offset, length, _, magic, *_ = HEADER.unpack_from(piece, at)
    if magic not in (0, 1, 2):
        tell("magic", position, offset, f"the magic byte is {magic}, not 2{skipped}")
    elif length + OVERHEAD > left:
        tell("torn", position, offset, f"{left} bytes are left of a batch of {length + OVERHEAD}{skipped}")
    else:
        tell("length", position, offset, f"the batch's length is {length}, less than a header{skipped}")


def _is_zero(fd: int, position: int, size: int) -> bool:
    while position < size:
        piece = os.pread(fd, PIECE, position)
        if not piece or any(piece):
            return False
        position += len(piece)
    return True

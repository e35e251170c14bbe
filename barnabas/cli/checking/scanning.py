"""Reads the batches of a ``.log`` file, and verifies their CRCs.

Knows nothing of the order of offsets and epochs. Bytes that are not a batch are reported. Reading continues at the next
position where a batch starts by the index.
"""

import os
import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from struct import Struct
from typing import Final, NamedTuple

from barnabas.log.systems import FLAGS, pread
from barnabas.records.checksum import crc32c

HEADER: Final = Struct(">qiibIhiqqqhii")
HEADER_SIZE: Final = HEADER.size
OVERHEAD: Final = 12
PIECE: Final = 4 << 20  # bytes that are read at a time

_OLD: Final = Struct(">qiIbb")  # offset, size, CRC-32, magic, attributes
_OLD_TIMESTAMP: Final = Struct(">q")
_OLD_MIN: Final = {0: 14, 1: 22}

Report = Callable[[str, int, int | None, str], object]
"""Called with damage: its kind, its position, an offset if one is known, and a text."""


class Batch(NamedTuple):
    """A batch. In message sets (magic 0 and 1), whose header has fewer fields, ``header`` is None."""

    position: int
    size: int
    base_offset: int  #: -1 in a compressed message set, where it is unknown
    last_offset: int
    leader_epoch: int
    max_timestamp: int
    producer_id: int
    header: tuple[int, ...] | None
    data: memoryview  #: valid until the next batch is read


def scan(
    path: str, batch_positions: Sequence[int], report: Report, progress: Callable[[int], object]
) -> Iterator[Batch]:
    """Yields the batches in the file.

    :param batch_positions: positions where batches start by the index, ascending
    """
    fd = os.open(path, os.O_RDONLY | FLAGS)
    try:
        yield from _scan(fd, os.fstat(fd).st_size, batch_positions, report, progress)
    finally:
        os.close(fd)


def _scan(
    fd: int, size: int, batch_positions: Sequence[int], report: Report, progress: Callable[[int], object]
) -> Iterator[Batch]:
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
                    text = f"the batch's CRC is {header[4]}, but that of its bytes is {crc}"
                    report("crc", position, header[0], text)
                base = header[0]
                yield Batch(position, length, base, base + header[6], header[2], header[8], header[9], header, data)
                position += length
                continue
        wanted = _wanted(piece, at, rest, size - position)
        if wanted > rest:
            progress(position - start)
            piece, start = memoryview(pread(fd, max(wanted, PIECE), position)), position
            there = len(piece)
            if there >= min(wanted, size - position):
                continue
        batch = _old_batch(piece, position - start, position, report)
        if batch is not None:
            yield batch
            position += batch.size
            continue
        onward = _next_valid_batch(fd, position, size, batch_positions)
        _report_damage(fd, piece, position - start, position, size, onward, report)
        position, start, there = onward, onward, 0
        piece = memoryview(b"")
    progress(size - start)


def _wanted(piece: memoryview, at: int, rest: int, left: int) -> int:
    """Returns how many bytes are needed to decode what is ``at`` that position; at most those left in the file."""
    if rest < min(HEADER_SIZE, left):
        return min(HEADER_SIZE, left)
    if rest >= OVERHEAD:
        length: int = OVERHEAD + int.from_bytes(piece[at + 8 : at + 12], signed=True)
        if rest < length <= left:
            return length
    return 0


def _old_batch(piece: memoryview, at: int, position: int, report: Report) -> Batch | None:
    """Returns the message of magic 0 or 1 ``at`` that position, if there is one."""
    rest = len(piece) - at
    if rest < _OLD.size:
        return None
    offset, length, crc, magic, attributes = _OLD.unpack_from(piece, at)
    if magic not in _OLD_MIN or not _OLD_MIN[magic] <= length <= rest - OVERHEAD:
        return None
    data = piece[at : at + OVERHEAD + length]
    actual = zlib.crc32(data[16:])
    if actual != crc:
        report("crc", position, offset, f"the message's CRC is {crc}, but that of its bytes is {actual}")
    timestamp = _OLD_TIMESTAMP.unpack_from(data, 18)[0] if magic else -1
    base = -1 if attributes & 7 else offset
    return Batch(position, len(data), base, offset, -1, timestamp, -1, None, data)


def _next_valid_batch(fd: int, position: int, size: int, batch_positions: Sequence[int]) -> int:
    """Returns the position of the next valid batch in the index; the end of the file if there is none."""
    for position_by_index in batch_positions[bisect_right(batch_positions, position) :]:
        head = pread(fd, HEADER_SIZE, position_by_index)
        if len(head) == HEADER_SIZE:
            header = HEADER.unpack(head)
            length = OVERHEAD + header[1]
            if header[3] == 2 and HEADER_SIZE <= length <= size - position_by_index:
                data = memoryview(pread(fd, length, position_by_index))
                if crc32c(data[21:]) == header[4]:
                    return position_by_index
    return size


def _report_damage(fd: int, piece: memoryview, at: int, position: int, size: int, onward: int, report: Report) -> None:
    left = size - position
    if onward == size and _is_zero(fd, position, size):
        report("zeros", position, None, f"{left} zero bytes are left up to the end of the file")
        return
    skipped = f"; {onward - position} bytes cannot be read"
    if left < HEADER_SIZE:
        report("torn", position, None, f"{left} bytes are left, too few for a batch")
        return
    offset, length, _, magic, *_ = HEADER.unpack_from(piece, at)
    if magic not in (0, 1, 2):
        report("magic", position, offset, f"the magic byte is {magic}, not 2{skipped}")
    elif length + OVERHEAD > left:
        report("torn", position, offset, f"{left} bytes are left of a batch of {length + OVERHEAD}{skipped}")
    else:
        report("length", position, offset, f"the batch's length is {length}, less than a header{skipped}")


def _is_zero(fd: int, position: int, size: int) -> bool:
    while position < size:
        piece = pread(fd, PIECE, position)
        if not piece or any(piece):
            return False
        position += len(piece)
    return True

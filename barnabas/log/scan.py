"""Going through a file of batches by their headers, without reading what is in the batches.

Knows nothing of indexes, nor of whether the bytes are what they were: no CRC is looked at.
"""

from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple

from barnabas.errors import CorruptMessage
from barnabas.log.files import File
from barnabas.records.batch import HEADER_SIZE, LOG_OVERHEAD, MAGIC

SHORT_HEADER: Final = Struct(">qi11xi")  # base_offset, batch_length, last_offset_delta
MIN_LENGTH: Final = HEADER_SIZE - LOG_OVERHEAD
GLANCE: Final = 1024  # bytes read to look at a few headers
STRIDE: Final = 1 << 16  # bytes read to look at many

_HEADER: Final = Struct(">qi4xb6xi8xq")  # and magic and max_timestamp


class BatchAt(NamedTuple):
    """A batch's place in a segment, and what its header says that an index wants to know."""

    position: int
    size: int
    base_offset: int
    last_offset: int
    max_timestamp: int


def scan(file: File, position: int, size: int, stride: int = STRIDE) -> Iterator[BatchAt]:
    """The batches from ``position`` up to ``size``, the end of the file.

    Raises CorruptMessage where there is none.
    """
    unpack_header = _HEADER.unpack_from
    while position < size:
        piece = file.pread(min(stride, size - position), position)
        at, end = 0, len(piece) - HEADER_SIZE
        if end < 0:
            raise corrupt(file, position, f"{len(piece)} bytes are too few for a batch")
        while at <= end:
            base_offset, length, magic, delta, timestamp = unpack_header(piece, at)
            if length < MIN_LENGTH or position + at + LOG_OVERHEAD + length > size or magic != MAGIC:
                raise corrupt(file, position + at, f"batch length {length}, magic {magic}")
            yield BatchAt(position + at, LOG_OVERHEAD + length, base_offset, base_offset + delta, timestamp)
            at += LOG_OVERHEAD + length
        position += at


def corrupt(file: File, position: int, reason: str) -> CorruptMessage:
    """What to raise where ``file`` does not hold what it should."""
    return CorruptMessage(f"{file.path} at position {position}: {reason}")

"""A scan of a ``.log`` file by the headers of its batches.

Knows nothing of indexes and records. It checks no CRC.
"""

from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple

from barnabas.errors import CorruptMessage
from barnabas.log.files import File
from barnabas.records.batch import HEADER_SIZE, LOG_OVERHEAD, MAGIC

SHORT_HEADER: Final = Struct(">qi11xi")  # base_offset, batch_length, last_offset_delta
MIN_LENGTH: Final = HEADER_SIZE - LOG_OVERHEAD
GLANCE: Final = 1024  # bytes per read where a few headers are wanted
STRIDE: Final = 1 << 16  # bytes per read where many are

_HEADER: Final = Struct(">qi4xb6xi8xq")  # base_offset, batch_length, magic, last_offset_delta, max_timestamp


class BatchAt(NamedTuple):
    """A batch's position in a segment, and the fields of its header that indexes need."""

    position: int
    size: int
    base_offset: int
    last_offset: int
    max_timestamp: int


def scan(file: File, position: int, size: int, stride: int = STRIDE) -> Iterator[BatchAt]:
    """Yields the batches from ``position`` up to ``size``, the end of the file.

    :param stride: bytes per read
    :raises CorruptMessage: at the first position where no batch starts
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
    """Returns the error for a position in ``file`` where the bytes are not a batch."""
    return CorruptMessage(f"{file.path} at position {position}: {reason}")

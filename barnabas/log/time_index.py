"""The sparse index from timestamps to offsets in a segment: Kafka's ``.timeindex``.

Knows nothing of the segment it belongs to but its base offset.

An entry is a big-endian int64, the latest timestamp of all records so far, and an int32, the last offset of the batch
that brought it, relative to the segment's base offset: no record up to there is later. The last entry of a closed
segment is the latest timestamp of the whole segment (``org.apache.kafka.storage.internals.log.TimeIndex``).
"""

import sys
from array import array
from bisect import bisect_left, bisect_right
from struct import Struct
from typing import Final

from barnabas.log.offset_index import CorruptIndex, ascends

ENTRY: Final = Struct(">qi")
ENTRY_SIZE: Final = ENTRY.size  # 12
NO_TIMESTAMP: Final = -1


class TimeIndex:
    """An index in memory: a row of int64 and a row of int32."""

    __slots__ = ("base_offset", "relative_offsets", "timestamps")

    def __init__(self, base_offset: int) -> None:
        self.base_offset = base_offset
        self.timestamps = array("q")
        self.relative_offsets = array("i")

    @classmethod
    def decode(cls, data: bytes, base_offset: int) -> "TimeIndex":
        """The index in the bytes of its file.

        Raises CorruptIndex when they are not whole entries, or do not ascend.
        """
        if len(data) % ENTRY_SIZE:
            raise CorruptIndex(f"{len(data)} bytes are not a multiple of the entry's {ENTRY_SIZE}")
        row = array("i", data)  # three int32 an entry: the timestamp's upper and lower half, the offset
        if sys.byteorder == "little":
            row.byteswap()
        halves = array("i", bytes(8 * (len(row) // 3)))
        upper, lower = (1, 0) if sys.byteorder == "little" else (0, 1)
        halves[upper::2], halves[lower::2] = row[0::3], row[1::3]
        index = cls(base_offset)
        index.timestamps, index.relative_offsets = array("q", halves.tobytes()), row[2::3]
        if not (ascends(index.timestamps, strictly=True) and ascends(index.relative_offsets, strictly=False)):
            raise CorruptIndex("its entries do not ascend")
        return index

    def encode(self, first: int = 0) -> bytes:
        """The bytes of the entries from number ``first`` on."""
        pack = ENTRY.pack
        return b"".join(map(pack, self.timestamps[first:], self.relative_offsets[first:]))

    def __len__(self) -> int:
        return len(self.timestamps)

    @property
    def size(self) -> int:
        """Bytes in the file."""
        return ENTRY_SIZE * len(self.timestamps)

    @property
    def last(self) -> tuple[int, int]:
        """The last entry: timestamp (ms) and offset; (-1, base offset) when there is none."""
        if not self.timestamps:
            return NO_TIMESTAMP, self.base_offset
        return self.timestamps[-1], self.base_offset + self.relative_offsets[-1]

    def maybe_append(self, timestamp: int, offset: int) -> None:
        """Add an entry unless the last one is as late already."""
        if timestamp > (self.timestamps[-1] if self.timestamps else NO_TIMESTAMP):
            self.timestamps.append(timestamp)
            self.relative_offsets.append(offset - self.base_offset)

    def slot_before(self, timestamp: int) -> int:
        """The number of the last entry that is not later than ``timestamp``, or -1."""
        return bisect_right(self.timestamps, timestamp) - 1

    def entry(self, slot: int) -> tuple[int, int]:
        """Timestamp and offset of the entry of that number."""
        return self.timestamps[slot], self.base_offset + self.relative_offsets[slot]

    def offset_before(self, timestamp: int) -> int:
        """An offset such that no record below it is as late as ``timestamp``.

        The batch that holds it may be; it is the base offset where the index knows none.
        """
        slot = bisect_right(self.timestamps, timestamp)
        return self.base_offset + (self.relative_offsets[slot - 1] if slot else 0)

    def offset_after(self, timestamp: int) -> int | None:
        """The offset of the first entry that is later than ``timestamp``."""
        slot = bisect_right(self.timestamps, timestamp)
        return self.base_offset + self.relative_offsets[slot] if slot < len(self.timestamps) else None

    def timestamp_before(self, timestamp: int) -> int:
        """The last entry's timestamp that is not later than ``timestamp``, or -1."""
        slot = bisect_right(self.timestamps, timestamp)
        return self.timestamps[slot - 1] if slot else NO_TIMESTAMP

    def truncate(self, offset: int) -> None:
        """Drop the entries at ``offset`` and beyond."""
        keep = bisect_left(self.relative_offsets, offset - self.base_offset)
        del self.timestamps[keep:]
        del self.relative_offsets[keep:]

"""The time index: Kafka's ``.timeindex``, a sparse index from timestamps to offsets in a segment.

Knows nothing of the segment but its base offset.

An entry is a big-endian int64, the maximum timestamp of the segment so far, and an int32, the last offset of the batch
with that timestamp, relative to the base offset. No record up to that offset has a later timestamp. The last entry of a
closed segment has the maximum timestamp of the segment (``org.apache.kafka.storage.internals.log.TimeIndex``).
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
    """A time index in memory: a column of int64 and a column of int32."""

    __slots__ = ("base_offset", "relative_offsets", "timestamps")

    def __init__(self, base_offset: int) -> None:
        self.base_offset = base_offset
        self.timestamps = array("q")
        self.relative_offsets = array("i")

    @classmethod
    def decode(cls, data: bytes, base_offset: int) -> "TimeIndex":
        """Returns the index in the bytes of a file.

        :raises CorruptIndex: the bytes are not whole entries, or the entries do not ascend
        """
        if len(data) % ENTRY_SIZE:
            raise CorruptIndex(f"{len(data)} bytes are not a multiple of the entry's {ENTRY_SIZE}")
        row = array("i", data)  # each entry is three int32: the timestamp's upper and lower half, the offset
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
        """Returns the bytes of the entries from number ``first`` on."""
        pack = ENTRY.pack
        return b"".join(map(pack, self.timestamps[first:], self.relative_offsets[first:]))

    def __len__(self) -> int:
        return len(self.timestamps)

    @property
    def size(self) -> int:
        """The number of bytes in the file."""
        return ENTRY_SIZE * len(self.timestamps)

    @property
    def last(self) -> tuple[int, int]:
        """The last entry: timestamp (ms) and offset; (-1, base offset) when the index is empty."""
        if not self.timestamps:
            return NO_TIMESTAMP, self.base_offset
        return self.timestamps[-1], self.base_offset + self.relative_offsets[-1]

    def maybe_append(self, timestamp: int, offset: int) -> None:
        """Adds an entry if its timestamp is later than that of the last entry."""
        if timestamp > (self.timestamps[-1] if self.timestamps else NO_TIMESTAMP):
            self.timestamps.append(timestamp)
            self.relative_offsets.append(offset - self.base_offset)

    def slot_before(self, timestamp: int) -> int:
        """Returns the number of the last entry up to ``timestamp``; -1 when there is none."""
        return bisect_right(self.timestamps, timestamp) - 1

    def entry(self, slot: int) -> tuple[int, int]:
        """Returns timestamp and offset of entry number ``slot``."""
        return self.timestamps[slot], self.base_offset + self.relative_offsets[slot]

    def offset_before(self, timestamp: int) -> int:
        """Returns an offset below which no record has ``timestamp`` or a later one; at least the base offset.

        The batch that holds this offset may have one.
        """
        slot = bisect_right(self.timestamps, timestamp)
        return self.base_offset + (self.relative_offsets[slot - 1] if slot else 0)

    def offset_after(self, timestamp: int) -> int | None:
        """Returns the offset of the first entry after ``timestamp``; None when there is none."""
        slot = bisect_right(self.timestamps, timestamp)
        return self.base_offset + self.relative_offsets[slot] if slot < len(self.timestamps) else None

    def timestamp_before(self, timestamp: int) -> int:
        """Returns the timestamp of the last entry up to ``timestamp``; -1 when there is none."""
        slot = bisect_right(self.timestamps, timestamp)
        return self.timestamps[slot - 1] if slot else NO_TIMESTAMP

    def truncate(self, offset: int) -> None:
        """Removes the entries from ``offset`` on."""
        keep = bisect_left(self.relative_offsets, offset - self.base_offset)
        del self.timestamps[keep:]
        del self.relative_offsets[keep:]

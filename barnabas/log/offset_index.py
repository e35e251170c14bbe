"""The sparse index from offsets to positions in a segment: Kafka's ``.index``.

Knows nothing of the segment it belongs to but its base offset.

An entry is two big-endian int32: a batch's *last* offset, relative to the segment's base offset, and the position at
which that batch starts (``org.apache.kafka.storage.internals.log.OffsetIndex``).
"""

import sys
from array import array
from bisect import bisect_left, bisect_right
from struct import Struct
from typing import Final

ENTRY: Final = Struct(">ii")
ENTRY_SIZE: Final = ENTRY.size  # 8


class CorruptIndex(Exception):
    """The file cannot be the index it should be; it has to be made anew."""


class OffsetIndex:
    """An index in memory: two rows of int32, searched by bisection."""

    __slots__ = ("base_offset", "positions", "relative_offsets")

    def __init__(self, base_offset: int) -> None:
        self.base_offset = base_offset
        self.relative_offsets = array("i")
        self.positions = array("i")

    @classmethod
    def decode(cls, data: bytes, base_offset: int) -> "OffsetIndex":
        """The index in the bytes of its file.

        Raises CorruptIndex when they are not whole entries, or do not ascend.
        """
        if len(data) % ENTRY_SIZE:
            raise CorruptIndex(f"{len(data)} bytes are not a multiple of the entry's {ENTRY_SIZE}")
        row = array("i", data)
        if sys.byteorder == "little":
            row.byteswap()
        index = cls(base_offset)
        index.relative_offsets, index.positions = row[::2], row[1::2]
        if not (ascends(index.relative_offsets, strictly=True) and ascends(index.positions, strictly=True)):
            raise CorruptIndex("its entries do not ascend")
        return index

    def encode(self, first: int = 0) -> bytes:
        """The bytes of the entries from number ``first`` on."""
        row = array("i", bytes(ENTRY_SIZE * (len(self.positions) - first)))
        row[::2], row[1::2] = self.relative_offsets[first:], self.positions[first:]
        if sys.byteorder == "little":
            row.byteswap()
        return row.tobytes()

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def size(self) -> int:
        """Bytes in the file."""
        return ENTRY_SIZE * len(self.positions)

    @property
    def last_offset(self) -> int:
        """The offset of the last entry; the base offset when there is none."""
        return self.base_offset + (self.relative_offsets[-1] if self.relative_offsets else 0)

    def append(self, offset: int, position: int) -> None:
        """The batch whose last offset is ``offset`` starts at ``position``; both above those of the last entry."""
        relative = offset - self.base_offset
        assert not self.relative_offsets or (relative > self.relative_offsets[-1] and position > self.positions[-1])
        self.relative_offsets.append(relative)
        self.positions.append(position)

    def position_before(self, offset: int) -> int:
        """Where a batch starts that is not after ``offset``: the latest one known, or 0."""
        slot = bisect_right(self.relative_offsets, offset - self.base_offset)
        return self.positions[slot - 1] if slot else 0

    def offset_before(self, offset: int) -> int:
        """The offset of that entry, or the base offset."""
        slot = bisect_right(self.relative_offsets, offset - self.base_offset)
        return self.base_offset + (self.relative_offsets[slot - 1] if slot else 0)

    def boundary_before(self, position: int) -> int:
        """The latest known start of a batch at or before ``position``, or 0."""
        slot = bisect_right(self.positions, position)
        return self.positions[slot - 1] if slot else 0

    def truncate(self, offset: int) -> None:
        """Drop the entries at ``offset`` and beyond."""
        keep = bisect_left(self.relative_offsets, offset - self.base_offset)
        del self.relative_offsets[keep:]
        del self.positions[keep:]


def ascends(row: "array[int]", *, strictly: bool) -> bool:
    """Whether the row starts at 0 or above and no number is below, or equal to, the one before it."""
    numbers = row.tolist()
    return not numbers or (numbers[0] >= 0 and sorted(set(numbers) if strictly else numbers) == numbers)

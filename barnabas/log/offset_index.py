"""The offset index: Kafka's ``.index``, a sparse index from offsets to positions in a segment.

Knows nothing of the segment but its base offset.

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
    """The file is not a valid index and has to be rebuilt from the log."""


class OffsetIndex:
    """An offset index in memory: two columns of int32, searched by bisection."""

    __slots__ = ("base_offset", "positions", "relative_offsets")

    def __init__(self, base_offset: int) -> None:
        self.base_offset = base_offset
        self.relative_offsets = array("i")
        self.positions = array("i")

    @classmethod
    def decode(cls, data: bytes, base_offset: int) -> "OffsetIndex":
        """Returns the index in the bytes of a file.

        :raises CorruptIndex: the bytes are not whole entries, or the entries do not ascend
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
        """Returns the bytes of the entries from number ``first`` on."""
        row = array("i", bytes(ENTRY_SIZE * (len(self.positions) - first)))
        row[::2], row[1::2] = self.relative_offsets[first:], self.positions[first:]
        if sys.byteorder == "little":
            row.byteswap()
        return row.tobytes()

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def size(self) -> int:
        """The number of bytes in the file."""
        return ENTRY_SIZE * len(self.positions)

    @property
    def last_offset(self) -> int:
        """The offset of the last entry; the base offset when the index is empty."""
        return self.base_offset + (self.relative_offsets[-1] if self.relative_offsets else 0)

    def append(self, offset: int, position: int) -> None:
        """Adds the batch whose last offset is ``offset`` and which starts at ``position``.

        Both are above those of the last entry.
        """
        relative = offset - self.base_offset
        assert not self.relative_offsets or (relative > self.relative_offsets[-1] and position > self.positions[-1])
        self.relative_offsets.append(relative)
        self.positions.append(position)

    def position_before(self, offset: int) -> int:
        """Returns the position of the last entry with an offset up to ``offset``; 0 when there is none."""
        slot = bisect_right(self.relative_offsets, offset - self.base_offset)
        return self.positions[slot - 1] if slot else 0

    def offset_before(self, offset: int) -> int:
        """Returns the offset of the last entry up to ``offset``; the base offset when there is none."""
        slot = bisect_right(self.relative_offsets, offset - self.base_offset)
        return self.base_offset + (self.relative_offsets[slot - 1] if slot else 0)

    def boundary_before(self, position: int) -> int:
        """Returns the position of the last entry at or before ``position``; 0 when there is none."""
        slot = bisect_right(self.positions, position)
        return self.positions[slot - 1] if slot else 0

    def truncate(self, offset: int) -> None:
        """Removes the entries from ``offset`` on."""
        keep = bisect_left(self.relative_offsets, offset - self.base_offset)
        del self.relative_offsets[keep:]
        del self.positions[keep:]


def ascends(column: "array[int]", *, strictly: bool) -> bool:
    """Returns whether the column starts at 0 or above and ascends; ``strictly``: without equal numbers."""
    numbers = column.tolist()
    return not numbers or (numbers[0] >= 0 and sorted(set(numbers) if strictly else numbers) == numbers)

"""Checks of index entries that were read from a file: each is checked when it is used, against the batches' headers.

Knows nothing of how an index is searched. Checking all entries against the ``.log`` would take as long as a rebuild of
the index. A search uses one or two entries, and only these are checked. When one of them is wrong, the caller rebuilds
both indexes.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from struct import Struct
from typing import Final, Protocol, overload

from barnabas.errors import CorruptMessage
from barnabas.log.files import File
from barnabas.log.limits import MAX_OFFSET
from barnabas.log.offset_index import ENTRY_SIZE
from barnabas.log.scan import GLANCE, MIN_LENGTH, STRIDE, BatchAt
from barnabas.log.time_index import NO_TIMESTAMP, TimeIndex
from barnabas.records.batch import HEADER_SIZE, LOG_OVERHEAD, MAGIC

_HEADER: Final = Struct(">qi4xb6xi")  # base_offset, batch_length, magic, last_offset_delta
_INT32: Final = Struct(">i")
_SAMPLES: Final = 16


class Batches(Protocol):
    """A segment, as far as the checks use it: its ``.log`` file."""

    base_offset: int
    file: File
    size: int

    def scan(self, position: int = 0, stride: int = STRIDE) -> Iterator[BatchAt]:
        """Yields the batches from ``position`` on."""
        ...


class Entries(Protocol):
    """The two columns of an offset index."""

    @property
    def relative_offsets(self) -> Sequence[int]: ...
    @property
    def positions(self) -> Sequence[int]: ...


class _Column(Sequence[int]):
    """One column of an offset index in its file."""

    def __init__(self, file: File, at: int) -> None:
        self._file = file
        self._at = at
        self._length = file.size() // ENTRY_SIZE

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[int]: ...
    def __getitem__(self, index: int | slice) -> int | Sequence[int]:
        assert isinstance(index, int)
        slot = index if index >= 0 else self._length + index
        number: int = _INT32.unpack(self._file.pread(4, ENTRY_SIZE * slot + self._at))[0]
        return number


class StoredEntries:
    """An offset index that is not loaded: each access to an entry reads the file."""

    def __init__(self, file: File) -> None:
        self.relative_offsets = _Column(file, 0)
        self.positions = _Column(file, 4)


def is_batch_start(segment: Batches, position: int, most: int) -> bool:
    """Returns whether a batch starts at ``position`` and its last offset is at most ``most``."""
    header = segment.file.pread(HEADER_SIZE, position)
    if position < 0 or len(header) < HEADER_SIZE:
        return False
    base_offset: int
    base_offset, length, magic, delta = _HEADER.unpack_from(header)
    return bool(
        magic == MAGIC
        and length >= MIN_LENGTH
        and position + LOG_OVERHEAD + length <= segment.size
        and segment.base_offset <= base_offset <= base_offset + delta <= most
    )


def is_entry_valid(segment: Batches, entries: Entries, latest: int, offset: int) -> bool:
    """Returns whether an entry of the time index, ``latest`` and ``offset``, agrees with the batches around it.

    ``latest`` must be the maximum timestamp between the entries of the offset index around ``offset``, and the first
    batch with that timestamp must hold ``offset``. Barnabas writes the last offset of the batch; some releases of
    Apache Kafka write that of a record, and their followers index several batches at once.
    """
    relative = offset - segment.base_offset
    slot = bisect_left(entries.relative_offsets, relative)
    start, below, up_to = 0, segment.base_offset - 1, MAX_OFFSET
    if slot:
        start, below = entries.positions[slot - 1], segment.base_offset + entries.relative_offsets[slot - 1]
        if not is_batch_start(segment, start, below):
            return False
    if slot < len(entries.relative_offsets):
        up_to = segment.base_offset + entries.relative_offsets[slot]
    found, holds = NO_TIMESTAMP, False
    try:
        for batch in segment.scan(start, GLANCE):
            if batch.base_offset > up_to:
                break
            if batch.max_timestamp > found and batch.last_offset > below:
                found, holds = batch.max_timestamp, batch.base_offset <= offset <= batch.last_offset
    except CorruptMessage:
        return False
    return holds and found == latest


def are_entries_valid(segment: Batches, entries: Entries, time_index: TimeIndex, timestamp: int) -> bool:
    """Returns whether the entries of the time index before and after ``timestamp`` are valid."""
    slot = time_index.slot_before(timestamp)
    return all(
        is_entry_valid(segment, entries, latest, offset)
        for latest, offset in (time_index.entry(each) for each in (slot, slot + 1) if 0 <= each < len(time_index))
    )


def is_last_entry_valid(segment: Batches, entries: Entries, latest: int, offset: int) -> bool:
    """Returns whether the last entry of a closed segment's time index is valid, and no later entry seems missing.

    Only samples of the batches after the entry are read, and the end of the segment.
    """
    if not is_entry_valid(segment, entries, latest, offset):
        return False
    first = bisect_left(entries.relative_offsets, offset - segment.base_offset)
    count = len(entries.positions)
    tail = entries.positions[-1] if count else 0
    samples = range(first, count, max((count - first) // _SAMPLES, 1))
    try:
        for slot in samples:
            batch = next(segment.scan(entries.positions[slot], GLANCE), None)
            if batch is None or batch.max_timestamp > latest:
                return False
        return all(batch.max_timestamp <= latest for batch in segment.scan(tail, GLANCE))
    except CorruptMessage:
        return False

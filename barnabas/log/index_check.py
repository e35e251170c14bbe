"""Whether entries of an index that was read from its file are true: looked at when they are used, few at a time.

Knows nothing of how an index is searched. To hold every entry against the ``.log`` would take as long as making the
index anew; but a search uses one entry or two, and these are held against the headers of the batches that they speak
of. What does not hold is not believed: the caller makes both indexes anew.
"""

from bisect import bisect_left
from collections.abc import Sequence
from struct import Struct
from typing import TYPE_CHECKING, Final, Protocol, overload

from barnabas.errors import CorruptMessage
from barnabas.log.files import File
from barnabas.log.offset_index import ENTRY_SIZE
from barnabas.log.scan import GLANCE, MIN_LENGTH
from barnabas.log.time_index import NO_TIMESTAMP
from barnabas.records.batch import CONTROL_BIT, HEADER_SIZE, LOG_OVERHEAD, MAGIC

if TYPE_CHECKING:
    from barnabas.log.segment import Segment

_HEADER: Final = Struct(">qi4xb6xi")  # base_offset, batch_length, magic, last_offset_delta
_PRODUCER: Final = Struct(">q13xh4x16xq")  # base_offset, attributes, producer_id
_INT32: Final = Struct(">i")
_SAMPLES: Final = 16
MAX_OFFSET: Final = 2**63 - 1


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
    """An offset index that stays in its file: for a look at a few of its entries."""

    def __init__(self, file: File) -> None:
        self.relative_offsets = _Column(file, 0)
        self.positions = _Column(file, 4)


def starts_batch(segment: "Segment", position: int, most: int) -> bool:
    """Whether a batch starts at ``position`` whose last offset is not above ``most``."""
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


def is_brought(segment: "Segment", entries: Entries, latest: int, offset: int) -> bool:
    """Whether ``latest`` is the latest timestamp from one entry of the offset index to the next, around ``offset``.

    And whether the first batch that has it holds ``offset``, as the time index says. (Its last offset by what writes
    it here; a record's by some releases of Apache Kafka, whose followers also index several batches at once.)
    """
    relative = offset - segment.base_offset
    slot = bisect_left(entries.relative_offsets, relative)
    start, below, up_to = 0, segment.base_offset - 1, MAX_OFFSET
    if slot:
        start, below = entries.positions[slot - 1], segment.base_offset + entries.relative_offsets[slot - 1]
        if not starts_batch(segment, start, below):
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


def times_hold(segment: "Segment", timestamp: int) -> bool:
    """Whether the entries between which ``timestamp`` is are true."""
    index, time_index = segment.offset_index(), segment.time_index()
    slot = time_index.slot_before(timestamp)
    return all(
        is_brought(segment, index, latest, offset)
        for latest, offset in (time_index.entry(each) for each in (slot, slot + 1) if 0 <= each < len(time_index))
    )


def latest_holds(segment: "Segment", entries: Entries, latest: int, offset: int) -> bool:
    """Whether the last entry of a closed segment's time index is true, and no later one is missing, as far as is seen.

    The end of the segment is looked at, and some batches on the way there.
    """
    if not is_brought(segment, entries, latest, offset):
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


def transactions_hold(segments: Sequence["Segment"]) -> bool:
    """Whether each entry of the last segment's index of aborted transactions speaks of a marker and of a first batch.

    A first batch that compaction or retention has taken away is not missed.
    """
    segment = segments[-1]
    for entry in segment.transactions.entries:
        marker = _producer_at(segment, entry.last_offset)
        if marker != (entry.last_offset, True, entry.producer_id):
            return False
        if not 0 <= entry.last_stable_offset <= entry.last_offset + 1:
            return False
        holding = [each for each in segments if each.base_offset <= entry.first_offset]
        first = _producer_at(holding[-1], entry.first_offset) if holding else None
        if entry.first_offset < 0 or (holding and first is None):
            return False
        is_there = first is not None and first[0] <= entry.first_offset
        if is_there and first != (entry.first_offset, False, entry.producer_id):
            return False
    return True


def _producer_at(segment: "Segment", offset: int) -> tuple[int, bool, int] | None:
    """Of the batch that holds ``offset``, or of the next: its first offset, whether it is a marker, its producer."""
    try:
        header = segment.file.pread(HEADER_SIZE, segment.locate(offset))
    except CorruptMessage:
        return None
    if len(header) < HEADER_SIZE:
        return None
    base_offset, attributes, producer_id = _PRODUCER.unpack_from(header)
    return base_offset, attributes & CONTROL_BIT != 0, producer_id

"""Compares the indexes of a segment with its batches.

Knows nothing of how batches are read; they are passed in, one after the other.
"""

from collections.abc import Callable
from pathlib import Path
from struct import Struct
from typing import Final

OFFSET_ENTRY: Final = Struct(">ii")
TIME_ENTRY: Final = Struct(">qi")
TRANSACTION_ENTRY: Final = Struct(">hqqqq")
NEVER: Final = 2**63

Report = Callable[[str, int | None, int | None, str], object]
"""Called with a finding: "error" or "warning", position, offset, text."""

Aborted = tuple[int, int, int, int]
"""An aborted transaction: producer id, first offset (-1 if unknown), offset of the marker, last stable offset."""


def _entries(path: Path, entry: Struct, report: Report) -> list[tuple[int, ...]] | None:
    """Returns the entries of an index; None if the file does not exist.

    Zeros at the end are preallocated by Apache Kafka, which trims the file when it closes it.
    """
    if not path.exists():
        return None
    data = path.read_bytes()
    used = -(-len(data.rstrip(b"\0")) // entry.size) * entry.size
    padding = len(data) - used
    if padding >= _PADDED:
        report("warning", used, None, f"{padding} zero bytes at the end: it was not closed")
        return list(entry.iter_unpack(data[:used]))
    rest = len(data) % entry.size
    if rest:
        text = f"{rest} bytes are left at the end, but an entry has {entry.size}"
        report("error", len(data) - rest, None, text)
    return list(entry.iter_unpack(data[: len(data) - rest]))


_PADDED: Final = 1 << 10


class OffsetIndexCheck:
    """The check of an ``.index``: each entry has the last offset of a batch, and its position."""

    def __init__(self, path: Path, base_offset: int, report: Report) -> None:
        self._report, self._base = report, base_offset
        found = _entries(path, OFFSET_ENTRY, report)
        self.is_there = found is not None
        self._entries = [(base_offset + relative, position) for relative, position in found or ()]
        self._next = 0
        self._inexact = 0
        self.next_position = -1  #: of the next entry
        self.awaited = NEVER  #: the offset of the last entry, if it is behind the batch at the entry's position
        before = (base_offset - 1, -1)
        for number, each in enumerate(self._entries):
            if each[0] <= before[0] or each[1] <= before[1]:
                self._wrong(number, f"offset {each[0]} at {each[1]} does not follow {before[0]} at {before[1]}")
                del self._entries[number:]
                break
            before = each
        self._set_next()

    @property
    def positions(self) -> list[int]:
        """The positions of batches in the index."""
        return [position for _, position in self._entries]

    def _wrong(self, number: int, text: str) -> None:
        self._report("error", number * OFFSET_ENTRY.size, None, text)

    def _set_next(self) -> None:
        self.next_position = self._entries[self._next][1] if self._next < len(self._entries) else NEVER

    def visit(self, position: int, base_offset: int, last_offset: int) -> None:
        """Checks a batch at or after :attr:`next_position`."""
        if self.awaited != NEVER:
            self._wrong(self._next - 1, f"no batch has {self.awaited} for its last offset")
            self.awaited = NEVER
        while self.next_position < position:
            offset, where = self._entries[self._next]
            self._wrong(self._next, f"the entry for offset {offset} points to position {where}, where no batch starts")
            self._next += 1
            self._set_next()
        if self.next_position == position:
            offset = self._entries[self._next][0]
            if offset < last_offset:
                text = f"the entry for offset {offset} points to the batch of {base_offset} to {last_offset}"
                self._wrong(self._next, text)
            elif offset > last_offset:
                self.awaited = offset
            self._next += 1
            self._set_next()

    def reach(self, last_offset: int) -> None:
        """Checks a batch that ends at or after :attr:`awaited`."""
        if last_offset == self.awaited:
            self._inexact += 1
        else:
            self._wrong(self._next - 1, f"no batch has {self.awaited} for its last offset")
        self.awaited = NEVER

    def finish(self) -> None:
        """Checks the entries after the last batch."""
        if self.awaited != NEVER:
            self._wrong(self._next - 1, f"no batch has {self.awaited} for its last offset")
        for number in range(self._next, len(self._entries)):
            offset, position = self._entries[number]
            self._wrong(number, f"the entry for offset {offset} points to position {position}, behind the log's end")
        if self._inexact:
            text = "entries are for several batches each, as in indexes of older versions of Apache Kafka"
            self._report("warning", None, None, f"{self._inexact} {text}")


class TimeIndexCheck:
    """The check of a ``.timeindex``: each entry has the maximum timestamp so far, and the last offset of its batch."""

    def __init__(self, path: Path, base_offset: int, report: Report) -> None:
        self._report = report
        found = _entries(path, TIME_ENTRY, report)
        self.is_there = found is not None
        self._entries = [(timestamp, base_offset + relative) for timestamp, relative in found or ()]
        self._next = 0
        self._inexact = 0
        self.next_offset = NEVER
        before = (-1, base_offset)
        for number, each in enumerate(self._entries):
            if each[0] <= before[0] or each[1] < before[1]:
                self._wrong(
                    number, f"timestamp {each[0]} up to {each[1]} does not follow {before[0]} up to {before[1]}"
                )
                del self._entries[number:]
                break
            before = each
        self._set_next()

    def _wrong(self, number: int, text: str) -> None:
        self._report("error", number * TIME_ENTRY.size, None, text)

    def _set_next(self) -> None:
        self.next_offset = self._entries[self._next][1] if self._next < len(self._entries) else NEVER

    def visit(self, base_offset: int, last_offset: int, timestamp: int, latest: int) -> None:
        """Checks a batch that ends at or after :attr:`next_offset`.

        :param latest: the maximum timestamp of the segment up to this batch
        """
        while self.next_offset <= last_offset:
            entry, offset = self._entries[self._next]
            if offset < base_offset:
                self._wrong(self._next, f"timestamp {entry} is of offset {offset}, which no batch contains")
            elif entry != latest or entry != timestamp:
                text = (
                    f"timestamp {entry} up to offset {offset}, but its batch has {timestamp}, the maximum is {latest}"
                )
                self._wrong(self._next, text)
            elif offset != last_offset:
                self._inexact += 1
            self._next += 1
            self._set_next()

    def finish(self, latest: int, *, is_sealed: bool) -> None:
        """Checks the entries after the last batch; a sealed segment's last entry must have its maximum timestamp."""
        for number in range(self._next, len(self._entries)):
            timestamp, offset = self._entries[number]
            self._wrong(number, f"timestamp {timestamp} is of offset {offset}, behind the log's end")
        last = self._entries[-1][0] if self._entries else -1
        if is_sealed and self.is_there and last < latest:
            self._report("error", None, None, f"its last timestamp is {last}, but that of the segment is {latest}")
        if self._inexact:
            text = "entries have an offset within a batch, as in indexes of older versions of Apache Kafka"
            self._report("warning", None, None, f"{self._inexact} {text}")


def check_transactions(
    path: Path, base_offset: int, end_offset: int, aborted: list[Aborted], report: Report, *, is_whole: bool
) -> None:
    """Compares a ``.txnindex`` with the abort markers in its segment.

    :param is_whole: whether all records of the transactions were read. Otherwise only producers are compared, because
        compaction removes records and markers, and the first offset of a transaction is then unknown.
    """
    expected = {each[2]: each for each in aborted}
    before = base_offset - 1
    for number, fields in enumerate(_entries(path, TRANSACTION_ENTRY, report) or ()):
        version, producer_id, first, last, stable = fields
        known = expected.pop(last, None)
        text = None
        if version != 0:
            text = f"the entry's version is {version}, not 0"
        elif not (before < last < end_offset and 0 <= first <= last and 0 <= stable <= last + 1):
            text = f"the transaction from {first} to {last}, stable up to {stable}, is not of this segment"
        elif known is None and is_whole:
            text = f"there is no abort marker at offset {last}"
        elif known is not None and not _fits(known, producer_id, first, stable, is_whole):
            text = f"producer {producer_id} from {first}, stable up to {stable}, but in the log {_described(known)}"
        if text is not None:
            report("error", number * TRANSACTION_ENTRY.size, last, text)
        before = last
    for each in expected.values() if is_whole else ():
        report("error", None, each[2], f"an aborted transaction is missing: {_described(each)}")


def _fits(known: Aborted, producer_id: int, first: int, stable: int, is_whole: bool) -> bool:
    return producer_id == known[0] and (not is_whole or (first, stable) == (known[1], known[3]))


def _described(aborted: Aborted) -> str:
    producer_id, first, last, stable = aborted
    return f"producer {producer_id} from {first} to {last}, stable up to {stable}"

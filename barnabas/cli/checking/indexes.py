"""The indexes of a segment, held against its batches while these go by.

Knows nothing of how batches are found. An index that contradicts the log is worse than none: readers look where it
says.
"""

from collections.abc import Callable
from pathlib import Path
from struct import Struct
from typing import Final

OFFSET_ENTRY: Final = Struct(">ii")
TIME_ENTRY: Final = Struct(">qi")
TRANSACTION_ENTRY: Final = Struct(">hqqqq")
NEVER: Final = 2**63

Tell = Callable[[str, int | None, int | None, str], object]
"""Told what is wrong: "error" or "warning", position, offset, words."""

Aborted = tuple[int, int, int, int]
"""An aborted transaction: producer id, first offset (-1: not known), its marker's offset, the last stable offset."""


def _entries(path: Path, entry: Struct, tell: Tell) -> list[tuple[int, ...]] | None:
    """The entries; None when there is no such file. Zeros at the end are the room that Apache Kafka makes ahead."""
    if not path.exists():
        return None
    data = path.read_bytes()
    used = -(-len(data.rstrip(b"\0")) // entry.size) * entry.size
    padding = len(data) - used
    if padding >= _PADDED:
        tell("warning", used, None, f"{padding} zero bytes at the end: it was not closed")
        return list(entry.iter_unpack(data[:used]))
    rest = len(data) % entry.size
    if rest:
        words = f"{rest} bytes are left at the end, and an entry has {entry.size}"
        tell("error", len(data) - rest, None, words)
    return list(entry.iter_unpack(data[: len(data) - rest]))


_PADDED: Final = 1 << 10


class OffsetIndexCheck:
    """An ``.index``: each entry has a batch's last offset, and where it starts."""

    def __init__(self, path: Path, base_offset: int, tell: Tell) -> None:
        self._tell, self._base = tell, base_offset
        found = _entries(path, OFFSET_ENTRY, tell)
        self.is_there = found is not None
        self._entries = [(base_offset + relative, position) for relative, position in found or ()]
        self._next = 0
        self._inexact = 0
        self.next_position = -1  #: where the next entry says that a batch starts
        self.awaited = NEVER  #: the last offset that an entry promised, when it was none of the batch it points to
        before = (base_offset - 1, -1)
        for number, each in enumerate(self._entries):
            if each[0] <= before[0] or each[1] <= before[1]:
                self._wrong(number, f"offset {each[0]} at {each[1]} does not follow {before[0]} at {before[1]}")
                del self._entries[number:]
                break
            before = each
        self._aim()

    @property
    def positions(self) -> list[int]:
        """Where batches start, as far as the index knows."""
        return [position for _, position in self._entries]

    def _wrong(self, number: int, words: str) -> None:
        self._tell("error", number * OFFSET_ENTRY.size, None, words)

    def _aim(self) -> None:
        self.next_position = self._entries[self._next][1] if self._next < len(self._entries) else NEVER

    def visit(self, position: int, base_offset: int, last_offset: int) -> None:
        """A batch at or behind :attr:`next_position`."""
        if self.awaited != NEVER:
            self._wrong(self._next - 1, f"no batch has {self.awaited} for its last offset")
            self.awaited = NEVER
        while self.next_position < position:
            offset, where = self._entries[self._next]
            self._wrong(self._next, f"the entry for offset {offset} points to position {where}, where no batch starts")
            self._next += 1
            self._aim()
        if self.next_position == position:
            offset = self._entries[self._next][0]
            if offset < last_offset:
                words = f"the entry for offset {offset} points to the batch of {base_offset} to {last_offset}"
                self._wrong(self._next, words)
            elif offset > last_offset:
                self.awaited = offset
            self._next += 1
            self._aim()

    def reach(self, last_offset: int) -> None:
        """A batch that ends at or behind :attr:`awaited`."""
        if last_offset == self.awaited:
            self._inexact += 1
        else:
            self._wrong(self._next - 1, f"no batch has {self.awaited} for its last offset")
        self.awaited = NEVER

    def finish(self) -> None:
        """All batches have gone by."""
        if self.awaited != NEVER:
            self._wrong(self._next - 1, f"no batch has {self.awaited} for its last offset")
        for number in range(self._next, len(self._entries)):
            offset, position = self._entries[number]
            self._wrong(number, f"the entry for offset {offset} points to position {position}, behind the log's end")
        if self._inexact:
            words = "entries are for several batches each, as older versions of Apache Kafka made them"
            self._tell("warning", None, None, f"{self._inexact} {words}")


class TimeIndexCheck:
    """A ``.timeindex``: each entry has the latest timestamp so far, and the last offset of the batch with it."""

    def __init__(self, path: Path, base_offset: int, tell: Tell) -> None:
        self._tell = tell
        found = _entries(path, TIME_ENTRY, tell)
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
        self._aim()

    def _wrong(self, number: int, words: str) -> None:
        self._tell("error", number * TIME_ENTRY.size, None, words)

    def _aim(self) -> None:
        self.next_offset = self._entries[self._next][1] if self._next < len(self._entries) else NEVER

    def visit(self, base_offset: int, last_offset: int, timestamp: int, latest: int) -> None:
        """A batch that ends at or behind :attr:`next_offset`; ``latest`` of all timestamps up to it."""
        while self.next_offset <= last_offset:
            told, offset = self._entries[self._next]
            if offset < base_offset:
                self._wrong(self._next, f"timestamp {told} is that of offset {offset}, which no batch has")
            elif told != latest or told != timestamp:
                words = f"timestamp {told} up to offset {offset}: there it is {timestamp}, and the latest is {latest}"
                self._wrong(self._next, words)
            elif offset != last_offset:
                self._inexact += 1
            self._next += 1
            self._aim()

    def finish(self, latest: int, *, is_sealed: bool) -> None:
        """All batches have gone by; of a segment that is not the active one the last entry has to be the latest."""
        for number in range(self._next, len(self._entries)):
            timestamp, offset = self._entries[number]
            self._wrong(number, f"timestamp {timestamp} is that of offset {offset}, behind the log's end")
        last = self._entries[-1][0] if self._entries else -1
        if is_sealed and self.is_there and last < latest:
            self._tell("error", None, None, f"its last timestamp is {last}, and that of the segment is {latest}")
        if self._inexact:
            words = "entries name an offset within a batch, as older versions of Apache Kafka made them"
            self._tell("warning", None, None, f"{self._inexact} {words}")


def check_transactions(
    path: Path, base_offset: int, end_offset: int, aborted: list[Aborted], tell: Tell, *, is_whole: bool
) -> None:
    """A ``.txnindex``, held against the markers of aborts in its segment.

    ``is_whole``: everything that the transactions wrote was there to be seen. Otherwise only producers are compared:
    compaction drops data and markers, and nobody can say where a transaction began.
    """
    expected = {each[2]: each for each in aborted}
    before = base_offset - 1
    for number, fields in enumerate(_entries(path, TRANSACTION_ENTRY, tell) or ()):
        version, producer_id, first, last, stable = fields
        known = expected.pop(last, None)
        words = None
        if version != 0:
            words = f"the entry's version is {version}, not 0"
        elif not (before < last < end_offset and 0 <= first <= last and 0 <= stable <= last + 1):
            words = f"the transaction from {first} to {last}, stable up to {stable}, has no place here"
        elif known is None and is_whole:
            words = f"there is no abort of a transaction at offset {last}"
        elif known is not None and not _fits(known, producer_id, first, stable, is_whole):
            words = f"producer {producer_id} from {first}, stable up to {stable}; the log says {_told(known)}"
        if words is not None:
            tell("error", number * TRANSACTION_ENTRY.size, last, words)
        before = last
    for each in expected.values() if is_whole else ():
        tell("error", None, each[2], f"an aborted transaction is missing: {_told(each)}")


def _fits(known: Aborted, producer_id: int, first: int, stable: int, is_whole: bool) -> bool:
    return producer_id == known[0] and (not is_whole or (first, stable) == (known[1], known[3]))


def _told(aborted: Aborted) -> str:
    producer_id, first, last, stable = aborted
    return f"producer {producer_id} from {first} to {last}, stable up to {stable}"

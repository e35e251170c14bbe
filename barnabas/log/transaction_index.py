"""The aborted transactions of a segment, which readers of committed data leave out: Kafka's ``.txnindex``.

Knows nothing of the segment it belongs to but its base offset, nor of transactions that are open or were committed.

An entry is made when the marker of an abort is appended; it stands in the segment that has the marker, in the order of
the markers (``org.apache.kafka.storage.internals.log.TransactionIndex`` and ``AbortedTxn``). Big-endian::

    int16 version (0), int64 producer id, int64 first offset, int64 last offset, int64 last stable offset

Most segments have none, and no file.
"""

from bisect import bisect_left
from collections.abc import Iterable
from operator import attrgetter
from struct import Struct
from typing import Final, NamedTuple

from barnabas.errors import CorruptMessage
from barnabas.log.files import Files
from barnabas.log.offset_index import CorruptIndex

ENTRY: Final = Struct(">hqqqq")
ENTRY_SIZE: Final = ENTRY.size  # 34

_VERSION: Final = 0
_last_offset = attrgetter("last_offset")


class AbortedTransaction(NamedTuple):
    """A transaction that ended with an abort."""

    producer_id: int
    first_offset: int  #: of its first record
    last_offset: int  #: of its marker
    last_stable_offset: int  #: once the marker was there: no transaction later in the index begins before it


def encode_transactions(entries: Iterable[AbortedTransaction]) -> bytes:
    """The bytes of these entries."""
    return b"".join([ENTRY.pack(_VERSION, *entry) for entry in entries])


def decode_transactions(data: bytes, base_offset: int) -> list[AbortedTransaction]:
    """The entries in the bytes of a file.

    Raises CorruptIndex when they are not whole, of another version, not in order, or not of this segment.
    """
    if len(data) % ENTRY_SIZE:
        raise CorruptIndex(f"{len(data)} bytes are not a multiple of the entry's {ENTRY_SIZE}")
    entries: list[AbortedTransaction] = []
    last = base_offset - 1
    for version, *fields in ENTRY.iter_unpack(data):
        entry = AbortedTransaction(*fields)
        if version != _VERSION:
            raise CorruptIndex(f"an entry has version {version}")
        if not (entry.first_offset <= entry.last_offset and last < entry.last_offset):
            raise CorruptIndex(f"{entry} does not follow a marker at offset {last}")
        last = entry.last_offset
        entries.append(entry)
    return entries


class TransactionIndex:
    """The index of one segment: read when first asked for, written with each entry."""

    __slots__ = ("_entries", "_files", "base_offset", "path", "unsynced")

    def __init__(self, files: Files, path: str, base_offset: int) -> None:
        self._files = files
        self.path = path
        self.base_offset = base_offset
        self.unsynced = False  #: whether the file changed and nobody has been told to fsync it
        self._entries: list[AbortedTransaction] | None = None

    @property
    def entries(self) -> list[AbortedTransaction]:
        """All of them, by their markers' offsets. Raises CorruptMessage, OSError."""
        entries = self._entries
        if entries is None:
            try:
                data = self._files.read(self.path)
            except FileNotFoundError:
                data = b""
            try:
                entries = self._entries = decode_transactions(data, self.base_offset)
            except CorruptIndex as error:
                raise CorruptMessage(f"{self.path}: {error}") from error
        return entries

    def append(self, entry: AbortedTransaction) -> None:
        """Add the entry of the latest marker to the file. Raises OSError; the file is then as it was, if it can be."""
        entries = self.entries
        assert not entries or entries[-1].last_offset < entry.last_offset
        if not entries:
            self.replace([entry])
            return
        file = self._files.open(self.path)
        try:
            file.write(encode_transactions([entry]))
        except OSError:
            file.truncate(len(entries) * ENTRY_SIZE)
            raise
        finally:
            file.close()
        entries.append(entry)
        self.unsynced = True

    def replace(self, entries: list[AbortedTransaction]) -> None:
        """Let these be the entries, and all that is in the file; without any there is none."""
        if entries:
            file = self._files.create(self.path)
            try:
                file.write(encode_transactions(entries))
            finally:
                file.close()
        else:
            self._files.delete(self.path)
        self._entries, self.unsynced = entries, bool(entries)

    def truncate(self, offset: int) -> None:
        """Drop the transactions whose markers are at ``offset`` or beyond."""
        entries = self.entries
        keep = bisect_left(entries, offset, key=_last_offset)
        if keep < len(entries):
            self.replace(entries[:keep])

    def collect(self, offset: int, up_to: int, found: list[AbortedTransaction]) -> bool:
        """Add the transactions that a reader from ``offset`` to below ``up_to`` meets; whether these are all.

        If not, the next segment has to be asked too: markers may come long after the records.
        """
        entries = self.entries
        for slot in range(bisect_left(entries, offset, key=_last_offset), len(entries)):
            entry = entries[slot]
            if entry.first_offset < up_to:
                found.append(entry)
            if entry.last_stable_offset >= up_to:
                return True
        return False

    def forget(self) -> None:
        """Give the memory back; the entries are in the file."""
        if self._entries:
            self._entries = None

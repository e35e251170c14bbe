"""The transaction index: Kafka's ``.txnindex``, the aborted transactions of a segment.

Knows nothing of the segment but its base offset, nor of transactions that are open or committed.

read_committed consumers skip the records of aborted transactions. An entry is added when an abort marker is appended.
It is in the segment that holds the marker, and entries are in the order of their markers
(``org.apache.kafka.storage.internals.log.TransactionIndex`` and ``AbortedTxn``). Big-endian::

    int16 version (0), int64 producer id, int64 first offset, int64 last offset, int64 last stable offset

Most segments have no entries and no file.
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
    """An entry of the index."""

    producer_id: int
    first_offset: int  #: of the transaction's first record
    last_offset: int  #: of its marker
    last_stable_offset: int  #: after the marker was appended: no later transaction in the index begins before it


def encode_transactions(entries: Iterable[AbortedTransaction]) -> bytes:
    """Returns the bytes of the entries."""
    return b"".join([ENTRY.pack(_VERSION, *entry) for entry in entries])


def decode_transactions(data: bytes, base_offset: int) -> list[AbortedTransaction]:
    """Returns the entries in the bytes of a file.

    :raises CorruptIndex: entries are not whole, have another version, are not in order or not of this segment
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
    """The transaction index of one segment. It is read on first use, and written with each entry."""

    __slots__ = ("_entries", "_files", "base_offset", "path", "unsynced")

    def __init__(self, files: Files, path: str, base_offset: int) -> None:
        self._files = files
        self.path = path
        self.base_offset = base_offset
        self.unsynced = False  #: whether the file has changed since the last flush began
        self._entries: list[AbortedTransaction] | None = None

    @property
    def entries(self) -> list[AbortedTransaction]:
        """All entries, in the order of their markers.

        :raises CorruptMessage: the file is not a valid index
        :raises OSError: the file cannot be read
        """
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
        """Appends the entry of the latest marker to the file.

        :raises OSError: the write fails; the file is then cut back to its previous size, if possible
        """
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
        """Replaces all entries and the file. Without entries the file is deleted."""
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
        """Removes the transactions whose markers are at ``offset`` or after it."""
        entries = self.entries
        keep = bisect_left(entries, offset, key=_last_offset)
        if keep < len(entries):
            self.replace(entries[:keep])

    def collect(self, offset: int, up_to: int, found: list[AbortedTransaction]) -> bool:
        """Adds the transactions with records from ``offset`` to below ``up_to`` to ``found``.

        Returns whether the search is complete. If not, later segments may hold more of them: a marker may be far behind
        the records.
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
        """Releases the memory of the entries. The next use reads the file."""
        if self._entries:
            self._entries = None

"""One segment of a partition's log: a ``.log`` file of record batches with its indexes.

Knows nothing of other segments, of producers or leader epochs, nor of which offsets are committed.

Only the newest segment, the active one, is appended to. Its index entries are kept in memory and written when it is
flushed, rolled or closed; after a crash they are rebuilt from the ``.log`` (:meth:`Segment.rebuild_indexes`). The
indexes of closed segments are loaded on first use, and released when :class:`IndexCache` is full.
"""

import contextlib
import errno
import logging
from collections.abc import Callable, Iterator
from struct import Struct
from typing import Final

from barnabas.log.files import Data, File, Files, NotCached
from barnabas.log.index_cache import IndexCache
from barnabas.log.index_check import (
    Entries,
    StoredEntries,
    are_entries_valid,
    is_batch_start,
    is_entry_valid,
    is_last_entry_valid,
)
from barnabas.log.limits import MAX_OFFSET
from barnabas.log.offset_index import ENTRY as OFFSET_ENTRY
from barnabas.log.offset_index import CorruptIndex, OffsetIndex
from barnabas.log.scan import GLANCE, MIN_LENGTH, SHORT_HEADER, STRIDE, BatchAt, corrupt, scan
from barnabas.log.time_index import ENTRY as TIME_ENTRY
from barnabas.log.time_index import NO_TIMESTAMP, TimeIndex
from barnabas.log.transaction_index import TransactionIndex
from barnabas.records.batch import HEADER_SIZE, LOG_OVERHEAD, RecordBatch
from barnabas.records.record import records_of

logger = logging.getLogger(__name__)

LOG_SUFFIX: Final = ".log"
INDEX_SUFFIX: Final = ".index"
TIME_INDEX_SUFFIX: Final = ".timeindex"
TXN_INDEX_SUFFIX: Final = ".txnindex"
SNAPSHOT_SUFFIX: Final = ".snapshot"
DELETED_SUFFIX: Final = ".deleted"
SUFFIXES: Final = (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX)

UNKNOWN: Final = -2

_REMEMBERED: Final = 16
_RECENT_BYTES: Final = 4 << 20  # the end of the active segment was just written, so it is in the page cache


class Segment:
    """A segment. ``active`` says whether batches are appended to it."""

    __slots__ = (
        "_cache",
        "_files",
        "_index",
        "_indexed",
        "_is_from_file",
        "_remembered",
        "_time_index",
        "_timed",
        "active",
        "base_offset",
        "bytes_since_index",
        "created_ms",
        "directory",
        "file",
        "index_interval",
        "max_timestamp",
        "max_timestamp_offset",
        "rolling_timestamp",
        "size",
        "transactions",
    )

    def __init__(self, files: Files, directory: str, base_offset: int, size: int, cache: IndexCache) -> None:
        self._files = files
        self._cache = cache
        self.directory = directory
        self.base_offset = base_offset
        self.size = size
        self.active = False
        self.file: File = files.open(self.path(LOG_SUFFIX))
        self.index_interval = 4096
        self.bytes_since_index = 0
        self.created_ms = 0
        #: The maximum timestamp of all records, and the last offset of the batch that has it. UNKNOWN in a closed
        #: segment until the first call of :meth:`largest_timestamp`.
        self.max_timestamp = UNKNOWN
        self.max_timestamp_offset = base_offset
        #: The first batch's maximum timestamp, from which ``segment.ms`` counts; None until it is known.
        self.rolling_timestamp: int | None = None
        self._index: OffsetIndex | None = None
        self._time_index: TimeIndex | None = None
        self._indexed = self._timed = 0  # the number of entries that are in the files
        self._is_from_file = False  # whether the indexes were loaded, so that entries are checked before use
        self._remembered: dict[int, int] | None = None  # positions of offsets at which readers will continue
        self.transactions = TransactionIndex(files, self.path(TXN_INDEX_SUFFIX), base_offset)

    @classmethod
    def create(cls, files: Files, directory: str, base_offset: int, cache: IndexCache, now_ms: int) -> "Segment":
        """Creates an empty active segment. Its files replace files of the same name."""
        path = f"{directory}/{base_offset:020d}"
        file = files.create(path + LOG_SUFFIX)
        files.create(path + INDEX_SUFFIX).close()
        files.create(path + TIME_INDEX_SUFFIX).close()
        segment = cls(files, directory, base_offset, 0, cache)
        segment.file = file
        segment.active = True
        segment.created_ms = now_ms
        segment.max_timestamp = NO_TIMESTAMP
        segment._index, segment._time_index = OffsetIndex(base_offset), TimeIndex(base_offset)
        return segment

    def path(self, suffix: str) -> str:
        return f"{self.directory}/{self.base_offset:020d}{suffix}"

    def __repr__(self) -> str:
        return f"<Segment {self.path(LOG_SUFFIX)}, {self.size} bytes>"

    # ------------------------------------------------------------ appending

    def append(self, data: Data, last_offset: int, max_timestamp: int) -> None:
        """Appends one batch.

        :raises OSError: the write fails; the file is then cut back to its previous size, if possible
        """
        position = self.size
        try:
            self.file.write(data)
        except OSError:
            self._cut_back(position)
            raise
        size = len(data)
        self.size = position + size
        self._index_batch(position, size, last_offset, max_timestamp)

    def append_many(self, data: Data, batches: list[BatchAt]) -> None:
        """Appends several batches in one write.

        :param batches: their positions are relative to ``data``
        :raises OSError: as :meth:`append`
        """
        position = self.size
        try:
            self.file.write(data)
        except OSError:
            self._cut_back(position)
            raise
        for batch in batches:
            self._index_batch(position + batch.position, batch.size, batch.last_offset, batch.max_timestamp)
        self.size = position + len(data)

    def _index_batch(self, position: int, size: int, last_offset: int, max_timestamp: int) -> None:
        """Adds index entries for an appended batch, if the interval since the last entry is over."""
        if max_timestamp > self.max_timestamp:
            self.max_timestamp, self.max_timestamp_offset = max_timestamp, last_offset
        if position == 0:
            self.rolling_timestamp = max_timestamp
        if self.bytes_since_index > self.index_interval:
            self.offset_index().append(last_offset, position)
            self.time_index().maybe_append(self.max_timestamp, self.max_timestamp_offset)
            self.bytes_since_index = 0
        self.bytes_since_index += size

    def _cut_back(self, size: int) -> None:
        """Cuts the file back after a failed write. If that fails too, recovery does it."""
        try:
            self.file.truncate(size)
        except OSError as error:
            logger.warning("Cannot cut %s back to %d bytes after a failed write: %s", self.file.path, size, error)

    def is_full(self, max_index_bytes: int) -> bool:
        """Returns whether an index has no room for another entry (``segment.index.bytes``)."""
        if self.bytes_since_index <= self.index_interval:
            return False  # no entry is due, so the indexes of a segment that was just opened need not be loaded
        return (
            len(self.offset_index()) >= max_index_bytes // 8 or len(self.time_index()) >= max_index_bytes // 12 - 1
        )  # the time index gets one more entry when the segment rolls: the maximum timestamp

    # ------------------------------------------------------------ indexes

    def offset_index(self) -> OffsetIndex:
        """Returns the offset index. It is loaded if it is not in memory, and rebuilt if the file is invalid."""
        index = self._index
        return index if index is not None else self._load_indexes()[0]

    def time_index(self) -> TimeIndex:
        """Returns the time index, as :meth:`offset_index` does."""
        index = self._time_index
        return index if index is not None else self._load_indexes()[1]

    def _load_indexes(self) -> tuple[OffsetIndex, TimeIndex]:
        try:
            index = OffsetIndex.decode(self._files.read(self.path(INDEX_SUFFIX)), self.base_offset)
            time_index = TimeIndex.decode(self._files.read(self.path(TIME_INDEX_SUFFIX)), self.base_offset)
            if len(index):
                self._check_entry(index.last_offset, index.positions[-1])
            if not self.active and self.size and not len(time_index) and self.first_timestamp() >= 0:
                raise CorruptIndex("the time index is empty, and records have timestamps")
        except (FileNotFoundError, CorruptIndex) as error:
            logger.warning("The indexes of %s are rebuilt: %s", self.path(LOG_SUFFIX), error)
            return self.rebuild_indexes()
        self._indexed, self._timed = len(index), len(time_index)
        self._is_from_file = True
        return self._keep(index, time_index)

    def _rebuild_invalid(self, reason: str) -> None:
        logger.warning("The indexes of %s are rebuilt: %s", self.path(LOG_SUFFIX), reason)
        self.rebuild_indexes()

    def _position_before(self, offset: int) -> int:
        """Returns the position of a batch at or before ``offset``, by the offset index."""
        index = self.offset_index()
        position = index.position_before(offset)
        if position and self._is_from_file and not is_batch_start(self, position, index.offset_before(offset)):
            self._rebuild_invalid(f"no batch up to offset {offset} is at position {position}")
            position = self.offset_index().position_before(offset)
        return position

    def _boundary_before(self, position: int) -> int:
        """Returns the start of a batch at or before ``position``, by the offset index."""
        found = self.offset_index().boundary_before(position)
        if found and self._is_from_file and not is_batch_start(self, found, MAX_OFFSET):
            self._rebuild_invalid(f"no batch is at position {found}")
            found = self.offset_index().boundary_before(position)
        return found

    def _keep(self, index: OffsetIndex, time_index: TimeIndex) -> tuple[OffsetIndex, TimeIndex]:
        self._index, self._time_index = index, time_index
        if not self.active:
            self._cache.add(self, index.size + time_index.size)
        return index, time_index

    def _check_entry(self, offset: int, position: int) -> None:
        """Checks that a batch up to ``offset`` starts at ``position``.

        :raises CorruptIndex: there is none
        """
        header = self.file.pread(HEADER_SIZE, position)
        if position + HEADER_SIZE <= self.size and len(header) == HEADER_SIZE:
            base_offset, length, delta = SHORT_HEADER.unpack_from(header)
            if self.base_offset <= base_offset <= base_offset + delta <= offset and length >= MIN_LENGTH:
                return
        raise CorruptIndex(f"no batch up to offset {offset} is at position {position}")

    def rebuild_indexes(self) -> tuple[OffsetIndex, TimeIndex]:
        """Rebuilds both indexes from the ``.log``, and writes them."""
        index, time_index = OffsetIndex(self.base_offset), TimeIndex(self.base_offset)
        latest, latest_offset, since = NO_TIMESTAMP, self.base_offset, 0
        for batch in self.scan():
            if batch.max_timestamp > latest:
                latest, latest_offset = batch.max_timestamp, batch.last_offset
            if since > self.index_interval:
                index.append(batch.last_offset, batch.position)
                time_index.maybe_append(latest, latest_offset)
                since = 0
            since += batch.size
        if not self.active:
            time_index.maybe_append(latest, latest_offset)
        self.replace_indexes(index, time_index, latest, latest_offset)
        return self._keep(index, time_index)

    def replace_indexes(self, index: OffsetIndex, time_index: TimeIndex, latest: int, latest_offset: int) -> None:
        """Replaces the segment's indexes and their files.

        :param latest: the maximum timestamp of the segment
        :param latest_offset: the last offset of the batch with that timestamp
        """
        self._index, self._time_index = index, time_index
        self.max_timestamp, self.max_timestamp_offset = latest, latest_offset
        for suffix, data in ((INDEX_SUFFIX, index.encode()), (TIME_INDEX_SUFFIX, time_index.encode())):
            file = self._files.create(self.path(suffix))
            file.write(data)
            file.close()
        self._indexed, self._timed = len(index), len(time_index)
        self._is_from_file = False

    def write_indexes(self) -> None:
        """Appends the entries that are only in memory to the files."""
        index, time_index = self._index, self._time_index
        if index is not None and len(index) > self._indexed:
            self._extend(INDEX_SUFFIX, index.encode(self._indexed))
            self._indexed = len(index)
        if time_index is not None and len(time_index) > self._timed:
            self._extend(TIME_INDEX_SUFFIX, time_index.encode(self._timed))
            self._timed = len(time_index)

    def _extend(self, suffix: str, data: bytes) -> None:
        file = self._files.open(self.path(suffix))
        before = file.size()
        try:
            file.write(data)
        except OSError:
            file.truncate(before)
            raise
        finally:
            file.close()

    def finish_time_index(self) -> None:
        """Adds the maximum timestamp, which is the last entry of a segment that is rolled or closed."""
        if self.max_timestamp > NO_TIMESTAMP:
            self.time_index().maybe_append(self.max_timestamp, self.max_timestamp_offset)

    def seal(self, *, sync: bool = False) -> None:
        """Makes the active segment a closed one: writes its indexes, and hands them to the cache.

        :param sync: whether it is fsynced. Otherwise a power cut may leave the next segment without these records. Then
            recovery notices the gap, but in a compacted log, which has others
        """
        self.finish_time_index()
        self.write_indexes()
        if sync:
            self.file.fsync()
        self.active = False
        if self._index is not None and self._time_index is not None:
            self._cache.add(self, self._index.size + self._time_index.size)

    def forget_indexes(self) -> None:
        """Releases the memory of the indexes. The next use loads them from the files."""
        self._index = self._time_index = self._remembered = None
        self.transactions.forget()

    def largest_timestamp(self) -> tuple[int, int]:
        """Returns the maximum timestamp of all records and the last offset of its batch.

        The timestamp is -1 when no record has one.
        """
        if self.max_timestamp == UNKNOWN:
            entry = self._last_entry(TIME_INDEX_SUFFIX, TIME_ENTRY) if self._time_index is None else None
            last = self.time_index().last if entry is None else (entry[0], self.base_offset + entry[1])
            if last[0] == NO_TIMESTAMP or self._passes(is_last_entry_valid, *last):
                self.max_timestamp, self.max_timestamp_offset = last
            else:
                self._rebuild_invalid(f"its latest timestamp is not {last[0]}")
        return self.max_timestamp, self.max_timestamp_offset

    def _passes(self, check: Callable[["Segment", Entries, int, int], bool], latest: int, offset: int) -> bool:
        """Runs a check of the time index's last entry against the offset index, in memory or in its file."""
        if self._index is not None:
            return check(self, self._index, latest, offset)
        try:
            with contextlib.closing(self._files.open(self.path(INDEX_SUFFIX))) as file:
                return check(self, StoredEntries(file), latest, offset)
        except FileNotFoundError:
            return False

    def _last_entry(self, suffix: str, entry: Struct) -> tuple[int, int] | None:
        """Returns the last entry in an index file; None when the file is missing, empty or not whole entries."""
        try:
            with contextlib.closing(self._files.open(self.path(suffix))) as file:
                size = file.size()
                if size == 0 or size % entry.size:
                    return None
                first, second = entry.unpack(file.pread(entry.size, size - entry.size))
        except FileNotFoundError:
            return None
        return first, second

    def find_end(self) -> int:
        """Makes a segment that was closed by a clean shutdown the active one. Reads from its last index entry on.

        Returns the offset after the last record.

        :raises CorruptIndex: an index is invalid; the segment then needs recovery
        :raises CorruptMessage: a batch is invalid; the segment then needs recovery
        """
        entry = self._last_entry(INDEX_SUFFIX, OFFSET_ENTRY)
        position, next_offset = 0, self.base_offset
        if entry is not None:
            position = entry[1]
            self._check_entry(self.base_offset + entry[0], position)
        last = self._last_entry(TIME_INDEX_SUFFIX, TIME_ENTRY)
        if last is None and entry is not None and self.first_timestamp() >= 0:
            raise CorruptIndex("the time index is empty, and records have timestamps")
        latest, latest_offset = (last[0], self.base_offset + last[1]) if last else (NO_TIMESTAMP, self.base_offset)
        is_valid = last is None
        for batch in self.scan(position, GLANCE):
            next_offset = batch.last_offset + 1
            if batch.base_offset <= latest_offset <= batch.last_offset and batch.max_timestamp == latest:
                is_valid = True
            if batch.max_timestamp > latest:
                is_valid = last is None
                latest, latest_offset = batch.max_timestamp, batch.last_offset
        if not (is_valid or (last and self._passes(is_entry_valid, last[0], self.base_offset + last[1]))):
            raise CorruptIndex(f"the time index ends with {latest}, which is not the latest timestamp")
        self.max_timestamp, self.max_timestamp_offset = latest, latest_offset
        self.active = True
        return next_offset

    def end_offset(self) -> int:
        """Returns the offset after the last record; the base offset when the segment is empty.

        :raises CorruptMessage: the end of the file is not a batch
        """
        end = self.base_offset
        for batch in self.scan(self._boundary_before(self.size), GLANCE):
            end = batch.last_offset + 1
        return end

    def age_timestamp(self) -> int:
        """Returns the time from which ``retention.ms`` counts, in ms.

        It is the maximum timestamp, or the modification time of the file where records have no timestamps.
        """
        latest, _ = self.largest_timestamp()
        return latest if latest >= 0 else self.modified_ms()

    def modified_ms(self) -> int:
        """Returns the modification time of the ``.log`` file, in ms.

        :raises OSError: it cannot be read
        """
        return self._files.modified_ms(self.path(LOG_SUFFIX))

    # ------------------------------------------------------------ reading

    def scan(self, position: int = 0, stride: int = STRIDE) -> Iterator[BatchAt]:
        """Yields the batches from ``position`` on, as :func:`barnabas.log.scan.scan` does."""
        return scan(self.file, position, self.size, stride)

    def locate(self, offset: int) -> int:
        """Returns the position of the batch that holds ``offset``, or of the first one after it; else the size."""
        if self._remembered is not None:
            known = self._remembered.get(offset)
            if known is not None:
                return known
        position = self._position_before(offset)
        pread, size = self.file.pread, self.size
        while position < size:
            piece = pread(GLANCE, position)
            at, end = 0, len(piece) - HEADER_SIZE
            if end < 0:
                raise corrupt(self.file, position, f"{len(piece)} bytes are too few for a batch")
            while at <= end:
                base_offset, length, delta = SHORT_HEADER.unpack_from(piece, at)
                if base_offset + delta >= offset:
                    return position + at
                if length < MIN_LENGTH:
                    raise corrupt(self.file, position + at, f"batch length {length}")
                at += LOG_OVERHEAD + length
            position += at
        return size

    def read(
        self,
        offset: int,
        max_bytes: int,
        up_to: int,
        end_offset: int,
        minimum_one: bool,
        cached_only: bool = False,
    ) -> bytes | None:
        """Returns whole batches from the one that holds ``offset``, with all offsets below ``up_to``.

        Returns as many as fit into ``max_bytes``, possibly none, and None when there are none to return. Usually this
        is one pread: the position after the last batch is remembered for the reader's next call, and the index knows
        most batch boundaries.

        :param end_offset: where the segment ends
        :param minimum_one: return the first batch even if it is larger than ``max_bytes``
        :param cached_only: do not wait for the disk
        :raises NotCached: with ``cached_only`` when the batches are not in the page cache
        """
        start = self.locate(offset)
        limit = self.size if up_to >= end_offset else self.locate(up_to)
        if start >= limit:
            return None
        end = start + max_bytes
        if cached_only and (not self.active or end < self.size - _RECENT_BYTES):
            size = min(end, limit) - start
            if size > 0 and not self.file.is_cached(size, start):
                raise NotCached(self.file.path, size, start)
        if end >= limit:
            end, next_offset = limit, min(up_to, end_offset)
        else:
            end, next_offset = self._last_whole_batch(start, end, minimum_one)
            if end <= start or end > limit:
                return b""
        data = self.file.pread(end - start, start)
        if len(data) != end - start:
            raise OSError(errno.EIO, f"the file ends {end - start - len(data)} bytes early", self.file.path)
        self._remember(next_offset, end)
        return data

    def _last_whole_batch(self, start: int, end: int, minimum_one: bool) -> tuple[int, int]:
        """Returns the position and the base offset of the first batch that does not fit before ``end``.

        With ``minimum_one`` the batch at ``start`` counts as fitting.
        """
        position = max(start, self._boundary_before(end))
        while True:
            piece = self.file.pread(GLANCE, position)
            at, last = 0, len(piece) - HEADER_SIZE
            if last < 0:
                raise corrupt(self.file, position, f"{len(piece)} bytes are too few for a batch")
            while at <= last:
                base_offset, length, delta = SHORT_HEADER.unpack_from(piece, at)
                if length < MIN_LENGTH:
                    raise corrupt(self.file, position + at, f"batch length {length}")
                behind = position + at + LOG_OVERHEAD + length
                if behind > end:
                    if position + at == start and minimum_one:
                        return behind, base_offset + delta + 1
                    return position + at, base_offset
                at += LOG_OVERHEAD + length
            position += at

    def _remember(self, offset: int, position: int) -> None:
        """Remembers the position of ``offset``, at which a reader will continue."""
        remembered = self._remembered
        if remembered is None:
            remembered = self._remembered = {}
        elif len(remembered) >= _REMEMBERED:
            del remembered[next(iter(remembered))]
        remembered[offset] = position

    def offset_at(self, position: int) -> int:
        """Returns the base offset of the batch that starts at ``position``, which must not be the end."""
        return int.from_bytes(self.file.pread(8, position))

    def batch_at(self, place: BatchAt) -> RecordBatch:
        """Reads the batch at that place."""
        return RecordBatch.parse(self.file.pread(place.size, place.position))

    def offset_for_timestamp(self, timestamp: int, from_offset: int) -> tuple[int, int, int] | None:
        """Returns the first record from ``from_offset`` on whose timestamp is at least ``timestamp``.

        Returns its timestamp, offset and leader epoch; None when there is no such record.
        """
        latest, _ = self.largest_timestamp()
        if timestamp > latest:
            return None
        for place in self.scan(self._before_timestamp(timestamp, from_offset), GLANCE):
            if place.max_timestamp >= timestamp and place.last_offset >= from_offset:
                batch = self.batch_at(place)
                for record in records_of(batch):
                    if record.timestamp >= timestamp and record.offset >= from_offset:
                        return record.timestamp, record.offset, batch.partition_leader_epoch
        return None

    def _before_timestamp(self, timestamp: int, from_offset: int) -> int:
        """Returns a position before which no record has ``timestamp`` or a later one.

        It is at most one index interval before the first such record. Both indexes get their entries at the same
        batches: all batches with an offset index entry before the next time index entry have earlier timestamps.
        """
        time_index = self.time_index()
        if (
            time_index
            and self._is_from_file
            and not are_entries_valid(self, self.offset_index(), time_index, timestamp)
        ):
            self._rebuild_invalid(f"its entries around timestamp {timestamp} are wrong")
            time_index = self.time_index()
        position = self._position_before(max(time_index.offset_before(timestamp), from_offset))
        if time_index.timestamp_before(timestamp) < timestamp:
            following = time_index.offset_after(timestamp)
            until = self.offset_index().last_offset if following is None else following - 1
            position = max(position, self._position_before(until))
        return position

    def first_timestamp(self) -> int:
        """Returns the maximum timestamp of the first batch. The segment must not be empty."""
        if self.rolling_timestamp is None:
            self.rolling_timestamp = next(self.scan(0, GLANCE)).max_timestamp
        return self.rolling_timestamp

    # ------------------------------------------------------------ cutting and removing

    def truncate(self, offset: int, now_ms: int) -> int:
        """Removes the batch that holds ``offset`` and all batches after it. Returns the segment's new end offset."""
        position = self.locate(offset)
        if position < self.size:
            offset = min(offset, next(self.scan(position, GLANCE)).base_offset)
        index, time_index = self.offset_index(), self.time_index()
        index.truncate(offset)
        time_index.truncate(offset)
        self.transactions.truncate(offset)
        self.file.truncate(position)
        self.size = position
        self._remembered = None
        latest, latest_offset = time_index.last
        for batch in self.scan(index.positions[-1] if len(index) else 0):
            if batch.max_timestamp > latest:
                latest, latest_offset = batch.max_timestamp, batch.last_offset
        self.replace_indexes(index, time_index, latest, latest_offset)
        self.bytes_since_index = 0
        if position == 0:
            self.created_ms, self.rolling_timestamp = now_ms, None
        return offset

    def close(self) -> None:
        """Closes the file and releases the memory of the indexes."""
        self._cache.drop(self)
        self.forget_indexes()
        self.file.close()

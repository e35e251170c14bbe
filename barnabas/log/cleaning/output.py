"""A segment that a cleaner writes, beside the segments that it will replace.

Knows nothing of which batches are retained.
"""

import contextlib
from collections.abc import Iterable
from typing import Final

from barnabas.log.cleaning.job import CleanedGroup, CleaningFailed
from barnabas.log.files import Data, Files
from barnabas.log.limits import MAX_SEGMENT_BYTES
from barnabas.log.offset_index import OffsetIndex
from barnabas.log.segment import INDEX_SUFFIX, LOG_SUFFIX, SUFFIXES, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX
from barnabas.log.time_index import NO_TIMESTAMP, TimeIndex
from barnabas.log.transaction_index import AbortedTransaction, encode_transactions

CLEANED_SUFFIX: Final = ".cleaned"
WRITE_SIZE: Final = 1 << 20


class CleanedSegment:
    """The files ``<base offset>.log.cleaned`` and so on. They replace files of the same names."""

    def __init__(self, files: Files, directory: str, base_offset: int, index_interval: int) -> None:
        self._files = files
        self._stem = f"{directory}/{base_offset:020d}"
        self._index_interval = index_interval
        self._since_index = 0
        self._index, self._time_index = OffsetIndex(base_offset), TimeIndex(base_offset)
        self._pending = bytearray()
        self.base_offset = base_offset
        self.size = 0
        self.max_timestamp, self.max_timestamp_offset = NO_TIMESTAMP, base_offset
        self.discard()
        self._file = files.create(self._path(LOG_SUFFIX))

    def _path(self, suffix: str) -> str:
        return self._stem + suffix + CLEANED_SUFFIX

    def append(self, batch: Data, last_offset: int, max_timestamp: int) -> None:
        """Appends a batch, and adds index entries as ``LogSegment.append`` does.

        :raises OSError: the file cannot be written
        :raises CleaningFailed: the segment gets too large for int32 positions
        """
        position, size = self.size, len(batch)
        if position + size > MAX_SEGMENT_BYTES:
            raise CleaningFailed(f"{self._path(LOG_SUFFIX)} grows beyond {MAX_SEGMENT_BYTES} bytes")
        if max_timestamp > self.max_timestamp:
            self.max_timestamp, self.max_timestamp_offset = max_timestamp, last_offset
        if self._since_index > self._index_interval:
            self._index.append(last_offset, position)
            self._time_index.maybe_append(self.max_timestamp, self.max_timestamp_offset)
            self._since_index = 0
        self._since_index += size
        self.size = position + size
        self._pending += batch
        if len(self._pending) >= WRITE_SIZE:
            self._write_pending()

    def _write_pending(self) -> None:
        if self._pending:
            self._file.write(self._pending)
            self._pending.clear()

    def finish(self, replaces: list[int], aborted: Iterable[AbortedTransaction], modified_ms: int) -> CleanedGroup:
        """Writes the rest and the indexes, fsyncs them, and sets the files' modification times to ``modified_ms``."""
        self._write_pending()
        self._file.fsync()
        self._file.close()
        if self.max_timestamp > NO_TIMESTAMP:
            self._time_index.maybe_append(self.max_timestamp, self.max_timestamp_offset)
        contents = {INDEX_SUFFIX: self._index.encode(), TIME_INDEX_SUFFIX: self._time_index.encode()}
        if transactions := encode_transactions(aborted):
            contents[TXN_INDEX_SUFFIX] = transactions
        for suffix, data in contents.items():
            file = self._files.create(self._path(suffix))
            file.write(data)
            file.fsync()
            file.close()
        for suffix in (LOG_SUFFIX, *contents):
            self._files.set_modified_ms(self._path(suffix), modified_ms)
        return CleanedGroup(
            self.base_offset,
            replaces,
            self.size,
            self.max_timestamp,
            self.max_timestamp_offset,
            modified_ms,
            TXN_INDEX_SUFFIX in contents,
        )

    def discard(self) -> None:
        """Deletes the files.

        :raises OSError: that fails
        """
        for suffix in SUFFIXES:
            self._files.delete(self._path(suffix))

    def abandon(self) -> None:
        """Deletes the files after an error, as far as possible."""
        with contextlib.suppress(OSError):
            self._file.close()
            self.discard()

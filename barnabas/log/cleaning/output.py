"""A segment that is being written by a cleaner, beside those whose place it is to take.

Knows nothing of which batches belong into it.
"""

import contextlib
from collections.abc import Iterable
from typing import Final

from barnabas.log.cleaning.job import CleanedGroup, CleaningFailed
from barnabas.log.files import Data, Files
from barnabas.log.offset_index import OffsetIndex
from barnabas.log.segment import INDEX_SUFFIX, LOG_SUFFIX, MAX_SIZE, SUFFIXES, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX
from barnabas.log.time_index import NO_TIMESTAMP, TimeIndex
from barnabas.log.transaction_index import AbortedTransaction, encode_transactions

CLEANED_SUFFIX: Final = ".cleaned"
WRITE_SIZE: Final = 1 << 20


class CleanedSegment:
    """Files ``<base offset>.log.cleaned`` and so on. What was there under these names is gone."""

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
        """Add a batch, and index it as ``LogSegment.append`` does.

        Raises OSError, and CleaningFailed where positions have no more bits.
        """
        position, size = self.size, len(batch)
        if position + size > MAX_SIZE:
            raise CleaningFailed(f"{self._path(LOG_SUFFIX)} grows beyond {MAX_SIZE} bytes")
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
        """Write all that is left, put it on the disk, and date the files back to when the last original changed."""
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
        """Delete what there is of it. Raises OSError."""
        for suffix in SUFFIXES:
            self._files.delete(self._path(suffix))

    def abandon(self) -> None:
        """Delete what can be deleted: something went wrong already."""
        with contextlib.suppress(OSError):
            self._file.close()
            self.discard()

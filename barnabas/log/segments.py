"""The segments of one log, oldest first. Each segment ends at the base offset of the next.

Knows nothing of the high watermark and of leader epochs.
"""

import contextlib
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, islice
from typing import NamedTuple, overload

from barnabas.errors import CorruptMessage
from barnabas.log.files import Data, Files
from barnabas.log.read_check import check_read
from barnabas.log.segment import DELETED_SUFFIX, INDEX_SUFFIX, SUFFIXES, TIME_INDEX_SUFFIX, Segment
from barnabas.log.services import SegmentServices
from barnabas.log.transaction_index import AbortedTransaction


class Flush(NamedTuple):
    """The fsyncs, in any thread, after which everything below ``up_to`` is on the disk."""

    up_to: int
    steps: list[Callable[[], None]]
    truncations: int  #: the log's count of truncations when the flush began

    def run(self) -> None:
        """Runs all steps.

        :raises OSError: one fails
        """
        for step in self.steps:
            step()


class Segments(Sequence[Segment]):
    """One or more segments. The last one is :attr:`active`."""

    __slots__ = ("_bases", "_directory", "_latest", "_segments", "_services", "active", "rolled_bytes")

    def __init__(self, services: SegmentServices, directory: str, segments: list[Segment]) -> None:
        self._services = services
        self._directory = directory
        self._segments = segments
        self._bases = [segment.base_offset for segment in segments]
        #: The maximum timestamp up to each closed segment; None until the first use.
        self._latest: list[int] | None = None
        self.active = segments[-1]
        self.rolled_bytes = 0  #: of the segments that were active, and rolled, since the log was opened

    def __len__(self) -> int:
        return len(self._segments)

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._segments)

    @overload
    def __getitem__(self, index: int) -> Segment: ...
    @overload
    def __getitem__(self, index: slice) -> list[Segment]: ...
    def __getitem__(self, index: int | slice) -> Segment | list[Segment]:
        return self._segments[index]

    @property
    def size(self) -> int:
        """The number of bytes in all segments."""
        return sum(segment.size for segment in self._segments)

    @property
    def end_position(self) -> int:
        """Grows by the bytes of each append. Retention and compaction do not change it; a truncation may."""
        return self.rolled_bytes + self.active.size

    @property
    def start(self) -> int:
        """The base offset of the first segment."""
        return self._bases[0]

    def with_ends(self, log_end_offset: int) -> Iterator[tuple[Segment, int]]:
        """Yields each segment with its end offset."""
        return zip(self._segments, [*self._bases[1:], log_end_offset], strict=True)

    def read(
        self, offset: int, max_bytes: int, up_to: int, log_end_offset: int, minimum_one: bool, cached_only: bool = False
    ) -> bytes:
        """Reads as :meth:`Segment.read` does, from the first segment with a batch at ``offset`` or after it."""
        bases = self._bases
        slot = first = len(bases) - 1 if offset >= bases[-1] else max(bisect_right(bases, offset) - 1, 0)
        try:
            while slot < len(bases) and bases[slot] < up_to:
                end = bases[slot + 1] if slot + 1 < len(bases) else log_end_offset
                data = self._segments[slot].read(offset, max_bytes, up_to, end, minimum_one, cached_only)
                if data is not None:
                    if self._services.checks_reads:
                        check_read(self._segments[first : slot + 1], offset, data)
                    return data
                slot += 1  # compaction has removed everything from ``offset`` on from that segment
        except CorruptMessage as error:
            self._services.report_corruption(error)
            raise
        return b""

    def _slot_holding(self, offset: int) -> int:
        return max(bisect_right(self._bases, offset) - 1, 0)

    def aborted_transactions(self, offset: int, data: Data, log_end_offset: int) -> list[AbortedTransaction]:
        """Returns the aborted transactions with records in ``data``, which was read from ``offset`` on.

        Their markers may be in later segments.

        :raises CorruptMessage: a transaction index is invalid
        """
        found: list[AbortedTransaction] = []
        up_to = -1
        for segment in islice(self._segments, self._slot_holding(offset), None):
            if segment.transactions.entries:
                if up_to < 0:
                    up_to = self._end_of(data, log_end_offset)
                if segment.transactions.collect(offset, up_to, found):
                    break
        return found

    def _end_of(self, data: Data, log_end_offset: int) -> int:
        """Returns the offset after the last batch in ``data``, by the batch that follows it in the file."""
        first = int.from_bytes(data[:8])
        slot = self._slot_holding(first)
        segment = self._segments[slot]
        position = segment.locate(first) + len(data)
        if position < segment.size:
            return segment.offset_at(position)
        return self._bases[slot + 1] if slot + 1 < len(self._bases) else log_end_offset

    def bytes_between(self, offset: int, end: int, log_end_offset: int) -> int:
        """Returns the size in bytes of the batches from ``offset`` to below ``end``."""
        total = 0
        for segment, segment_end in islice(self.with_ends(log_end_offset), self._slot_holding(offset), None):
            if segment.base_offset >= end:
                break
            start = segment.locate(offset) if offset > segment.base_offset else 0
            total += (segment.locate(end) if end < segment_end else segment.size) - start
        return total

    def offset_for_timestamp(self, timestamp: int, from_offset: int) -> tuple[int, int, int] | None:
        """Returns timestamp, offset and leader epoch of the first record from ``from_offset`` on at ``timestamp``.

        The record's timestamp is ``timestamp`` or later. None when there is none.

        :raises OSError: a file cannot be read
        """
        for segment in islice(self._segments, bisect_left(self._latest_up_to(), timestamp), None):
            if segment.largest_timestamp()[0] >= timestamp:
                found = segment.offset_for_timestamp(timestamp, from_offset)
                if found is not None:
                    return found
        return None

    def max_timestamp_offset(self) -> tuple[int, int, int] | None:
        """Returns timestamp, offset and leader epoch of the first record with the maximum timestamp.

        :raises OSError: a file cannot be read
        """
        latest = self._latest_up_to()
        if latest and latest[-1] >= self.active.largest_timestamp()[0]:
            segment = self._segments[bisect_left(latest, latest[-1])]
        else:
            segment = self.active
        return segment.offset_for_timestamp(segment.largest_timestamp()[0], segment.base_offset)

    def _latest_up_to(self) -> list[int]:
        """Returns the maximum timestamp up to each closed segment. It ascends, so that a search can bisect."""
        if self._latest is None:
            times = (segment.largest_timestamp()[0] for segment in self._segments[:-1])
            self._latest = list(accumulate(times, max))
        return self._latest

    def add(self, base_offset: int, now_ms: int) -> Segment:
        """Creates the active segment. ``base_offset`` must be the end of the segment before."""
        services = self._services
        self.active = Segment.create(services.files, self._directory, base_offset, services.index_cache, now_ms)
        self._segments.append(self.active)
        self._latest = None
        self._bases.append(base_offset)
        return self.active

    def drop_oldest(self, count: int, delay_ms: int) -> list[Segment]:
        """Removes the oldest segments. Their files are renamed at once and deleted ``delay_ms`` later."""
        gone = self._segments[:count]
        del self._segments[:count], self._bases[:count]
        self._latest = None
        self.remove_files(gone, delay_ms)
        return gone

    def drop_from(self, slot: int) -> list[Segment]:
        """Removes the segments from number ``slot`` on, newest first, so that a crash in between leaves no gap."""
        gone = self._segments[slot:][::-1]
        del self._segments[slot:], self._bases[slot:]
        self._latest = None
        if self._segments:
            self.active = self._segments[-1]
            self.active.active = True
        self.remove_files(gone, 0)
        return gone

    def slot_of(self, base_offset: int) -> int:
        """Returns the number of the first segment whose base offset is ``base_offset`` or above."""
        return bisect_left(self._bases, base_offset)

    def remove_files(self, segments: list[Segment], delay_ms: int) -> None:
        """Renames the files of segments to ``.deleted``, and has them deleted ``delay_ms`` later."""
        files, paths = self._services.files, []
        for segment in segments:
            segment.close()
            for path in map(segment.path, SUFFIXES):
                if files.exists(path):
                    files.rename(path, path + DELETED_SUFFIX)
                    paths.append(path + DELETED_SUFFIX)
        self._services.delete_later(paths, delay_ms)

    def replace(self, slot: int, count: int, base_offset: int, size: int) -> Segment:
        """Replaces ``count`` segments by a closed segment whose files exist. No file is renamed."""
        services = self._services
        new = Segment(services.files, self._directory, base_offset, size, services.index_cache)
        self._segments[slot : slot + count] = [new]
        self._bases[slot : slot + count] = [base_offset]
        self._latest = None
        return new

    def begin_flush(self, recovery_point: int, up_to: int, log_end_offset: int) -> list[Callable[[], None]]:
        """Writes the index entries that are only in memory. Returns the fsyncs of everything below ``up_to``."""
        files = self._services.files
        steps: list[Callable[[], None]] = []
        for segment, end in self.with_ends(log_end_offset):
            if end > recovery_point and segment.base_offset < up_to:
                segment.write_indexes()
                steps.append(segment.file.syncer())
                steps += [sync_if_there(files, segment.path(suffix)) for suffix in (INDEX_SUFFIX, TIME_INDEX_SUFFIX)]
                if segment.transactions.unsynced:
                    segment.transactions.unsynced = False
                    steps.append(sync_if_there(files, segment.transactions.path))
        return steps


def sync_if_there(files: Files, path: str) -> Callable[[], None]:
    """Returns the fsync of a file or directory. In any thread; retention or truncation may delete the file first."""

    def sync() -> None:
        with contextlib.suppress(FileNotFoundError):
            files.fsync_path(path)

    return sync

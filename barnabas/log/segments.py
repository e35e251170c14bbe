"""The segments of one log, oldest first, without a gap: each ends where the next begins.

Knows nothing of what the log around them has promised to whom.
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
from barnabas.log.services import LogServices
from barnabas.log.transaction_index import AbortedTransaction


class Flush(NamedTuple):
    """What must be done, in any thread, before everything below ``up_to`` is safe on the disk."""

    up_to: int
    steps: list[Callable[[], None]]
    era: int  #: the log's, when it began

    def run(self) -> None:
        """Do it. Raises OSError."""
        for step in self.steps:
            step()


class Segments(Sequence[Segment]):
    """At least one segment; the last is :attr:`active`."""

    __slots__ = ("_bases", "_directory", "_latest", "_segments", "_services", "active")

    def __init__(self, services: LogServices, directory: str, segments: list[Segment]) -> None:
        self._services = services
        self._directory = directory
        self._segments = segments
        self._bases = [segment.base_offset for segment in segments]
        #: The latest timestamp up to each segment but the active one; None until somebody asks.
        self._latest: list[int] | None = None
        self.active = segments[-1]

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
        """Bytes in all of them."""
        return sum(segment.size for segment in self._segments)

    @property
    def start(self) -> int:
        """Where the first begins."""
        return self._bases[0]

    def with_ends(self, log_end_offset: int) -> Iterator[tuple[Segment, int]]:
        """Each segment, and the offset at which it ends."""
        return zip(self._segments, [*self._bases[1:], log_end_offset], strict=True)

    def read(self, offset: int, max_bytes: int, up_to: int, log_end_offset: int, minimum_one: bool) -> bytes:
        """What :meth:`Segment.read` gives, of the first segment that has something at ``offset`` or after it."""
        bases = self._bases
        slot = first = len(bases) - 1 if offset >= bases[-1] else max(bisect_right(bases, offset) - 1, 0)
        try:
            while slot < len(bases) and bases[slot] < up_to:
                end = bases[slot + 1] if slot + 1 < len(bases) else log_end_offset
                data = self._segments[slot].read(offset, max_bytes, up_to, end, minimum_one)
                if data is not None:
                    if self._services.checks_reads:
                        check_read(self._segments[first : slot + 1], offset, data)
                    return data
                slot += 1  # compaction left nothing from ``offset`` on in that segment
        except CorruptMessage as error:
            self._services.damaged(error)
            raise
        return b""

    def _slot_holding(self, offset: int) -> int:
        return max(bisect_right(self._bases, offset) - 1, 0)

    def aborted_transactions(self, offset: int, data: Data, log_end_offset: int) -> list[AbortedTransaction]:
        """The aborted transactions that a reader meets in ``data``, which was read from ``offset`` on.

        In whatever segments their markers are. Raises CorruptMessage.
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
        """The offset after the last batch in ``data``, by what follows it in the file."""
        first = int.from_bytes(data[:8])
        slot = self._slot_holding(first)
        segment = self._segments[slot]
        position = segment.locate(first) + len(data)
        if position < segment.size:
            return segment.offset_at(position)
        return self._bases[slot + 1] if slot + 1 < len(self._bases) else log_end_offset

    def bytes_between(self, offset: int, end: int, log_end_offset: int) -> int:
        """How many bytes the batches from ``offset`` to below ``end`` take."""
        total = 0
        for segment, segment_end in islice(self.with_ends(log_end_offset), self._slot_holding(offset), None):
            if segment.base_offset >= end:
                break
            start = segment.locate(offset) if offset > segment.base_offset else 0
            total += (segment.locate(end) if end < segment_end else segment.size) - start
        return total

    def from_time(self, timestamp: int) -> Iterator[Segment]:
        """Those from the first on in which some record is as late as ``timestamp``, or later. Raises OSError."""
        return islice(self._segments, bisect_left(self._latest_up_to(), timestamp), None)

    def with_latest(self) -> Segment:
        """The first in which the latest timestamp of all is. Raises OSError."""
        latest = self._latest_up_to()
        if latest and latest[-1] >= self.active.largest_timestamp()[0]:
            return self._segments[bisect_left(latest, latest[-1])]
        return self.active

    def _latest_up_to(self) -> list[int]:
        """Ascends, so that one need not look at each segment for each time that is asked for."""
        if self._latest is None:
            times = (segment.largest_timestamp()[0] for segment in self._segments[:-1])
            self._latest = list(accumulate(times, max))
        return self._latest

    def add(self, base_offset: int, now_ms: int) -> Segment:
        """A new active segment, which must begin where the last one ends."""
        services = self._services
        self.active = Segment.create(services.files, self._directory, base_offset, services.index_cache, now_ms)
        self._segments.append(self.active)
        self._latest = None
        self._bases.append(base_offset)
        return self.active

    def drop_oldest(self, count: int, delay_ms: int) -> list[Segment]:
        """Take that many out of the log, and of the directory: renamed at once, deleted ``delay_ms`` later."""
        gone = self._segments[:count]
        del self._segments[:count], self._bases[:count]
        self._latest = None
        self._remove(gone, delay_ms)
        return gone

    def drop_from(self, slot: int) -> list[Segment]:
        """Take segments number ``slot`` and after out, newest first: a crash in between must not leave a hole."""
        gone = self._segments[slot:][::-1]
        del self._segments[slot:], self._bases[slot:]
        self._latest = None
        if self._segments:
            self.active = self._segments[-1]
            self.active.active = True
        self._remove(gone, 0)
        return gone

    def slot_of(self, base_offset: int) -> int:
        """The number of the first segment that begins at or after ``base_offset``."""
        return bisect_left(self._bases, base_offset)

    def set_aside(self, segments: list[Segment], delay_ms: int) -> None:
        """Take the files of segments out of the directory, as :meth:`drop_oldest`, for others to be put there."""
        self._remove(segments, delay_ms)

    def replace(self, slot: int, count: int, base_offset: int, size: int) -> Segment:
        """Let a closed segment, whose files are there, stand where ``count`` of them stood; nothing is renamed."""
        services = self._services
        new = Segment(services.files, self._directory, base_offset, size, services.index_cache)
        self._segments[slot : slot + count] = [new]
        self._bases[slot : slot + count] = [base_offset]
        self._latest = None
        return new

    def _remove(self, segments: list[Segment], delay_ms: int) -> None:
        files, paths = self._services.files, []
        for segment in segments:
            segment.close()
            for path in map(segment.path, SUFFIXES):
                if files.exists(path):
                    files.rename(path, path + DELETED_SUFFIX)
                    paths.append(path + DELETED_SUFFIX)
        self._services.delete_later(paths, delay_ms)

    def begin_flush(self, recovery_point: int, up_to: int, log_end_offset: int) -> list[Callable[[], None]]:
        """Write the index entries that are only in memory; what then puts all below ``up_to`` on the disk."""
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
    """What fsyncs a file or directory, in any thread, unless retention or a truncation is faster."""

    def sync() -> None:
        with contextlib.suppress(FileNotFoundError):
            files.fsync_path(path)

    return sync

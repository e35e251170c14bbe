"""One pass of a cleaner over a log: builds the offset map, then rewrites the segments with the retained records.

Knows nothing of which log is cleaned, nor of how the new segments are swapped in. The rules are those of Apache Kafka's
``Cleaner``.
"""

import contextlib
import time
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from typing import Final

from barnabas.clock import Clock
from barnabas.errors import CorruptMessage, KafkaError
from barnabas.log.cleaning.filtering import empty_batch, find_records, rebuild_batch, record_starts, retained_records
from barnabas.log.cleaning.grouping import Group, groups
from barnabas.log.cleaning.job import CleanedGroup, CleaningJob, CleaningResult, SegmentFile, Statistics
from barnabas.log.cleaning.offset_map import OffsetMap
from barnabas.log.cleaning.output import CleanedSegment
from barnabas.log.cleaning.throttle import Throttle
from barnabas.log.cleaning.transactions import CleanedTransactions, aborted_transactions
from barnabas.log.files import Data, Files
from barnabas.log.offset_index import CorruptIndex, OffsetIndex
from barnabas.log.segment import INDEX_SUFFIX, LOG_SUFFIX
from barnabas.records.batch import HEADER_SIZE, LOG_OVERHEAD, RecordBatch, batches
from barnabas.records.record import body_of

READ_SIZE: Final = 1 << 20


def clean(
    files: Files,
    job: CleaningJob,
    clock: Clock,
    *,
    sleep: Callable[[float], object] = time.sleep,
    cpu_seconds: Callable[[], float] = time.process_time,
    check_aborted: Callable[[], object] = lambda: None,
) -> Generator[CleanedGroup, None, CleaningResult]:
    """Rewrites the segments of ``job``, and yields each new segment when it is fsynced. Returns the result of the pass.

    No existing file is renamed or deleted, except ``.cleaned`` files of an earlier pass.

    :param sleep: waits so that the limit of bytes per second is kept
    :param check_aborted: is called after each read, and may raise to end the pass
    :raises CorruptMessage: a batch is corrupt; the message names file and position
    :raises OSError: a file cannot be read or written
    :raises CleaningFailed: the log cannot be cleaned
    """
    return CleaningPass(files, job, clock, sleep, cpu_seconds, check_aborted).run()


class CleaningPass:
    """The state of a pass."""

    def __init__(
        self,
        files: Files,
        job: CleaningJob,
        clock: Clock,
        sleep: Callable[[float], object],
        cpu_seconds: Callable[[], float],
        check_aborted: Callable[[], object],
    ) -> None:
        self._files, self._job, self._clock = files, job, clock
        self._cpu_seconds, self._check_aborted = cpu_seconds, check_aborted
        self._throttle = Throttle(job.max_bytes_per_second, clock, sleep)
        self._known = OffsetMap(job.map_entries, job.first_dirty_offset - 1)
        self._mapped = self._read = self._kept = 0  # records
        self._bytes_mapped = self._bytes_read = self._bytes_kept = 0
        self._unthrottled = 0  # bytes that were written and not yet counted by the throttle
        self._path, self._position = "", 0  # of the current batch

    def run(self) -> Generator[CleanedGroup, None, CleaningResult]:
        job = self._job
        began, cpu_began = self._clock.monotonic(), self._cpu_seconds()
        sizes = self._files.sizes(job.directory)
        transactions = self._transactions_from(job.first_dirty_offset, sizes)
        with self._naming_position():
            is_full = self._build_offset_map(transactions)
        self._known.complete()
        next_dirty_offset = self._known.latest_offset + 1
        if job.segments:
            transactions = self._transactions_from(job.segments[0].base_offset, sizes)
        for group in groups(job, next_dirty_offset, sizes):
            with self._naming_position():
                cleaned = self._write(group, transactions)
            yield cleaned
        statistics = Statistics(
            self._bytes_mapped,
            self._mapped,
            len(self._known),
            is_full,
            self._bytes_read,
            self._read,
            self._bytes_kept,
            self._kept,
            self._clock.monotonic() - began,
            self._cpu_seconds() - cpu_began,
        )
        return CleaningResult(next_dirty_offset, statistics)

    def _transactions_from(self, offset: int, names: Collection[str]) -> CleanedTransactions:
        job = self._job
        return CleanedTransactions(aborted_transactions(self._files, job.directory, names, offset, job.end_offset))

    # ------------------------------------------------------------ first reading: the offset map

    def _build_offset_map(self, transactions: CleanedTransactions) -> bool:
        """Adds the records from the first dirty offset on to the offset map. Returns whether the map is full."""
        job, known = self._job, self._known
        for segment, end in job.with_ends():
            if end > job.first_dirty_offset:
                if not self._map_segment(segment, transactions):
                    return True
                known.latest_offset = end - 1  # compaction or a marker may have left a gap at the segment's end
        return False

    def _map_segment(self, segment: SegmentFile, transactions: CleanedTransactions) -> bool:
        known, start = self._known, self._job.first_dirty_offset
        for batch, body in self._bodies(segment, self._position_before(segment, start), start, transactions):
            self._mapped += batch.count
            self._bytes_mapped += batch.size_in_bytes
            if body and not known.add(body, batch.count, batch.base_offset, start):
                return False
            known.latest_offset = batch.last_offset
        return True

    def _bodies(
        self, segment: SegmentFile, position: int, start: int, transactions: CleanedTransactions
    ) -> Iterator[tuple[RecordBatch, bytes]]:
        """Yields the batches with an offset from ``start`` on, with the uncompressed records of those that count."""
        for batch in self._batches(segment, position):
            if batch.is_control:
                transactions.can_discard_marker(batch)
                counts = False
            else:
                counts = not transactions.is_aborted(batch)
            if batch.last_offset >= start:
                yield batch, body_of(batch) if counts and batch.count else b""

    def _position_before(self, segment: SegmentFile, offset: int) -> int:
        """Returns a position at or before ``offset``, by the offset index; 0 where there is none."""
        if offset <= segment.base_offset:
            return 0
        path = f"{self._job.directory}/{segment.base_offset:020d}{INDEX_SUFFIX}"
        try:
            return OffsetIndex.decode(self._files.read(path), segment.base_offset).position_before(offset)
        except (FileNotFoundError, CorruptIndex):
            return 0

    # ------------------------------------------------------------ second reading, and writing

    def _write(self, group: Group, transactions: CleanedTransactions) -> CleanedGroup:
        job = self._job
        base_offset = group[0].base_offset
        out = CleanedSegment(self._files, job.directory, base_offset, job.index_interval_bytes)
        try:
            transactions.retained.clear()
            for segment in group:
                for batch in self._batches(segment, 0):
                    self._filter(batch, transactions, out)
            replaces = [segment.base_offset for segment in group]
            return out.finish(replaces, transactions.retained, group[-1].modified_ms)
        except BaseException:
            out.abandon()
            raise

    def _filter(self, batch: RecordBatch, transactions: CleanedTransactions, out: CleanedSegment) -> None:
        """Writes what is retained of a batch (``RecordFilter.checkBatchRetention``, ``MemoryRecords.filterTo``)."""
        self._read += batch.count
        self._bytes_read += batch.size_in_bytes
        body, starts, needs_horizon = self._retained(batch, transactions)
        if not starts:
            if self._is_empty_batch_retained(batch):
                self._append(empty_batch(batch), batch.last_offset, batch.max_timestamp, 0, out)
            return
        gets_horizon = needs_horizon and not batch.has_delete_horizon
        if len(starts) == batch.count and not gets_horizon:
            self._append(batch.buffer, batch.last_offset, batch.max_timestamp, batch.count, out)
            return
        horizon = batch.base_timestamp if batch.has_delete_horizon else None
        if gets_horizon:
            horizon = self._job.now_ms + self._job.delete_retention_ms
        data, max_timestamp = rebuild_batch(batch, body, starts, horizon)
        self._append(data, batch.last_offset, max_timestamp, len(starts), out)

    def _append(self, data: Data, last_offset: int, max_timestamp: int, count: int, out: CleanedSegment) -> None:
        out.append(data, last_offset, max_timestamp)
        self._kept += count
        self._bytes_kept += len(data)
        self._unthrottled += len(data)

    def _retained(self, batch: RecordBatch, transactions: CleanedTransactions) -> tuple[bytes, Sequence[int], bool]:
        """Returns a batch's uncompressed body, the starts of the retained records, and whether it needs a horizon.

        A delete horizon is needed when some of the records are tombstones or a marker, which are removed later.
        """
        is_over = batch.has_delete_horizon and batch.base_timestamp <= self._job.now_ms
        if batch.is_control:
            can_discard = transactions.can_discard_marker(batch)
            if not batch.count or (can_discard and is_over):
                return b"", [], False
            body = body_of(batch)
            return body, record_starts(body, batch.count), can_discard
        if transactions.is_aborted(batch) or not batch.count:
            return b"", [], False
        if batch.base_offset >= self._job.first_dirty_offset and batch.count == batch.last_offset_delta + 1:
            survivors = self._known.survivors(batch.base_offset, batch.last_offset)
            if survivors is not None:
                if len(survivors) in (0, batch.count):
                    return b"", survivors, False
                body = body_of(batch)
                found = find_records(body, batch.count, batch.base_offset, survivors)
                if found is not None:
                    return body, found, False
        body = body_of(batch)
        starts, has_tombstones = retained_records(
            body, batch.count, batch.base_offset, self._known, drops_tombstones=is_over
        )
        return body, starts, has_tombstones

    def _is_empty_batch_retained(self, batch: RecordBatch) -> bool:
        """Returns whether the batch is the last of an active producer, or the last one of the cleaned part."""
        producer = self._job.producers.get(batch.producer_id) if batch.has_producer_id else None
        if producer is not None:
            if producer.last_data_offset >= 0:
                if batch.last_offset == producer.last_data_offset:
                    return True
            elif batch.is_control and batch.producer_epoch == producer.producer_epoch:
                return True
        return batch.next_offset == self._job.end_offset

    # ------------------------------------------------------------ reading

    def _batches(self, segment: SegmentFile, position: int) -> Iterator[RecordBatch]:
        """Yields the batches of a segment from ``position`` on, with their CRCs checked."""
        file = self._files.open(f"{self._job.directory}/{segment.base_offset:020d}{LOG_SUFFIX}")
        self._path = file.path
        try:
            size, wanted = segment.size, READ_SIZE
            while position < size:
                start = self._position = position
                piece = file.pread(min(wanted, size - position), position)
                self._throttle.add(len(piece) + self._unthrottled)
                self._unthrottled = 0
                self._check_aborted()
                for batch in batches(piece):
                    batch.check_crc()
                    yield batch
                    self._position = position = position + batch.size_in_bytes
                wanted = READ_SIZE if position > start else size_of_batch(piece, size - position)
        finally:
            file.close()

    @contextlib.contextmanager
    def _naming_position(self) -> Iterator[None]:
        """Adds file and position of the current batch to an error."""
        try:
            yield
        except KafkaError as error:
            raise CorruptMessage(f"{self._path} at position {self._position}: {error}") from error


def size_of_batch(piece: bytes, left: int) -> int:
    """Returns the size of the batch of which ``piece`` is the start. The file has ``left`` bytes from there on."""
    if len(piece) >= HEADER_SIZE:
        size = LOG_OVERHEAD + int.from_bytes(piece[8:12], "big")
        if len(piece) < size <= left:
            return size
    raise CorruptMessage(f"a batch is longer than the rest of the file, which is {left} bytes")

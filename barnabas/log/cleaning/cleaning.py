"""One pass of a cleaner over a log: learn the latest offset of each key, then write the segments anew without the rest.

Must not decide which log is to be cleaned, nor put the new segments in place. Rules of Apache Kafka's ``Cleaner``.
"""

import contextlib
import time
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from typing import Final

from barnabas.clock import Clock
from barnabas.errors import CorruptMessage, KafkaError
from barnabas.log.cleaning.filtering import emptied, pick, rebuild, record_starts, sift
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
    go_on: Callable[[], object] = lambda: None,
) -> Generator[CleanedGroup, None, CleaningResult]:
    """Write the segments of ``job`` anew, and give each when it is on the disk.

    Nothing is renamed or deleted but a ``.cleaned`` file that was not finished. ``sleep`` waits as the limit of bytes
    a second wants it; ``go_on`` is called after every piece that was read, and may raise to end it all.

    Raises CorruptMessage, with file and position, where a batch is not what its CRC says or cannot be read, OSError,
    and CleaningFailed.
    """
    return Pass(files, job, clock, sleep, cpu_seconds, go_on).run()


class Pass:
    """What a pass knows while it runs."""

    def __init__(
        self,
        files: Files,
        job: CleaningJob,
        clock: Clock,
        sleep: Callable[[float], object],
        cpu_seconds: Callable[[], float],
        go_on: Callable[[], object],
    ) -> None:
        self._files, self._job, self._clock = files, job, clock
        self._cpu_seconds, self._go_on = cpu_seconds, go_on
        self._throttle = Throttle(job.max_bytes_per_second, clock, sleep)
        self._known = OffsetMap(job.map_entries, job.first_dirty_offset - 1)
        self._mapped = self._read = self._kept = 0  # records
        self._bytes_mapped = self._bytes_read = self._bytes_kept = 0
        self._unthrottled = 0  # bytes that were written, and not yet counted against the limit
        self._path, self._position = "", 0  # of the batch that is being looked at

    def run(self) -> Generator[CleanedGroup, None, CleaningResult]:
        job = self._job
        began, cpu_began = self._clock.monotonic(), self._cpu_seconds()
        sizes = self._files.sizes(job.directory)
        transactions = self._transactions_from(job.first_dirty_offset, sizes)
        with self._told_where():
            is_full = self._learn(transactions)
        self._known.complete()
        next_dirty_offset = self._known.latest_offset + 1
        if job.segments:
            transactions = self._transactions_from(job.segments[0].base_offset, sizes)
        for group in groups(job, next_dirty_offset, sizes):
            with self._told_where():
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

    # ------------------------------------------------------------ first reading

    def _learn(self, transactions: CleanedTransactions) -> bool:
        """Fill the map from the first dirty offset on; whether it is full."""
        job, known = self._job, self._known
        for segment, end in job.with_ends():
            if end > job.first_dirty_offset:
                if not self._learn_segment(segment, transactions):
                    return True
                known.latest_offset = end - 1  # compaction, or a transaction's end, may have left a hole there
        return False

    def _learn_segment(self, segment: SegmentFile, transactions: CleanedTransactions) -> bool:
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
        """The batches with an offset from ``start`` on, and the unpacked records of those that count."""
        for batch in self._batches(segment, position):
            if batch.is_control:
                transactions.has_nothing_to_mark(batch)
                counts = False
            else:
                counts = not transactions.is_aborted(batch)
            if batch.last_offset >= start:
                yield batch, body_of(batch) if counts and batch.count else b""

    def _position_before(self, segment: SegmentFile, offset: int) -> int:
        """Where to begin to look for ``offset``; the start of the file where no index says better."""
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
        """Write what stays of a batch (``RecordFilter.checkBatchRetention``, ``MemoryRecords.filterTo``)."""
        self._read += batch.count
        self._bytes_read += batch.size_in_bytes
        body, starts, may_go_some_day = self._sift(batch, transactions)
        if not starts:
            if self._must_stay(batch):
                self._put(emptied(batch), batch.last_offset, batch.max_timestamp, 0, out)
            return
        gets_horizon = may_go_some_day and not batch.has_delete_horizon
        if len(starts) == batch.count and not gets_horizon:
            self._put(batch.buffer, batch.last_offset, batch.max_timestamp, batch.count, out)
            return
        horizon = batch.base_timestamp if batch.has_delete_horizon else None
        if gets_horizon:
            horizon = self._job.now_ms + self._job.delete_retention_ms
        data, max_timestamp = rebuild(batch, body, starts, horizon)
        self._put(data, batch.last_offset, max_timestamp, len(starts), out)

    def _put(self, data: Data, last_offset: int, max_timestamp: int, count: int, out: CleanedSegment) -> None:
        out.append(data, last_offset, max_timestamp)
        self._kept += count
        self._bytes_kept += len(data)
        self._unthrottled += len(data)

    def _sift(self, batch: RecordBatch, transactions: CleanedTransactions) -> tuple[bytes, Sequence[int], bool]:
        """A batch's unpacked body, where in it those records start that stay, and whether some stay only for now."""
        is_over = batch.has_delete_horizon and batch.base_timestamp <= self._job.now_ms
        if batch.is_control:
            has_nothing_to_mark = transactions.has_nothing_to_mark(batch)
            if not batch.count or (has_nothing_to_mark and is_over):
                return b"", [], False
            body = body_of(batch)
            return body, record_starts(body, batch.count), has_nothing_to_mark
        if transactions.is_aborted(batch) or not batch.count:
            return b"", [], False
        if batch.base_offset >= self._job.first_dirty_offset and batch.count == batch.last_offset_delta + 1:
            survivors = self._known.survivors(batch.base_offset, batch.last_offset)
            if survivors is not None:
                if len(survivors) in (0, batch.count):
                    return b"", survivors, False
                body = body_of(batch)
                picked = pick(body, batch.count, batch.base_offset, survivors)
                if picked is not None:
                    return body, picked, False
        body = body_of(batch)
        starts, has_tombstones = sift(body, batch.count, batch.base_offset, self._known, drops_tombstones=is_over)
        return body, starts, has_tombstones

    def _must_stay(self, batch: RecordBatch) -> bool:
        """Whether the batch is the last that is known of an active producer, or says where the cleaned part ends."""
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
        """The batches of a segment's file from there on, their CRCs checked."""
        file = self._files.open(f"{self._job.directory}/{segment.base_offset:020d}{LOG_SUFFIX}")
        self._path = file.path
        try:
            size, wanted = segment.size, READ_SIZE
            while position < size:
                start = self._position = position
                piece = file.pread(min(wanted, size - position), position)
                self._throttle.add(len(piece) + self._unthrottled)
                self._unthrottled = 0
                self._go_on()
                for batch in batches(piece):
                    batch.check_crc()
                    yield batch
                    self._position = position = position + batch.size_in_bytes
                wanted = READ_SIZE if position > start else size_of_batch(piece, size - position)
        finally:
            file.close()

    @contextlib.contextmanager
    def _told_where(self) -> Iterator[None]:
        """Name the batch that was being looked at when something is wrong with it."""
        try:
            yield
        except KafkaError as error:
            raise CorruptMessage(f"{self._path} at position {self._position}: {error}") from error


def size_of_batch(piece: bytes, left: int) -> int:
    """The size of a batch of which ``piece`` is only the start, ``left`` bytes before the end of the file."""
    if len(piece) >= HEADER_SIZE:
        size = LOG_OVERHEAD + int.from_bytes(piece[8:12], "big")
        if len(piece) < size <= left:
            return size
    raise CorruptMessage(f"a batch is cut off by the end of the file, {left} bytes later")

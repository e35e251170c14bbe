"""The log of one partition: appends at the end, reads anywhere, retention at the start (Kafka's ``UnifiedLog``).

Knows nothing of leaders and replicas: callers pass in the leader epoch and the high watermark. A log is used by one
thread at a time. The slow part of a flush is returned as a :class:`Flush`, which any thread can run.

Always holds: ``log_start_offset <= last_stable_offset <= high_watermark <= log_end_offset``.
"""

import contextlib
import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from barnabas.config.topic import TopicConfig
from barnabas.errors import KafkaStorageError, OffsetOutOfRange, RecordListTooLarge
from barnabas.log import retention, swapping
from barnabas.log.files import Data
from barnabas.log.follower_checks import ANY_EPOCH, check_batches
from barnabas.log.leader_epochs import LeaderEpochs
from barnabas.log.limits import MAX_OFFSET, MAX_RELATIVE_OFFSET
from barnabas.log.producer_loading import load_producers
from barnabas.log.producer_state import ProducerState, ProducerStateEntry
from barnabas.log.rolling import fitting, must_roll, rolls_after_ms
from barnabas.log.scan import BatchAt
from barnabas.log.segment import LOG_SUFFIX, Segment
from barnabas.log.segments import Flush, Segments, sync_if_there
from barnabas.log.services import SegmentServices
from barnabas.log.transaction_index import AbortedTransaction
from barnabas.records.batch import LOG_OVERHEAD, RecordBatch

if TYPE_CHECKING:
    from barnabas.log.cleaning.job import CleanedGroup

logger = logging.getLogger(__name__)


class LogServices(SegmentServices):
    """What all logs in one log directory share. The methods do the simplest thing; a broker overrides them."""

    def jitter_ms(self, upper: int) -> int:
        """Returns a random time below ``upper``, by which a segment rolls earlier than ``segment.ms``."""
        return 0

    def request_flush(self, log: "PartitionLog", up_to: int) -> None:
        """Flushes the log up to ``up_to``. Called when a segment was rolled and when ``flush.messages`` is reached."""

    def log_truncated(self, log: "PartitionLog", end: int) -> None:
        """Drops what is recorded about offsets from ``end`` on. Called when the log was truncated."""

    def storage_failed(self, log: "PartitionLog", error: OSError) -> None:
        """Takes the log directory offline. Called when the disk failed; the log is offline already."""
        logger.error("%s is offline: %s", log, error)


class Appended(NamedTuple):
    """The result of an append."""

    base_offset: int
    last_offset: int
    log_append_time_ms: int  #: the timestamp of the batch with LogAppendTime, and of a duplicate; otherwise -1
    is_duplicate: bool


class PartitionLog:
    """The log of one partition. :func:`barnabas.log.recovery.open_log` opens one.

    All methods that use files raise KafkaStorageError when the disk fails or has failed.
    """

    __slots__ = (
        "_epoch_with_records", "_flush_waiters", "_last_flush_ms", "_offline", "_roll_after_ms", "_services",
        "_truncations", "_unsynced", "config", "directory", "high_watermark", "is_offline", "last_stable_offset",
        "latest_epoch", "leader_epochs", "log_directory", "log_end_offset", "log_start_offset", "on_change",
        "partition", "producers", "recovery_point", "segments", "topic", "topic_id",
    )  # fmt: skip

    def __init__(
        self,
        services: LogServices,
        directory: str,
        topic: str,
        partition: int,
        topic_id: bytes,
        config: TopicConfig,
        *,
        segments: list[Segment],
        leader_epochs: LeaderEpochs,
        producers: ProducerState,
        log_start_offset: int,
        log_end_offset: int,
        recovery_point: int,
    ) -> None:
        self._services = services
        self.log_directory = services.log_directory
        self.directory = directory  #: the partition's directory, a path
        self.topic = topic
        self.partition = partition
        self.topic_id = topic_id
        self.leader_epochs = leader_epochs
        self.latest_epoch = self._epoch_with_records = leader_epochs.latest
        self.producers = producers
        self.log_start_offset = log_start_offset
        self.high_watermark = log_start_offset
        self.log_end_offset = log_end_offset
        #: The first offset that a read_committed consumer must not see.
        self.last_stable_offset = log_start_offset
        self.recovery_point = recovery_point  #: everything below is fsynced
        self.segments = Segments(services, directory, segments)
        self._truncations = 0  # a flush that began before a truncation does not move the recovery point
        self.is_offline = False
        self._offline: str | None = None  # the reason
        self._unsynced: set[str] = set()  # small files and directories that changed since the last flush
        self._flush_waiters: list[tuple[int, Callable[[], object]]] = []
        #: Called when the log start offset has moved, and when the log has gone offline.
        self.on_change: Callable[[], object] | None = None
        self._last_flush_ms = segments[-1].created_ms
        self.update_config(config)

    def update_config(self, config: TopicConfig) -> None:
        """Replaces the topic's configs."""
        self.config = config
        self._configure_active_segment()

    def _configure_active_segment(self) -> None:
        """Applies the configs to the active segment, and draws the jitter of its age."""
        config = self.config
        self.segments.active.index_interval = config.index_interval_bytes
        upper = min(config.segment_jitter_ms, config.segment_ms)
        self._roll_after_ms = rolls_after_ms(config, self._services.jitter_ms(upper) if upper > 0 else 0)

    def __repr__(self) -> str:
        return f"<PartitionLog {self.topic}-{self.partition} in {self.directory}>"

    # ------------------------------------------------------------ offsets and producers

    @property
    def size(self) -> int:
        """The number of bytes in all segments."""
        return self.segments.size

    def active_producers(self) -> list[ProducerStateEntry]:
        """Returns the producers that have written here and have not expired."""
        return list(self.producers.entries.values())

    def maybe_set_high_watermark(self, offset: int) -> bool:
        """Raises the high watermark: everything below ``offset`` is committed. Returns whether it was raised."""
        if offset <= self.high_watermark:
            return False
        self._set_offsets(self.log_start_offset, offset, self.log_end_offset)
        return True

    def _set_offsets(self, log_start_offset: int, high_watermark: int, log_end_offset: int) -> None:
        """Sets all three offsets and the last stable offset. Only an append sets the end without it."""
        assert 0 <= log_start_offset <= high_watermark <= log_end_offset, (
            f"{self}: log start offset {log_start_offset}, high watermark {high_watermark}, "
            f"log end offset {log_end_offset}"
        )
        self.log_start_offset, self.high_watermark, self.log_end_offset = (
            log_start_offset,
            high_watermark,
            log_end_offset,
        )
        transactions = self.producers.transactions
        if transactions.open or transactions.ended:
            transactions.commit(high_watermark)
            high_watermark = max(log_start_offset, min(high_watermark, transactions.first_unstable_offset))
        self.last_stable_offset = high_watermark

    # ------------------------------------------------------------ failures

    def go_offline(self, reason: str) -> None:
        """Makes every later call raise KafkaStorageError. The files are not changed."""
        if self._offline is None:
            self.is_offline, self._offline = True, reason
            for segment in self.segments:
                segment.close()
            self._call_flush_waiters()
            self._changed()

    def mark_replaced(self) -> None:
        """Takes the log offline because another log, with the same records and fsynced, has replaced it."""
        self.recovery_point = self.log_end_offset
        self._call_flush_waiters()
        self.on_change = None
        self.go_offline("another log has replaced it")

    def _changed(self) -> None:
        if self.on_change is not None:
            self.on_change()

    def _check_online(self) -> None:
        if self._offline is not None:
            raise KafkaStorageError(f"The log of {self.topic}-{self.partition} is offline: {self._offline}")

    def fail(self, error: OSError) -> None:
        """Takes the log offline because a flush outside of it failed."""
        if self._offline is None:
            self._failure(error)

    def _failure(self, error: OSError) -> KafkaStorageError:
        """Takes the log offline, reports it, and returns the error to raise."""
        self.go_offline(str(error))
        self._services.storage_failed(self, error)
        return KafkaStorageError(f"The log of {self.topic}-{self.partition} is offline: {error}")

    @contextlib.contextmanager
    def _storage(self) -> Iterator[None]:
        """Wraps access to files: an OSError takes the log offline and becomes KafkaStorageError."""
        self._check_online()
        try:
            yield
        except OSError as error:
            raise self._failure(error) from error

    # ------------------------------------------------------------ appending

    def append_as_leader(
        self, batch: RecordBatch, *, leader_epoch: int, now_ms: int, by_coordinator: bool = False
    ) -> Appended:
        """Appends a batch at the next offsets. Stamps them and ``leader_epoch`` into the batch's buffer.

        A retry of a known batch is not appended again; the result then has the offsets of the known batch.

        :raises RecordListTooLarge: the batch is larger than ``segment.bytes``
        :raises KafkaError: as :meth:`ProducerState.check`
        """
        if self._offline is not None:
            self._check_online()
        base_offset = self.log_end_offset
        size = batch.batch_length + LOG_OVERHEAD
        if size > self.config.segment_bytes:
            raise self._too_large(size)
        is_idempotent = batch.producer_id >= 0
        if is_idempotent:
            known = self.producers.check(batch, by_coordinator=by_coordinator)
            if known is not None:
                return Appended(known.first_offset, known.last_offset, known.timestamp, True)
        last_offset = base_offset + batch.last_offset_delta
        timestamp = batch.max_timestamp
        try:
            if must_roll(self.segments.active, self.config, self._roll_after_ms, size, last_offset, timestamp, now_ms):
                self._roll(now_ms)
            if leader_epoch > self._epoch_with_records:
                self._assign_epoch(leader_epoch, base_offset)
            batch.stamp(base_offset, leader_epoch)
            self.segments.active.append(batch.buffer, last_offset, timestamp)
        except OSError as error:
            raise self._failure(error) from error
        if is_idempotent and (aborted := self.producers.update(batch, base_offset)) is not None:
            self._index_aborted(aborted)
        self.log_end_offset = last_offset + 1
        if last_offset - self.recovery_point >= self.config.flush_messages - 1:
            self._services.request_flush(self, last_offset + 1)
        append_time = timestamp if self.config.message_timestamp_type == "LogAppendTime" else -1
        return Appended(base_offset, last_offset, append_time, False)

    def append_as_follower(self, data: Data, *, now_ms: int, leader_epoch: int = ANY_EPOCH) -> Appended:
        """Appends batches with the offsets and epochs that the leader has stamped.

        :raises KafkaError: nothing is appended; as :func:`check_batches`
        """
        view = memoryview(data)
        batches = check_batches(view, self.log_end_offset, leader_epoch)
        with self._storage():
            self._append_batches(view, batches, now_ms)
        return Appended(batches[0].base_offset, batches[-1].last_offset, -1, False)

    def _append_batches(self, view: memoryview, batches: list[RecordBatch], now_ms: int) -> None:
        """Appends consecutive batches with one write for each segment that they go into."""
        while batches:
            active, first = self.segments.active, batches[0]
            count = fitting(active, self.config, self._roll_after_ms, batches, now_ms)
            if not count and (active.size or first.last_offset - active.base_offset > MAX_RELATIVE_OFFSET):
                self._roll(now_ms, max(self.log_end_offset, first.last_offset - MAX_RELATIVE_OFFSET))
                continue
            run, batches = batches[: count or 1], batches[count or 1 :]
            size = sum(batch.size_in_bytes for batch in run)
            self._write_batches(view[:size], run)
            view = view[size:]

    def _write_batches(self, data: memoryview, batches: list[RecordBatch]) -> None:
        places, position = [], 0
        for batch in batches:
            places.append(
                BatchAt(position, batch.size_in_bytes, batch.base_offset, batch.last_offset, batch.max_timestamp)
            )
            position += batch.size_in_bytes
        self.segments.active.append_many(data, places)
        for batch in batches:
            if batch.partition_leader_epoch > self._epoch_with_records:
                self._assign_epoch(batch.partition_leader_epoch, batch.base_offset)
            if (aborted := self.producers.replay(batch)) is not None:
                self._index_aborted(aborted)
        self.log_end_offset = end = batches[-1].next_offset
        if end - self.recovery_point >= self.config.flush_messages:
            self._services.request_flush(self, end)

    def _index_aborted(self, transaction: AbortedTransaction) -> None:
        """Adds an aborted transaction to the active segment's index."""
        self._unsynced.add(self.directory)  # the index may be a new file
        try:
            self.segments.active.transactions.append(transaction)
        except OSError as error:
            raise self._failure(error) from error

    def _too_large(self, size: int) -> RecordListTooLarge:
        return RecordListTooLarge(
            f"Message batch size is {size} bytes in append to partition {self.topic}-{self.partition}, "
            f"which exceeds the maximum configured segment size of {self.config.segment_bytes}."
        )

    def assign_leader_epoch(self, epoch: int) -> None:
        """Starts a leader epoch at the log's end. The epoch is written to the file with its first batch."""
        if epoch > self.latest_epoch:
            self.leader_epochs.assign_without_records(epoch, self.log_end_offset)
            self.latest_epoch = epoch

    def _assign_epoch(self, epoch: int, start_offset: int) -> None:
        self.leader_epochs.assign(epoch, start_offset)
        self.latest_epoch = self._epoch_with_records = epoch
        self.sync_epochs_later()

    # ------------------------------------------------------------ rolling

    def roll(self, now_ms: int) -> None:
        """Closes the active segment, if it has records, and creates another one at the log's end."""
        if self.segments.active.size:
            with self._storage():
                self._roll(now_ms)

    def _roll(self, now_ms: int, base_offset: int | None = None) -> None:
        end = self.log_end_offset if base_offset is None else base_offset
        active = self.segments.active
        if active.size:
            self.segments.rolled_bytes += active.size
            active.seal(sync=self.config.compacts)
            if (snapshot := self.producers.take_snapshot(end)) is not None:
                self._unsynced.add(snapshot)
        else:
            self.segments.drop_from(len(self.segments) - 1)
        self._add_segment(end, now_ms)
        self._services.request_flush(self, end)

    def _add_segment(self, base_offset: int, now_ms: int) -> None:
        self.segments.add(base_offset, now_ms)
        self._unsynced.add(self.directory)
        self._configure_active_segment()

    # ------------------------------------------------------------ reading

    def read(self, offset: int, max_bytes: int, *, up_to: int, minimum_one: bool, cached_only: bool = False) -> bytes:
        """Returns whole batches of one segment, from the one that holds ``offset``, all below ``up_to``.

        Returns as many as fit into ``max_bytes``; nothing when there are none.

        :param minimum_one: return the first batch even if it is larger than ``max_bytes``
        :param cached_only: do not wait for the disk
        :raises NotCached: with ``cached_only`` when the batches are not in the page cache
        :raises OffsetOutOfRange: ``offset`` is before the log start offset or after the log end offset
        :raises CorruptMessage: the segment is corrupt at that place
        """
        if not self.log_start_offset <= offset <= self.log_end_offset:
            raise OffsetOutOfRange(
                f"Received request for offset {offset} for partition {self.topic}-{self.partition}, but we only have "
                f"log segments from offset {self.log_start_offset} to {self.log_end_offset}."
            )
        if self._offline is not None:
            self._check_online()
        if offset >= up_to or max_bytes < 0:
            return b""
        try:
            return self.segments.read(offset, max_bytes, up_to, self.log_end_offset, minimum_one, cached_only)
        except OSError as error:
            raise self._failure(error) from error

    def aborted_transactions(self, offset: int, data: Data) -> list[AbortedTransaction]:
        """Returns the aborted transactions with records in ``data``, which :meth:`read` returned for ``offset``.

        :raises CorruptMessage: a transaction index is invalid
        """
        if not data:
            return []
        with self._storage():
            return self.segments.aborted_transactions(offset, data, self.log_end_offset)

    def bytes_between(self, offset: int, end: int) -> int:
        """Returns the size in bytes of the batches from ``offset`` to below ``end``."""
        with self._storage():
            return self.segments.bytes_between(offset, end, self.log_end_offset)

    def offset_for_timestamp(self, timestamp: int, up_to: int) -> tuple[int, int, int] | None:
        """Returns timestamp, offset and leader epoch of the first record whose timestamp is ``timestamp`` or later.

        None when there is no such record below ``up_to``.
        """
        with self._storage():
            found = self.segments.offset_for_timestamp(timestamp, self.log_start_offset)
        return found if found is not None and found[1] < up_to else None

    def max_timestamp_offset(self, up_to: int) -> tuple[int, int, int] | None:
        """Returns timestamp, offset and leader epoch of the first record with the maximum timestamp.

        None when the log is empty or that record is not below ``up_to``. As in Apache Kafka, records before the log
        start offset count as long as they are on the disk.
        """
        with self._storage():
            found = self.segments.max_timestamp_offset()
        return found if found is not None and found[1] < up_to else None

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """Returns the largest known epoch up to ``epoch``, and its end offset; (-1, -1) when that is undefined."""
        return self.leader_epochs.end_offset_for(epoch, self.log_end_offset)

    # ------------------------------------------------------------ retention, compaction and truncation

    def delete_records_before(self, offset: int) -> None:
        """Raises the log start offset to ``offset``. Retention deletes the segments below it later.

        :raises OffsetOutOfRange: ``offset`` is above the high watermark
        """
        if offset > self.high_watermark:
            raise OffsetOutOfRange(
                f"Cannot increment the log start offset to {offset} of partition {self.topic}-{self.partition} "
                f"since it is larger than the high watermark {self.high_watermark}."
            )
        if offset > self.log_start_offset:
            with self._storage():
                self._raise_log_start_offset(offset)

    def _raise_log_start_offset(self, offset: int) -> None:
        self._set_offsets(offset, max(offset, self.high_watermark), self.log_end_offset)
        if self.leader_epochs.truncate_from_start(offset):
            self.sync_epochs_later()
        self._changed()

    def enforce_retention(self, now_ms: int) -> int:
        """Deletes the oldest segments by ``retention.ms``, ``retention.bytes`` and the log start offset.

        Returns their number. The files are deleted ``file.delete.delay.ms`` later.
        """
        with self._storage():
            offsets = retention.LogOffsets(self.log_start_offset, self.high_watermark, self.log_end_offset)
            count = retention.deletable(self.segments, offsets, self.config, now_ms)
            if count == 0:
                return 0
            if count == len(self.segments):
                self._roll(now_ms)
            for segment in self.segments.drop_oldest(count, self.config.file_delete_delay_ms):
                self.producers.remove_snapshots(segment.base_offset, segment.base_offset)
            if self.segments.start > self.log_start_offset:
                self._raise_log_start_offset(self.segments.start)
        return count

    def replace_segments(self, group: "CleanedGroup") -> bool:
        """Replaces segments by the staged segment that was made from them.

        Returns False when they are gone or one of them is active.
        """
        with self._storage():
            if not swapping.swap_in(self._services.files, self.directory, self.segments, group, self.config):
                return False
            for base_offset in group.replaces[1:]:
                self.producers.remove_snapshots(base_offset, base_offset)
        return True

    def truncate_to(self, offset: int, now_ms: int = 0) -> None:
        """Removes everything from ``offset`` on: the leader has other records there."""
        with self._storage():
            if offset >= self.log_end_offset:
                self._remove_epochs_from(self.log_end_offset)  # this broker may have led an epoch without appending
                return
            if offset < self.segments.start:
                self._truncate_fully(offset, now_ms)
                return
            kept = sum(segment.base_offset <= offset for segment in self.segments)
            self.segments.drop_from(kept)
            end = self.segments.active.truncate(offset, now_ms)
            active = self.segments.active
            self._unsynced.update((active.path(LOG_SUFFIX), active.transactions.path, self.directory))
            self._configure_active_segment()
            start = min(self.log_start_offset, end)
            self._set_offsets(start, max(start, min(self.high_watermark, end)), end)
            self._remove_state_beyond(end)
            self.load_producers()

    def truncate_fully_and_start_at(self, offset: int, now_ms: int = 0) -> None:
        """Removes everything. The log is then empty and starts at ``offset``."""
        with self._storage():
            self._truncate_fully(offset, now_ms)

    def _truncate_fully(self, offset: int, now_ms: int) -> None:
        self.segments.drop_from(0)
        self._add_segment(offset, now_ms)
        self._set_offsets(offset, offset, offset)
        self._remove_state_beyond(0)
        self.producers.clear()
        self.recovery_point = offset

    def _remove_state_beyond(self, end: int) -> None:
        """Removes epochs, snapshots and the recovery point above ``end``, after the log was truncated there."""
        self._truncations += 1
        self.recovery_point = min(self.recovery_point, end)
        self._services.log_truncated(self, end)
        self._remove_epochs_from(end)
        self.producers.remove_snapshots(end + 1, MAX_OFFSET)

    def _remove_epochs_from(self, end: int) -> None:
        if self.leader_epochs.truncate_from_end(end):
            self.sync_epochs_later()
        self.latest_epoch = self._epoch_with_records = self.leader_epochs.latest

    def load_producers(self) -> None:
        """Restores the producer state from the latest snapshot and the batches after it."""
        load_producers(self.producers, self.segments, self.log_start_offset, self.log_end_offset)
        self._set_offsets(self.log_start_offset, self.high_watermark, self.log_end_offset)

    # ------------------------------------------------------------ flushing and closing

    def sync_later(self, *paths: str) -> None:
        """Adds files and directories that were written to the next flush."""
        self._unsynced.update(paths)

    def sync_epochs_later(self) -> None:
        """Adds ``leader-epoch-checkpoint`` to the next flush, and the directory: a write of the file is a rename."""
        self._unsynced.update((self.leader_epochs.path, self.directory))

    def begin_flush(self, up_to: int | None = None) -> Flush | None:
        """Writes what is only in memory, and returns the fsyncs of everything below ``up_to``.

        Returns None when everything below ``up_to`` is on the disk. :meth:`finish_flush` must follow the fsyncs.

        :param up_to: None for the whole log
        """
        end = self.log_end_offset if up_to is None else up_to
        if end <= self.recovery_point and not (up_to is None and self._unsynced):
            return None
        with self._storage():
            steps = self.segments.begin_flush(self.recovery_point, end, self.log_end_offset)
        # The partition's directory comes after its files, and the log directory last: directories name complete files.
        for path in sorted(self._unsynced, key=lambda path: (self.directory.startswith(path), -len(path))):
            steps.append(sync_if_there(self._services.files, path))
        self._unsynced.clear()
        return Flush(end, steps, self._truncations)

    def finish_flush(self, flush: Flush, now_ms: int | None = None) -> None:
        """Raises the recovery point after all steps of ``flush`` have run."""
        if flush.truncations == self._truncations:
            self.recovery_point = max(self.recovery_point, flush.up_to)
        if now_ms is not None:
            self._last_flush_ms = now_ms
        self._call_flush_waiters()

    def _call_flush_waiters(self) -> None:
        waiting, self._flush_waiters = self._flush_waiters, []
        for offset, callback in waiting:
            self.when_flushed(offset, callback)

    def when_flushed(self, offset: int, callback: Callable[[], object]) -> None:
        """Calls ``callback`` when everything below ``offset`` is on the disk, or the log is offline.

        The callback checks which. It is called at once if it is so already. The caller makes sure that a flush happens.
        """
        if self.recovery_point >= offset or self._offline is not None:
            callback()
        else:
            self._flush_waiters.append((offset, callback))

    def is_flush_due(self, now_ms: int) -> bool:
        """Returns whether there are records to flush and the last flush is ``flush.ms`` ago."""
        return self.recovery_point < self.log_end_offset and now_ms - self._last_flush_ms >= self.config.flush_ms

    def flush(self, up_to: int | None = None) -> None:
        """Returns when everything below ``up_to``, or the whole log, is on the disk."""
        flush = self.begin_flush(up_to)
        if flush is not None:
            with self._storage():
                flush.run()
            self.finish_flush(flush)

    def close(self) -> None:
        """Writes the index entries and a producer snapshot, flushes the log and closes its files."""
        if self._offline is None:
            self.prepare_close()
            self.flush()
        self.release()

    def prepare_close(self) -> None:
        """Writes the index entries that are only in memory, and a producer snapshot."""
        with self._storage():
            active = self.segments.active
            if active.size:
                active.finish_time_index()
            active.write_indexes()
            if (snapshot := self.producers.take_snapshot(self.log_end_offset)) is not None:
                self._unsynced.add(snapshot)

    def release(self) -> None:
        """Closes the files and releases the memory of the indexes. The next use opens them again."""
        for segment in self.segments:
            segment.close()

"""One partition's log: batches appended at its end, read anywhere, and dropped from its beginning.

Knows nothing of leaders and replicas: it is told which epoch appends, and up to where readers may see. One thread at a
time uses a log; the slow part of a flush is handed out as a :class:`Flush`, for any thread to run.

What is true at all times: ``log_start_offset <= last_stable_offset <= high_watermark <= log_end_offset``.
"""

import contextlib
import logging
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from barnabas.config.topic import TopicConfig
from barnabas.errors import KafkaStorageError, OffsetOutOfRange, RecordListTooLarge
from barnabas.log import retention, swapping
from barnabas.log.cleaning.job import CleanedGroup
from barnabas.log.files import Data
from barnabas.log.following import check_followed
from barnabas.log.leader_epochs import LeaderEpochs
from barnabas.log.producer_loading import load_producers
from barnabas.log.producer_state import ProducerState, ProducerStateEntry
from barnabas.log.rolling import must_roll, rolls_after_ms
from barnabas.log.scan import BatchAt
from barnabas.log.segment import MAX_SIZE, Segment
from barnabas.log.segments import Flush, Segments, sync_if_there
from barnabas.log.services import LogServices
from barnabas.log.transaction_index import AbortedTransaction
from barnabas.records.batch import LOG_OVERHEAD, RecordBatch

logger = logging.getLogger(__name__)

MAX_OFFSET: Final = 2**63 - 1


class Appended(NamedTuple):
    """What became of an append."""

    base_offset: int
    last_offset: int
    log_append_time_ms: int  #: -1 unless the topic has LogAppendTime, or the batch is a duplicate: then its timestamp
    is_duplicate: bool


class PartitionLog:
    """The log of one partition; :func:`barnabas.log.recovery.open_log` makes one from a directory."""

    __slots__ = (
        "_epoch_with_records",
        "_era",
        "_flush_waiters",
        "_last_flush_ms",
        "_offline",
        "_roll_after_ms",
        "_services",
        "_unsynced",
        "config",
        "directory",
        "high_watermark",
        "is_offline",
        "last_stable_offset",
        "latest_epoch",
        "leader_epochs",
        "log_end_offset",
        "log_start_offset",
        "on_change",
        "partition",
        "producers",
        "recovery_point",
        "segments",
        "topic",
        "topic_id",
    )

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
        self.directory = directory
        self.topic = topic
        self.partition = partition
        self.topic_id = topic_id
        self.leader_epochs = leader_epochs
        self.latest_epoch = self._epoch_with_records = leader_epochs.latest
        self.producers = producers
        self.log_start_offset = log_start_offset
        self.high_watermark = log_start_offset
        self.log_end_offset = log_end_offset
        #: The first offset that a reader of committed transactions may not see.
        self.last_stable_offset = log_start_offset
        self.recovery_point = recovery_point
        self.segments = Segments(services, directory, segments)  #: oldest first; the last is the active one
        self._era = 0  # counts truncations: a flush that began before one says nothing of what comes after it
        self.is_offline = False  #: whether the disk failed under this log
        self._offline: str | None = None  # why
        self._unsynced: set[str] = set()  # small files that changed since the last flush
        self._flush_waiters: list[tuple[int, Callable[[], object]]] = []
        #: Called when the log start offset has moved, and when the log has gone offline.
        self.on_change: Callable[[], object] | None = None
        self._last_flush_ms = segments[-1].created_ms
        self.update_config(config)

    def update_config(self, config: TopicConfig) -> None:
        """Go by these settings from now on."""
        self.config = config
        self._tune_active()

    def _tune_active(self) -> None:
        """The active segment goes by the settings, and rolls at a time of its own."""
        config = self.config
        self.segments.active.index_interval = config.index_interval_bytes
        upper = min(config.segment_jitter_ms, config.segment_ms)
        self._roll_after_ms = rolls_after_ms(config, self._services.jitter_ms(upper) if upper > 0 else 0)

    def __repr__(self) -> str:
        return f"<PartitionLog {self.topic}-{self.partition} in {self.directory}>"

    # ------------------------------------------------------------ what there is

    @property
    def size(self) -> int:
        """Bytes in all segments."""
        return self.segments.size

    def active_producers(self) -> list[ProducerStateEntry]:
        """The producers with an id that wrote here and are not forgotten yet."""
        return list(self.producers.entries.values())

    def maybe_set_high_watermark(self, offset: int) -> bool:
        """Everything below ``offset`` is committed; true if that is news."""
        if offset <= self.high_watermark:
            return False
        self._set_offsets(self.log_start_offset, offset, self.log_end_offset)
        return True

    def _set_offsets(self, log_start_offset: int, high_watermark: int, log_end_offset: int) -> None:
        """The only place where one of the three moves, but for the end that an append moves forward."""
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
        """Answer everything with KafkaStorageError from now on; the files are left as they are."""
        if self._offline is None:
            self.is_offline, self._offline = True, reason
            for segment in self.segments:
                segment.close()
            self._tell_flushed()
            self._tell_changed()

    def supersede(self) -> None:
        """All that is in here is in another log by now, and on the disk there: that one is to be used."""
        self.recovery_point = self.log_end_offset
        self._tell_flushed()
        self.on_change = None
        self.go_offline("another log has taken its place")

    def _tell_changed(self) -> None:
        if self.on_change is not None:
            self.on_change()

    def _check_online(self) -> None:
        if self._offline is not None:
            raise KafkaStorageError(f"The log of {self.topic}-{self.partition} is offline: {self._offline}")

    def fail(self, error: OSError) -> None:
        """The disk failed under this log while somebody else flushed it."""
        if self._offline is None:
            self._failure(error)

    def _failure(self, error: OSError) -> KafkaStorageError:
        """The disk failed: this log is of no use any more, nor, as its keeper may decide, is its directory."""
        self.go_offline(str(error))
        self._services.failed(self, error)
        return KafkaStorageError(f"The log of {self.topic}-{self.partition} is offline: {error}")

    @contextlib.contextmanager
    def _storage(self) -> Iterator[None]:
        """Around whatever touches files."""
        self._check_online()
        try:
            yield
        except OSError as error:
            raise self._failure(error) from error

    # ------------------------------------------------------------ appending

    def append_as_leader(
        self, batch: RecordBatch, *, leader_epoch: int, now_ms: int, by_coordinator: bool = False
    ) -> Appended:
        """Give the batch the next offsets, stamping them and ``leader_epoch`` into its buffer, and write it.

        A batch of a producer id that is there already is not written again: its first place is the answer.

        Raises RecordListTooLarge above ``segment.bytes``, what :meth:`ProducerState.check` raises, KafkaStorageError.
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
            self._services.flush_due(self, last_offset + 1)
        append_time = timestamp if self.config.message_timestamp_type == "LogAppendTime" else -1
        return Appended(base_offset, last_offset, append_time, False)

    def append_as_follower(self, data: Data, *, now_ms: int) -> Appended:
        """Write batches as the leader has them, with its offsets and epochs. Whole batches, at least one.

        Raises CorruptMessage when one is damaged, OffsetOutOfRange when one does not follow the log's end; then
        nothing of ``data`` is written.
        """
        view = memoryview(data)
        batches = check_followed(view, self.log_end_offset)
        with self._storage():
            self._write_run(view, batches, now_ms)
        return Appended(batches[0].base_offset, batches[-1].last_offset, -1, False)

    def _write_run(self, view: memoryview, batches: list[RecordBatch], now_ms: int) -> None:
        """Write batches that lie behind one another: one write for each segment that they go into."""
        start = end = 0
        run: list[RecordBatch] = []
        for batch in batches:
            size = batch.size_in_bytes
            active = self.segments.active
            pending = end - start + size
            if must_roll(
                active, self.config, self._roll_after_ms, pending, batch.last_offset, batch.max_timestamp, now_ms
            ):
                self._write_batches(view[start:end], run)
                start, run = end, []
                if active.size or batch.last_offset - active.base_offset > MAX_SIZE:
                    self._roll(now_ms, max(self.log_end_offset, batch.last_offset - MAX_SIZE))
            run.append(batch)
            end += size
        self._write_batches(view[start:end], run)

    def _write_batches(self, data: memoryview, batches: list[RecordBatch]) -> None:
        if not batches:
            return
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
            self._services.flush_due(self, end)

    def _index_aborted(self, transaction: AbortedTransaction) -> None:
        """The active segment has the marker of an abort."""
        self._unsynced.add(self.directory)  # there may be a new file
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
        """A leader of that epoch appends from now on; its first batch brings the epoch into the file."""
        if epoch > self.latest_epoch:
            self.leader_epochs.begin(epoch, self.log_end_offset)
            self.latest_epoch = epoch

    def _assign_epoch(self, epoch: int, start_offset: int) -> None:
        self.leader_epochs.assign(epoch, start_offset)
        self.latest_epoch = self._epoch_with_records = epoch
        self._unsynced.add(self.leader_epochs.path)

    # ------------------------------------------------------------ rolling

    def roll(self, now_ms: int) -> None:
        """Close the active segment and begin another at the log's end; nothing happens when it is empty."""
        if self.segments.active.size:
            with self._storage():
                self._roll(now_ms)

    def _roll(self, now_ms: int, base_offset: int | None = None) -> None:
        end = self.log_end_offset if base_offset is None else base_offset
        active = self.segments.active
        if active.size:
            active.seal()
            snapshot = self.producers.take_snapshot(end)
            if snapshot is not None:
                self._unsynced.add(snapshot)
        else:
            self.segments.drop_from(len(self.segments) - 1)
        self._begin_segment(end, now_ms)
        self._services.flush_due(self, end)

    def _begin_segment(self, base_offset: int, now_ms: int) -> None:
        self.segments.add(base_offset, now_ms)
        self._unsynced.add(self.directory)
        self._tune_active()

    # ------------------------------------------------------------ reading

    def read(self, offset: int, max_bytes: int, *, up_to: int, minimum_one: bool) -> bytes:
        """Whole batches from the one that holds ``offset``, none of which reaches ``up_to``, out of one segment.

        As many as fit into ``max_bytes``; with ``minimum_one`` the first in any case. Empty when there is none.

        Raises OffsetOutOfRange outside of log start and end offset, CorruptMessage, KafkaStorageError.
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
            return self.segments.read(offset, max_bytes, up_to, self.log_end_offset, minimum_one)
        except OSError as error:
            raise self._failure(error) from error

    def aborted_transactions(self, offset: int, data: Data) -> list[AbortedTransaction]:
        """The aborted transactions that a reader meets in ``data``, which :meth:`read` gave it for ``offset``.

        Raises CorruptMessage, KafkaStorageError.
        """
        if not data:
            return []
        with self._storage():
            return self.segments.aborted_transactions(offset, data, self.log_end_offset)

    def bytes_between(self, offset: int, end: int) -> int:
        """How many bytes the batches from ``offset`` to below ``end`` take. Raises KafkaStorageError."""
        with self._storage():
            return self.segments.bytes_between(offset, end, self.log_end_offset)

    def offset_for_timestamp(self, timestamp: int, up_to: int) -> tuple[int, int, int] | None:
        """Timestamp, offset and leader epoch of the first record that is as late as ``timestamp`` (ms) or later.

        None when there is none below ``up_to``.
        """
        with self._storage():
            for segment in self.segments.from_time(timestamp):
                if segment.largest_timestamp()[0] >= timestamp:
                    found = segment.offset_for_timestamp(timestamp, self.log_start_offset)
                    if found is not None:
                        return found if found[1] < up_to else None
        return None

    def max_timestamp_offset(self, up_to: int) -> tuple[int, int, int] | None:
        """Timestamp, offset and leader epoch of the first record with the latest timestamp of all.

        None when there is none, or it is not below ``up_to``. Like Apache Kafka it looks at all that is on the disk: it
        may be before the log start offset.
        """
        with self._storage():
            latest = self.segments.with_latest()
            timestamp, _ = latest.largest_timestamp()
            found = latest.offset_for_timestamp(timestamp, latest.base_offset)
        return found if found is not None and found[1] < up_to else None

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """The largest known epoch up to ``epoch`` and the offset at which it ends; (-1, -1) when nothing is known."""
        return self.leader_epochs.end_offset_for(epoch, self.log_end_offset)

    # ------------------------------------------------------------ dropping

    def delete_records_before(self, offset: int) -> None:
        """Nobody shall see records below ``offset`` any more; whole segments of them go with the next retention.

        Raises OffsetOutOfRange beyond the high watermark.
        """
        if offset > self.high_watermark:
            raise OffsetOutOfRange(
                f"Cannot increment the log start offset to {offset} of partition {self.topic}-{self.partition} "
                f"since it is larger than the high watermark {self.high_watermark}."
            )
        if offset > self.log_start_offset:
            with self._storage():
                self._start_at(offset)

    def _start_at(self, offset: int) -> None:
        self._set_offsets(offset, max(offset, self.high_watermark), self.log_end_offset)
        if self.leader_epochs.truncate_from_start(offset):
            self._unsynced.add(self.leader_epochs.path)
        self._tell_changed()

    def enforce_retention(self, now_ms: int) -> int:
        """Drop the oldest segments that ``retention.ms``, ``retention.bytes`` or the log start offset give up.

        How many there were. The files go ``file.delete.delay.ms`` later.
        """
        with self._storage():
            count = retention.deletable(self, now_ms)
            if count == 0:
                return 0
            if count == len(self.segments):
                self._roll(now_ms)
            for segment in self.segments.drop_oldest(count, self.config.file_delete_delay_ms):
                self.producers.remove_snapshots(segment.base_offset, segment.base_offset)
            if self.segments.start > self.log_start_offset:
                self._start_at(self.segments.start)
        return count

    def replace_segments(self, group: CleanedGroup) -> bool:
        """Let a cleaned segment that was staged take the place of those that it was made from.

        False when those are not there any more, or are not closed.
        """
        with self._storage():
            return swapping.swap_in(self, self._services.files, group)

    def truncate_to(self, offset: int, now_ms: int = 0) -> None:
        """Drop everything from ``offset`` on, which may not be committed any more: the leader has something else."""
        if offset >= self.log_end_offset:
            return
        with self._storage():
            if offset < self.segments.start:
                self._truncate_fully(offset, now_ms)
                return
            kept = sum(segment.base_offset <= offset for segment in self.segments)
            self.segments.drop_from(kept)
            end = self.segments.active.truncate(offset, now_ms)
            self._tune_active()
            start = min(self.log_start_offset, end)
            self._set_offsets(start, max(start, min(self.high_watermark, end)), end)
            self._forget_beyond(end)
            self.load_producers()

    def truncate_fully_and_start_at(self, offset: int, now_ms: int = 0) -> None:
        """Drop everything, and go on at ``offset``."""
        with self._storage():
            self._truncate_fully(offset, now_ms)

    def _truncate_fully(self, offset: int, now_ms: int) -> None:
        self.segments.drop_from(0)
        self._begin_segment(offset, now_ms)
        self._set_offsets(offset, offset, offset)
        self._forget_beyond(0)
        self.producers.clear()
        self.recovery_point = offset

    def _forget_beyond(self, end: int) -> None:
        """What is known of offsets from ``end`` on is not true any more."""
        self._era += 1
        self.recovery_point = min(self.recovery_point, end)
        self._services.truncated(self, end)
        if self.leader_epochs.truncate_from_end(end):
            self._unsynced.add(self.leader_epochs.path)
        self.latest_epoch = self._epoch_with_records = self.leader_epochs.latest
        self.producers.remove_snapshots(end + 1, MAX_OFFSET)

    def load_producers(self) -> None:
        """The producers' state as a snapshot has it, and the batches after that make it."""
        load_producers(self.producers, self.segments, self.log_start_offset, self.log_end_offset)
        self._set_offsets(self.log_start_offset, self.high_watermark, self.log_end_offset)

    # ------------------------------------------------------------ flushing and closing

    def sync_later(self, *paths: str) -> None:
        """These were written, and reach the disk with the next flush."""
        self._unsynced.update(paths)

    def begin_flush(self, up_to: int | None = None) -> Flush | None:
        """Write what is only in memory, and say what has to be fsynced for the log to be safe below ``up_to``.

        The whole log when None. None when it is safe already; else :meth:`finish_flush` is told when it is done.
        """
        end = self.log_end_offset if up_to is None else up_to
        if end <= self.recovery_point and not (up_to is None and self._unsynced):
            return None
        with self._storage():
            steps = self.segments.begin_flush(self.recovery_point, end, self.log_end_offset)
        # The directory late, and the one that it is in last: what a directory names is whole by then.
        for path in sorted(self._unsynced, key=lambda path: (self.directory.startswith(path), -len(path))):
            steps.append(sync_if_there(self._services.files, path))
        self._unsynced.clear()
        return Flush(end, steps, self._era)

    def finish_flush(self, flush: Flush, now_ms: int | None = None) -> None:
        """The steps of ``flush`` have been taken."""
        if flush.era == self._era:
            self.recovery_point = max(self.recovery_point, flush.up_to)
        if now_ms is not None:
            self._last_flush_ms = now_ms
        self._tell_flushed()

    def _tell_flushed(self) -> None:
        waiting, self._flush_waiters = self._flush_waiters, []
        for offset, callback in waiting:
            self.when_flushed(offset, callback)

    def when_flushed(self, offset: int, callback: Callable[[], object]) -> None:
        """Call back when everything below ``offset`` is on the disk, or when the log is offline: see which.

        At once if it is; somebody has to flush.
        """
        if self.recovery_point >= offset or self._offline is not None:
            callback()
        else:
            self._flush_waiters.append((offset, callback))

    def is_flush_due(self, now_ms: int) -> bool:
        """Whether something has been waiting for ``flush.ms`` to be flushed."""
        return self.recovery_point < self.log_end_offset and now_ms - self._last_flush_ms >= self.config.flush_ms

    def flush(self, up_to: int | None = None) -> None:
        """Return when everything below ``up_to``, or all, is on the disk. Raises KafkaStorageError."""
        flush = self.begin_flush(up_to)
        if flush is not None:
            with self._storage():
                flush.run()
            self.finish_flush(flush)

    def close(self) -> None:
        """Write what the next start wants to find, fsync it, and give everything back."""
        if self._offline is None:
            self.prepare_close()
            self.flush()
        self.release()

    def prepare_close(self) -> None:
        """Write the last index entries and the producers' state, for the next start to begin from."""
        with self._storage():
            active = self.segments.active
            if active.size:
                active.finish_time_index()
            active.write_indexes()
            snapshot = self.producers.take_snapshot(self.log_end_offset)
            if snapshot is not None:
                self._unsynced.add(snapshot)

    def release(self) -> None:
        """Give descriptors and memory back. The log can still be used: it opens what it needs."""
        for segment in self.segments:
            segment.close()

    def delete(self) -> None:
        """Delete the directory and all in it."""
        with self._storage():
            self.release()
            self._services.files.delete_tree(self.directory)
        self.is_offline, self._offline = True, "it was deleted"

"""Moves logs from one log directory to another while they are written and read (KIP-113).

Knows nothing of clients or the metadata; callbacks say when a log is about to be replaced by its copy, when it has
been, and when it stays where it is. The copy is the *future log*, in a directory named ``….<unique id>-future``. A
follower copies the log to it in small steps between other work. When it has caught up and is fsynced, it is promoted:
the directory of the current log is renamed to ``-delete``, then that of the future log to the plain name. After a crash
between the two renames only the future log exists, and becomes the current one (:meth:`Moves.resume`). After a crash at
any other moment the current log exists, and copying continues.
"""

import logging
from collections.abc import Callable, Mapping
from typing import Final, Protocol

from barnabas.clock import Clock, Scheduler, Timer
from barnabas.errors import KafkaError, KafkaStorageError, OffsetOutOfRange
from barnabas.log.checkpoints import TopicPartition
from barnabas.log.follower import Follower, LogSource
from barnabas.log.housekeeping import Housekeeping
from barnabas.log.log_directory import DELETE_SUFFIX, FUTURE_SUFFIX, LogDirectory
from barnabas.log.log_registry import LogRegistry
from barnabas.log.partition_log import LogServices, PartitionLog
from barnabas.log.recovery import create_log, open_log

logger = logging.getLogger(__name__)

READ_BYTES: Final = 64 << 10
STEP_BYTES, STEP_S = 256 << 10, 0.002
"""A step copies that many bytes, or as many as that time allows, before the loop serves others."""
TAIL_BYTES, TAIL_S = 4 << 20, 0.02
"""The same for records that were appended during the flush. Smaller steps would never catch up with a busy log."""
PROMOTION_RETRY_S: Final = 0.1
"""The pause of a promotion that may not begin yet."""
MAX_PAUSE_S: Final = 1.0
"""The longest wait before the limit of bytes per second is read again."""


class Cleaner(Protocol):
    """The log cleaner, as far as moves use it."""

    def abort_cleaning(self, log: PartitionLog) -> None:
        """Aborts the current pass over the log, if there is one."""
        ...

    def alter_checkpoint_dir(self, log: PartitionLog, source: LogDirectory, target: LogDirectory) -> None:
        """Moves the log's checkpoint to another log directory."""
        ...


class Move:
    """One log that is being moved."""

    __slots__ = ("follower", "is_announced", "is_flushed", "log", "source", "timer")

    def __init__(self, log: PartitionLog, future: PartitionLog) -> None:
        self.log = log
        self.follower = Follower(future)
        self.source = LogSource(log)
        self.is_flushed = False  #: whether the future log is on the disk, except for records appended since
        self.is_announced = False  #: whether Moves.before_promotion has been called
        self.timer: Timer | None = None

    @property
    def future(self) -> PartitionLog:
        return self.follower.log

    @property
    def key(self) -> TopicPartition:
        return self.log.topic, self.log.partition

    @property
    def offset_lag(self) -> int:
        """How many offsets the future log is behind."""
        return max(self.log.log_end_offset - self.future.log_end_offset, 0)

    def check_online(self) -> None:
        """Checks both logs. :raises KafkaStorageError: the log directory of one is offline"""
        for log in (self.log, self.future):
            if log.is_offline:
                raise KafkaStorageError(f"{log.directory} is offline")


class Moves:
    """All moves of one broker. Without a scheduler they make no progress.

    :attr:`before_promotion` is called with a log and the directory that it will be in. It returns whether the log may
    be replaced now; else it is called again later. It may raise KafkaError, which cancels the move.
    :attr:`on_promotion` is called with the log that has replaced it, :attr:`on_cancelled` with a log whose move has
    ended without that. :attr:`bytes_per_second` is read before each step; None is no limit.
    """

    def __init__(
        self,
        registry: LogRegistry,
        housekeeping: Housekeeping,
        cleaner: Cleaner,
        services: Mapping[LogDirectory, LogServices],
        clock: Clock,
        scheduler: Scheduler | None,
        on_failure: Callable[[LogDirectory, OSError], object],
    ) -> None:
        self.under_way: dict[TopicPartition, Move] = {}
        self.before_promotion: Callable[[PartitionLog, LogDirectory], bool] = lambda log, directory: True
        self.on_promotion: Callable[[PartitionLog], object] = lambda log: None
        self.on_cancelled: Callable[[PartitionLog], object] = lambda log: None
        self.bytes_per_second: Callable[[], int | None] = lambda: None
        self._registry = registry
        self._housekeeping = housekeeping
        self._cleaner = cleaner
        self._services = services
        self._clock = clock
        self._scheduler = scheduler
        self._on_failure = on_failure
        self._stopped = False
        self._excess_bytes = 0.0  # that were copied above the limit and have to be waited for
        self._throttled_at = 0.0

    # ------------------------------------------------------------ starting and cancelling

    def start(self, log: PartitionLog, target: LogDirectory) -> None:
        """Starts moving a log to ``target``, unless it is there already. A move to another directory is cancelled.

        :raises KafkaStorageError: the future log cannot be created, or a log directory is offline
        """
        key = log.topic, log.partition
        move = self.under_way.get(key)
        if move is not None:
            if move.future.log_directory is target:
                return
            self.cancel(key)
        if log.log_directory is target:
            return
        self._check_all_online(key)
        path = target.unique_path(*key, FUTURE_SUFFIX)
        try:
            future = create_log(
                self._services[target],
                path,
                *key,
                log.topic_id,
                log.config,
                now_ms=self._clock.time_ms(),
                start_offset=log.log_start_offset,
            )
            target.files.fsync_path(target.path)
        except OSError as error:
            self._on_failure(target, error)
            raise KafkaStorageError(f"Cannot create {path}: {error}") from error
        self._registry.add_future(future)
        logger.info("Moving %s to %s", log.directory, target.path)
        self._start(log, future)

    def _check_all_online(self, key: TopicPartition) -> None:
        """Checks that all directories are online: an offline one may hold another future log of the partition."""
        offline = [each.path for each in self._registry.directories if each.offline is not None]
        if offline:
            topic, partition = key
            raise KafkaStorageError(f"Cannot move {topic}-{partition} while {', '.join(offline)} is offline.")

    def _start(self, log: PartitionLog, future: PartitionLog) -> None:
        move = self.under_way[log.topic, log.partition] = Move(log, future)
        self._cleaner.abort_cleaning(
            log
        )  # the copy takes over the checkpoint, so the copied part must be clean up to it
        self._schedule(move, 0)

    def cancel(self, key: TopicPartition) -> None:
        """Stops moving a partition, if it is being moved, and deletes its future log."""
        move = self.under_way.pop(key, None)
        if move is not None and move.timer is not None:
            move.timer.cancel()
        for directory in self._registry.directories:
            future = self._registry.future_logs_in(directory).get(key)
            if future is None:
                continue
            self._registry.remove(future)
            future.go_offline("its move was cancelled")
            deleted = directory.unique_path(*key, DELETE_SUFFIX)
            try:
                directory.files.rename(future.directory, deleted)
            except OSError as error:
                self._on_failure(directory, error)
            else:
                self._housekeeping.delete_tree_later(directory, deleted, future.config.file_delete_delay_ms)
        if move is not None:
            self.on_cancelled(move.log)

    def stop(self) -> None:
        """Stops all moves. The next start resumes them."""
        self._stopped = True
        for move in self.under_way.values():
            if move.timer is not None:
                move.timer.cancel()

    def is_moving(self, log: PartitionLog) -> bool:
        """Returns whether a log is being moved."""
        return (log.topic, log.partition) in self.under_way

    # ------------------------------------------------------------ after a restart

    def resume(self, assigned_directory: Callable[[PartitionLog], bytes | None]) -> None:
        """Resumes the moves that a shutdown or a crash has interrupted.

        A future log without a current log was left by a crash between the two renames, and becomes the current log. It
        stays as it is when the directory that the partition is assigned to is offline: the current log may be there.

        :param assigned_directory: returns the id of the directory that the metadata assigns the log to
        """
        registry = self._registry
        online = {directory.directory_id for directory in registry.online_directories}
        for directory in registry.online_directories:
            for key, future in list(registry.future_logs_in(directory).items()):
                log = registry.logs.get(key)
                if log is not None and (log.log_directory is directory or key in self.under_way):
                    self.cancel(key)
                elif log is not None:
                    self._start(log, future)
                elif len(online) < len(registry.directories) and assigned_directory(future) not in online:
                    logger.warning(
                        "%s stays a future log: the current log may be in an offline directory", future.directory
                    )
                else:
                    self._complete_promotion(key, directory, future)

    def _complete_promotion(self, key: TopicPartition, directory: LogDirectory, future: PartitionLog) -> None:
        plain = f"{directory.path}/{key[0]}-{key[1]}"
        try:
            directory.files.rename(future.directory, plain)
            log = self._reopen(plain, future, future.log_start_offset)
        except OSError as error:
            self._on_failure(directory, error)
            return
        log.maybe_set_high_watermark(future.high_watermark)
        logger.warning("Completed the interrupted promotion of %s to %s", future.directory, plain)
        self._replace(future, log)

    # ------------------------------------------------------------ copying

    def _schedule(self, move: Move, delay_s: float) -> None:
        if self._scheduler is not None and not self._stopped:
            move.timer = self._scheduler.call_later(delay_s, self._step, move)

    def _step(self, move: Move) -> None:
        """Copies some batches. When nothing is left flushes the future log, and after the flush promotes it."""
        if self._stopped or self.under_way.get(move.key) is not move:
            return
        began = self._clock.monotonic()
        pause_s = self._throttle(began)
        if pause_s:
            self._schedule(move, pause_s)
            return
        try:
            move.check_online()
            limits = (TAIL_BYTES, began + TAIL_S) if move.is_flushed else (STEP_BYTES, began + STEP_S)
            self._excess_bytes += self._copy(move, *limits)
            if move.offset_lag:
                move.is_flushed = False
                self._schedule(move, self._clock.monotonic() - began)
            elif self._throttle(began):
                self._schedule(move, 0)
            elif move.is_flushed:
                self._promote(move)
            else:
                self._flush(move)
        except KafkaError as error:
            self._fail(move, error)

    def _throttle(self, now: float) -> float:
        """Returns how many seconds to wait before more may be copied, of any log."""
        rate = self.bytes_per_second()
        since, self._throttled_at = now - self._throttled_at, now
        if rate is None:
            self._excess_bytes = 0
        else:
            self._excess_bytes = max(self._excess_bytes - since * rate, 0)
        if not self._excess_bytes:
            return 0 if rate != 0 else MAX_PAUSE_S
        return min(self._excess_bytes / rate, MAX_PAUSE_S) if rate else MAX_PAUSE_S

    def _fail(self, move: Move, error: KafkaError) -> None:
        logger.error("Cannot move %s: %s", move.log.directory, error)
        if isinstance(error, KafkaStorageError):
            self.under_way.pop(move.key, None)  # the next start resumes the move where the disk works
            self.on_cancelled(move.log)
        else:
            self.cancel(move.key)

    def _copy(self, move: Move, max_bytes: int, until: float) -> int:
        """Copies up to ``max_bytes`` until that time. Returns the number of bytes.

        Truncates the future log first if it diverges: the log may have been truncated since the last step.
        """
        clock, log, follower = self._clock, move.log, move.follower
        now_ms = clock.time_ms()
        copied = 0
        while True:
            try:
                fetched = move.source.fetch(follower.position, min(READ_BYTES, max_bytes - copied))
            except OffsetOutOfRange:
                start = log.log_start_offset
                if not follower.handle_out_of_range(start, log.log_end_offset, now_ms):
                    move.future.truncate_fully_and_start_at(start, now_ms)  # its last epoch is not in the log
                continue
            copied += follower.apply(fetched, now_ms)
            if fetched.diverging_epoch is None and (
                not move.offset_lag or copied >= max_bytes or clock.monotonic() > until
            ):
                return copied

    def _flush(self, move: Move) -> None:
        """Flushes the future log before the promotion: the current log may be flushed up to the same offset."""
        future = move.future
        self._housekeeping.checkpoint_log_start_offsets()
        self._housekeeping.flush(future, future.log_end_offset)
        move.is_flushed = True
        future.when_flushed(future.log_end_offset, lambda: self._schedule(move, 0))

    # ------------------------------------------------------------ promotion

    def _promote(self, move: Move) -> None:
        """Replaces the current log by the future log, which has all its records. No append comes in between."""
        log, future = move.log, move.future
        source, target = log.log_directory, future.log_directory
        move.is_announced = True
        if not self.before_promotion(log, target):
            self._schedule(move, PROMOTION_RETRY_S)
            return
        self._copy_state(log, future)
        future.close()
        self._cleaner.alter_checkpoint_dir(log, source, target)
        plain = f"{target.path}/{log.topic}-{log.partition}"
        deleted = source.unique_path(*move.key, DELETE_SUFFIX)
        if not self._exchange_names(log, deleted, future, plain):
            self.under_way.pop(move.key, None)
            self.on_cancelled(log)
            return
        try:
            promoted = self._reopen(plain, future, log.log_start_offset)
        except OSError as error:
            self._on_failure(target, error)
            log.go_offline(str(error))
            return
        promoted.maybe_set_high_watermark(log.high_watermark)
        for producer_id, entry in log.producers.entries.items():
            if (reopened := promoted.producers.entries.get(producer_id)) is not None:
                reopened.batches = entry.batches  # a snapshot has only the last one
        self._registry.remove(log)
        self._replace(future, promoted)
        log.mark_replaced()
        self.on_promotion(promoted)
        logger.info("Moved %s to %s", log.directory, plain)
        self._housekeeping.delete_tree_later(source, deleted, log.config.file_delete_delay_ms)
        self._housekeeping.checkpoint_all()

    def _copy_state(self, log: PartitionLog, future: PartitionLog) -> None:
        """Copies epochs and producers: the batches that compaction and retention have left may not show all of them."""
        try:
            future.leader_epochs.entries = list(log.leader_epochs.entries)
            future.leader_epochs.write()
            future.producers.remove_snapshots(future.log_end_offset, future.log_end_offset)
        except OSError as error:
            self._on_failure(future.log_directory, error)
            raise KafkaStorageError(f"Cannot write to {future.directory}: {error}") from error
        future.producers.entries = dict(log.producers.entries)
        future.sync_epochs_later()

    def _exchange_names(self, log: PartitionLog, deleted: str, future: PartitionLog, plain: str) -> bool:
        """Renames both directories. Returns False when that failed and was undone, as far as the disks allow it."""
        files, source, target = log.log_directory.files, log.log_directory, future.log_directory
        try:
            files.rename(log.directory, deleted)
        except OSError as error:
            self._on_failure(source, error)
            return False
        try:
            files.fsync_path(source.path)  # otherwise a power cut could leave two directories with the plain name
        except OSError as error:
            self._on_failure(source, error)
        try:
            files.rename(future.directory, plain)
        except OSError as error:
            self._on_failure(target, error)
            try:
                files.rename(deleted, log.directory)
            except OSError as second:
                self._on_failure(source, second)
            return False
        return True

    def _reopen(self, path: str, future: PartitionLog, log_start_offset: int) -> PartitionLog:
        """Opens a future log, which is closed, under its new name.

        :raises OSError: a file cannot be read or written
        """
        future.release()
        log = open_log(
            self._services[future.log_directory],
            path,
            future.topic,
            future.partition,
            future.config,
            clean=True,
            recovery_point=future.recovery_point,
            log_start_offset=log_start_offset,
            now_ms=self._clock.time_ms(),
        )
        log.recovery_point = min(future.recovery_point, log.log_end_offset)
        return log

    def _replace(self, future: PartitionLog, log: PartitionLog) -> None:
        """Registers the reopened future log as the current one."""
        self.under_way.pop((log.topic, log.partition), None)
        self._registry.remove(future)
        self._registry.add(log)
        self._housekeeping.schedule_flushes(log)

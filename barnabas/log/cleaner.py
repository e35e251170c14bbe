"""The log cleaner: starts the cleaning of compacted logs, the highest dirty ratio first, and enforces their retention.

Knows nothing of records. :mod:`barnabas.log.cleanable` finds out what can be cleaned in a log, workers outside of the
broker's interpreter do it (:mod:`barnabas.log.cleaning`), and :mod:`barnabas.log.swapping` replaces the old segments.
The rules are those of Apache Kafka's ``LogCleaner`` and ``LogCleanerManager``.

``cleaner-offset-checkpoint``, a file in each log directory, holds the offset up to which each log is clean.
"""

import logging
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from barnabas.clock import Clock, Scheduler, Timer
from barnabas.config.settings import Settings
from barnabas.errors import CorruptMessage, KafkaError, KafkaStorageError
from barnabas.log import checkpoints, swapping
from barnabas.log.checkpoints import TopicPartition
from barnabas.log.cleanable import LogToClean, examine, first_dirty_offset, job_of
from barnabas.log.cleaner_workers import CleanerWorker, Outcome, Stopped
from barnabas.log.housekeeping import Housekeeping
from barnabas.log.log_directory import LogDirectory
from barnabas.log.log_registry import LogRegistry
from barnabas.log.partition_log import PartitionLog
from barnabas.log.turns import visit_in_turns

if TYPE_CHECKING:
    from barnabas.log.cleaning.job import CleanedGroup, CleaningResult, Statistics

logger = logging.getLogger(__name__)

IDLE_S: Final = 60.0
"""How long idle workers are kept."""


class CleanerSettings(NamedTuple):
    """The broker's configs of the cleaner, with Kafka's names and defaults. Times are in ms, sizes in bytes."""

    log_cleaner_enable: bool = True
    log_cleaner_threads: int = 1
    log_cleaner_backoff_ms: int = 15_000
    log_cleaner_io_max_bytes_per_second: float = sys.float_info.max
    log_cleaner_dedupe_buffer_size: int = 134_217_728
    log_cleaner_io_buffer_load_factor: float = 0.9

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        """Returns the values of ``settings`` under Kafka's dotted names."""
        return cls(**{name: settings[name.replace("_", ".")] for name in cls._fields})


class Pass:
    """One log that is being cleaned, and the worker that does it."""

    __slots__ = ("is_aborted", "log", "worker")

    def __init__(self, log: PartitionLog, worker: CleanerWorker) -> None:
        self.log = log
        self.worker = worker
        self.is_aborted = False


class LogCleaner:
    """The cleaner of one broker. :meth:`start` it when all logs are open, :meth:`stop` it before they are closed.

    :param new_worker: creates a worker; at most ``log.cleaner.threads`` of them exist, and none while nothing is dirty
    :param is_moving: returns whether a log is being moved; such a log is not cleaned
    """

    def __init__(
        self,
        registry: LogRegistry,
        housekeeping: Housekeeping,
        clock: Clock,
        scheduler: Scheduler | None,
        settings: CleanerSettings,
        new_worker: Callable[[], CleanerWorker],
        is_moving: Callable[[PartitionLog], bool],
        on_failure: Callable[[LogDirectory, OSError], object],
    ) -> None:
        self.settings = settings
        self.checkpoints: dict[LogDirectory, dict[TopicPartition, int]] = {}
        self.uncleanable: set[PartitionLog] = set()  #: logs that failed; they are not cleaned until the next start
        self.passes: dict[PartitionLog, Pass] = {}
        self.done = 0  #: passes that have cleaned something
        self.last: Statistics | None = None  #: of the last of them
        self.bytes_read = self.bytes_kept = 0  #: by all of them
        self._registry = registry
        self._housekeeping = housekeeping
        self._clock = clock
        self._scheduler = scheduler
        self._new_worker = new_worker
        self._is_moving = is_moving
        self._on_failure = on_failure
        self._idle_workers: list[CleanerWorker] = []
        self._timer: Timer | None = None
        self._last_pass_s = 0.0
        self._is_running = False
        self._is_checking = False

    # ------------------------------------------------------------ starting and stopping

    def start(self) -> None:
        """Loads the checkpoints, and starts cleaning."""
        for directory in self._registry.online_directories:
            try:
                self._load_checkpoint(directory)
            except OSError as error:
                self._on_failure(directory, error)
        self._is_running = self._scheduler is not None
        self._schedule_check(0)

    def _load_checkpoint(self, directory: LogDirectory) -> None:
        """Loads a directory's checkpoint, without the offsets beyond the end of logs that a crash has shortened."""
        offsets, logs = directory.read_checkpoint(checkpoints.CLEANER_OFFSETS), self._registry.logs_in(directory)
        self.checkpoints[directory] = {
            key: offset for key, offset in offsets.items() if key in logs and offset <= logs[key].log_end_offset
        }

    def stop(self) -> None:
        """Aborts the passes under way. No other starts."""
        self._is_running = False
        if self._timer is not None:
            self._timer.cancel()
        self._close_workers()

    def reconfigure(self, settings: CleanerSettings) -> None:
        """Replaces the configs. As in Apache Kafka the passes under way are aborted and start again."""
        if settings == self.settings:
            return
        self.settings = settings
        if self._is_running:
            self._release_idle_workers()
            self._close_workers()
            self._schedule_check(0)

    def _close_workers(self) -> None:
        for each in self.passes.values():
            each.is_aborted = True
        for worker in [*self._idle_workers, *(each.worker for each in self.passes.values())]:
            worker.close()
        self.passes.clear()
        self._idle_workers.clear()

    def _release_idle_workers(self) -> None:
        for worker in self._idle_workers:
            worker.release()
        self._idle_workers.clear()

    # ------------------------------------------------------------ choosing logs

    def _schedule_check(self, delay_ms: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._is_running and self.settings.log_cleaner_enable and self._scheduler is not None:
            self._timer = self._scheduler.call_later(delay_ms / 1000, self.check_logs)

    def check_logs(self) -> None:
        """Enforces retention in all compacted logs, then starts to clean those that are due, the highest dirty ratio
        first.

        The logs are visited over several turns of the loop.
        """
        if self._is_checking:
            return  # the last check still has logs to visit, and schedules the next one
        self._is_checking = True
        now_ms = self._clock.time_ms()
        due: list[LogToClean] = []

        def visit(log: PartitionLog) -> None:
            if not self._is_running or not log.config.compacts or not self._enforce_retention(log, now_ms):
                return
            if self._has_free_worker and (to_clean := self._due(log, now_ms)) is not None:
                due.append(to_clean)

        def done() -> None:
            self._is_checking = False
            if self._is_running and self.settings.log_cleaner_enable:
                self._start_passes([each.log for each in sorted(due, key=_ratio, reverse=True)])

        visit_in_turns(list(self._registry.logs.values()), visit, self._clock, self._scheduler, done)

    def _enforce_retention(self, log: PartitionLog, now_ms: int) -> bool:
        """Deletes old segments of a log that is not being cleaned. Returns whether the log is online."""
        if log not in self.passes and not log.is_offline:
            try:
                log.enforce_retention(now_ms)
            except KafkaStorageError:
                return False  # the log directory went offline, and that was logged
        return not log.is_offline

    @property
    def _has_free_worker(self) -> bool:
        """Whether another pass may start. A limit of 0 bytes a second disables cleaning."""
        return self.settings.log_cleaner_io_max_bytes_per_second > 0 and (
            len(self.passes) < self.settings.log_cleaner_threads
        )

    def _due(self, log: PartitionLog, now_ms: int) -> LogToClean | None:
        """Returns what there is to clean in a compacted log, if cleaning is due."""
        if len(log.segments) == 1 or log.is_offline or not log.config.compacts:
            return None
        if log in self.passes or log in self.uncleanable or self._is_moving(log):
            return None
        if log.recovery_point < log.segments.active.base_offset:
            self._housekeeping.flush(log, log.segments.active.base_offset)
        try:
            to_clean = examine(log, self._first_dirty_offset(log), now_ms)
        except OSError as error:
            self._on_failure(log.log_directory, error)
            return None
        except CorruptMessage as error:
            self._mark_uncleanable(log, error)
            return None
        return to_clean if to_clean is not None and to_clean.is_due else None

    def _first_dirty_offset(self, log: PartitionLog) -> int:
        """Returns where cleaning continues. A checkpoint outside of the log is corrected, so that it is logged once."""
        offsets, key = self.checkpoints[log.log_directory], (log.topic, log.partition)
        checkpoint = offsets.get(key)
        first_dirty = first_dirty_offset(log, checkpoint)
        if checkpoint is not None and checkpoint != first_dirty:
            offsets[key] = first_dirty
            self._write_checkpoint(log.log_directory)
        return first_dirty

    def _start_passes(self, logs: list[PartitionLog]) -> None:
        """Starts passes over these logs, as many as there may be, and schedules the next check."""
        now_ms = self._clock.time_ms()
        for log in logs:
            # The log is examined again: it may have changed since it was visited.
            while self._has_free_worker and (to_clean := self._due(log, now_ms)) is not None:
                self._start_pass(to_clean, now_ms)
                self._last_pass_s = self._clock.monotonic()
        if not self.passes and self._clock.monotonic() - self._last_pass_s >= IDLE_S:
            self._release_idle_workers()
        self._schedule_check(self.settings.log_cleaner_backoff_ms)

    # ------------------------------------------------------------ one pass

    def _start_pass(self, to_clean: LogToClean, now_ms: int) -> None:
        log, settings = to_clean.log, self.settings
        worker = self._idle_workers.pop() if self._idle_workers else self._new_worker()
        current = self.passes[log] = Pass(log, worker)
        # From now on the log may have gaps, which recovery accepts in a log that is in the checkpoint.
        self.checkpoints[log.log_directory].setdefault((log.topic, log.partition), to_clean.first_dirty_offset)
        self._write_checkpoint(log.log_directory)
        try:
            job = job_of(
                to_clean,
                now_ms,
                buffer_bytes=settings.log_cleaner_dedupe_buffer_size // settings.log_cleaner_threads,
                load=settings.log_cleaner_io_buffer_load_factor,
                bytes_per_second=settings.log_cleaner_io_max_bytes_per_second / settings.log_cleaner_threads,
            )
        except OSError as error:
            self._done(current, error)
            return
        logger.debug("Cleaning %s from offset %d to %d", log, to_clean.first_dirty_offset, to_clean.end_offset)
        worker.start(job, lambda group: self._replace(current, group), lambda outcome: self._done(current, outcome))

    def _replace(self, current: Pass, group: "CleanedGroup") -> None:
        """Replaces segments by a cleaned one. In the worker's thread."""
        log = current.log
        files, directory = log.log_directory.files, log.directory
        swapping.stage(files, directory, group)
        try:
            is_replaced = current.worker.call_in_loop(lambda: self._swap_in(current, group))
        except Stopped:
            is_replaced = False
        if not is_replaced:
            swapping.discard(files, directory, group)
            raise Stopped
        files.fsync_path(directory)

    def _swap_in(self, current: Pass, group: "CleanedGroup") -> bool:
        return not current.is_aborted and not current.log.is_offline and current.log.replace_segments(group)

    def _done(self, current: Pass, outcome: Outcome) -> None:
        log = current.log
        if self.passes.get(log) is not current:
            return  # all passes were aborted
        del self.passes[log]
        self._idle_workers.append(current.worker)
        self._last_pass_s = self._clock.monotonic()
        delay_ms = 0
        if current.is_aborted or log.is_offline:
            pass  # the outcome does not apply: the log has changed since the pass started
        elif isinstance(outcome, OSError):
            self._on_failure(log.log_directory, outcome)
        elif isinstance(outcome, BaseException):
            delay_ms = self._failed(log, outcome)
        else:
            self._record(log, outcome)
        self._schedule_check(delay_ms)

    def _record(self, log: PartitionLog, result: "CleaningResult") -> None:
        self.checkpoints[log.log_directory][log.topic, log.partition] = result.next_dirty_offset
        self._write_checkpoint(log.log_directory)
        statistics = self.last = result.statistics
        self.done += 1
        self.bytes_read += statistics.bytes_read
        self.bytes_kept += statistics.bytes_kept
        logger.info(
            "Cleaned %s-%d up to offset %d: kept %d of %d records, %d of %d bytes, %d keys, %.1f s%s",
            log.topic,
            log.partition,
            result.next_dirty_offset,
            statistics.records_kept,
            statistics.records_read,
            statistics.bytes_kept,
            statistics.bytes_read,
            statistics.map_entries,
            statistics.seconds,
            "; the offset map was full" if statistics.map_is_full else "",
        )

    def _failed(self, log: PartitionLog, error: BaseException) -> int:
        """Handles an error of the log or of the worker. Returns the delay of the next check, in ms."""
        from barnabas.log.cleaning.process import CleanerDied

        if isinstance(error, Stopped):  # the segments were not replaceable, which may be temporary
            return self.settings.log_cleaner_backoff_ms
        if isinstance(error, CleanerDied):
            logger.warning("Cannot clean %s-%d, will retry: %s", log.topic, log.partition, error)
            return self.settings.log_cleaner_backoff_ms
        self._mark_uncleanable(log, error)
        return 0

    def _mark_uncleanable(self, log: PartitionLog, error: BaseException) -> None:
        """Leaves a log alone until the next start: a retry would fail with the same error."""
        self.uncleanable.add(log)
        trace = None if isinstance(error, KafkaError) else error
        logger.error("%s-%d is uncleanable: %s", log.topic, log.partition, error, exc_info=trace)

    # ------------------------------------------------------------ changes of logs

    def abort_cleaning(self, log: PartitionLog) -> None:
        """Aborts the pass over a log, if there is one."""
        current = self.passes.get(log)
        if current is not None and not current.is_aborted:
            current.is_aborted = True
            current.worker.abort()

    def remove_log(self, log: PartitionLog) -> None:
        """Aborts the pass over a deleted log, and removes its checkpoint."""
        self.abort_cleaning(log)
        self.uncleanable.discard(log)
        offsets = self.checkpoints.get(log.log_directory, {})
        if offsets.pop((log.topic, log.partition), None) is not None:
            self._write_checkpoint(log.log_directory)

    def truncate_checkpoint(self, log: PartitionLog, end: int) -> None:
        """Aborts the pass over a truncated log, and lowers its checkpoint to ``end`` at most."""
        self.abort_cleaning(log)
        offsets, key = self.checkpoints.get(log.log_directory, {}), (log.topic, log.partition)
        if offsets.get(key, -1) > end:
            offsets[key] = end
            self._write_checkpoint(log.log_directory)

    def alter_checkpoint_dir(self, log: PartitionLog, source: LogDirectory, target: LogDirectory) -> None:
        """Aborts the pass over a log that is promoted to another directory, and moves its checkpoint there."""
        self.abort_cleaning(log)
        offset = self.checkpoints.get(source, {}).pop((log.topic, log.partition), None)
        if offset is not None:
            self.checkpoints.setdefault(target, {})[log.topic, log.partition] = offset
            self._write_checkpoint(source)
            self._write_checkpoint(target)

    def _write_checkpoint(self, directory: LogDirectory) -> None:
        write = directory.checkpoint(checkpoints.CLEANER_OFFSETS, dict(self.checkpoints[directory]))
        if write is not None:
            self._housekeeping.in_background(directory, write)


def _ratio(to_clean: LogToClean) -> float:
    return to_clean.ratio

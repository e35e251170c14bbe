"""The periodic work on a broker's logs: flushes, checkpoints, retention, deferred deletions, expiry of producers.

Knows nothing of how a log does its part; it decides when that happens, and in which thread.
"""

import logging
from collections.abc import Callable
from operator import attrgetter
from typing import NamedTuple, Self

from barnabas.clock import Clock, Scheduler, Timer
from barnabas.config.settings import Settings
from barnabas.errors import KafkaStorageError
from barnabas.integers import MAX_LONG
from barnabas.log import checkpoints
from barnabas.log.background import Background
from barnabas.log.checkpoints import TopicPartition
from barnabas.log.files import Files
from barnabas.log.log_directory import LogDirectory
from barnabas.log.log_registry import LogRegistry
from barnabas.log.partition_log import PartitionLog
from barnabas.log.turns import visit_in_turns

logger = logging.getLogger(__name__)

METADATA_TOPIC = "__cluster_metadata"


class LogSettings(NamedTuple):
    """The broker's configs of its logs, with Kafka's names and defaults. Times are in ms."""

    log_initial_task_delay_ms: int = 30_000
    log_retention_check_interval_ms: int = 300_000
    log_flush_scheduler_interval_ms: int = MAX_LONG
    log_flush_offset_checkpoint_interval_ms: int = 60_000
    log_flush_start_offset_checkpoint_interval_ms: int = 60_000
    replica_high_watermark_checkpoint_interval_ms: int = 5_000
    producer_id_expiration_ms: int = 86_400_000
    producer_id_expiration_check_interval_ms: int = 600_000
    num_recovery_threads_per_data_dir: int = 2

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        """Returns the values of ``settings`` under Kafka's dotted names."""
        return cls(**{name: settings[name.replace("_", ".")] for name in cls._fields})


class Housekeeping:
    """The schedules of one broker's logs. Logs may be added and removed at any time."""

    def __init__(
        self,
        files: Files,
        registry: LogRegistry,
        clock: Clock,
        scheduler: Scheduler | None,
        background: Background,
        settings: LogSettings,
        on_failure: Callable[[LogDirectory, OSError], object],
    ) -> None:
        self.settings = settings
        self._files = files
        self._registry = registry
        self._clock = clock
        self._scheduler = scheduler
        self._background = background
        self._on_failure = on_failure
        self._timers: dict[str, Timer] = {}
        self._flush_interval_ms = settings.log_flush_scheduler_interval_ms
        self._with_flush_ms: dict[PartitionLog, None] = {}  # an ordered set
        self._is_flushing_due = False
        self._flushing: dict[PartitionLog, int] = {}  # the end offset of the next flush, 0 if none is wanted
        self._stopped = False
        self.flushed = 0  #: flushes that have ended
        self.flush_s = 0.0  #: how long they took, with their wait for the background thread

    def start(self) -> None:
        """Starts all schedules, and removes the producers that have expired."""
        settings = self.settings
        self.expire_producers()
        tasks: list[tuple[str, Callable[[], object], int]] = [
            ("retention", self.enforce_retention, settings.log_retention_check_interval_ms),
            ("recovery points", self.checkpoint_recovery_points, settings.log_flush_offset_checkpoint_interval_ms),
            ("starts", self.checkpoint_log_start_offsets, settings.log_flush_start_offset_checkpoint_interval_ms),
            ("high", self.checkpoint_high_watermarks, settings.replica_high_watermark_checkpoint_interval_ms),
            ("producers", self.expire_producers, settings.producer_id_expiration_check_interval_ms),
        ]
        for name, task, interval_ms in tasks:
            self._every(name, interval_ms, task, settings.log_initial_task_delay_ms)
        self._every("flush", self._flush_interval_ms, self.flush_due)

    def stop(self) -> None:
        """Stops all schedules, and returns when the work in the background is done."""
        self._stopped = True
        for timer in self._timers.values():
            timer.cancel()
        self._background.close()

    def _every(self, name: str, interval_ms: int, task: Callable[[], object], first_ms: int | None = None) -> None:
        """Schedules ``task`` every ``interval_ms``, in place of an earlier schedule of that name."""
        if self._scheduler is None or interval_ms >= MAX_LONG // 1000 or self._stopped:
            return

        def again() -> None:
            self._every(name, interval_ms, task)
            task()

        if name in self._timers:
            self._timers[name].cancel()
        delay_ms = interval_ms if first_ms is None else min(first_ms, interval_ms)
        self._timers[name] = self._scheduler.call_later(delay_ms / 1000, again)

    def call_later(self, delay_ms: int, callback: Callable[[], object]) -> None:
        """Calls ``callback`` once after ``delay_ms``, unless :meth:`stop` is called before."""
        if self._scheduler is None or delay_ms <= 0:
            callback()
        elif not self._stopped:
            self._scheduler.call_later(delay_ms / 1000, lambda: None if self._stopped else callback())

    def in_background(self, directory: LogDirectory, work: Callable[[], object]) -> None:
        """Runs ``work`` on that directory in the background. An OSError takes the directory offline."""

        def done(error: BaseException | None) -> None:
            if isinstance(error, OSError):
                self._on_failure(directory, error)
            elif error is not None:
                raise error

        if directory.offline is None:
            self._background.run(work, done)

    def delete_later(self, directory: LogDirectory, paths: list[str], delay_ms: int) -> None:
        """Deletes files after ``delay_ms``."""

        def delete() -> None:
            for path in paths:
                self._files.delete(path)

        if paths:
            self.call_later(delay_ms, lambda: self.in_background(directory, delete))

    def delete_tree_later(self, directory: LogDirectory, path: str, delay_ms: int) -> None:
        """Deletes a partition's directory after ``delay_ms``."""
        self.call_later(delay_ms, lambda: self.in_background(directory, lambda: self._files.delete_tree(path)))

    # ------------------------------------------------------------ retention and producers

    def _visit(self, visit: Callable[[PartitionLog], object]) -> None:
        """Calls ``visit`` for all current logs, over several turns of the loop."""

        def visit_online(log: PartitionLog) -> None:
            if not log.is_offline and not self._stopped:
                try:
                    visit(log)
                except KafkaStorageError:
                    return  # the log directory went offline, and that was logged

        visit_in_turns(list(self._registry.logs.values()), visit_online, self._clock, self._scheduler)

    def enforce_retention(self) -> None:
        """Deletes segments by retention in all logs, except those of compacted topics, where the cleaner does it."""
        now_ms = self._clock.time_ms()
        self._visit(lambda log: None if log.config.compacts else log.enforce_retention(now_ms))

    def expire_producers(self) -> None:
        """Removes the producers that have written nothing for ``producer.id.expiration.ms``."""
        now_ms, expiration_ms = self._clock.time_ms(), self.settings.producer_id_expiration_ms
        self._visit(lambda log: log.producers.expire(now_ms, expiration_ms))

    # ------------------------------------------------------------ flushing

    def schedule_flushes(self, log: PartitionLog) -> None:
        """Adds a log to the periodic flush if it has ``flush.ms``, and shortens the period if necessary."""
        flush_ms = log.config.flush_ms
        if flush_ms >= MAX_LONG:
            self._with_flush_ms.pop(log, None)
            return
        self._with_flush_ms[log] = None
        interval_ms = max(flush_ms, 1)
        if interval_ms < self._flush_interval_ms:
            self._flush_interval_ms = interval_ms
            self._every("flush", interval_ms, self.flush_due)

    def flush_due(self) -> None:
        """Flushes the logs whose records have been waiting for ``flush.ms``, over several turns of the loop."""
        if self._is_flushing_due:
            return  # the last call still has logs to visit
        self._is_flushing_due = True
        now_ms = self._clock.time_ms()

        def visit(log: PartitionLog) -> None:
            if log.is_offline:
                self._with_flush_ms.pop(log, None)
            elif log.is_flush_due(now_ms) and not self._stopped:
                self.flush(log, log.log_end_offset)

        def done() -> None:
            self._is_flushing_due = False

        visit_in_turns(list(self._with_flush_ms), visit, self._clock, self._scheduler, done)

    def flush(self, log: PartitionLog, up_to: int) -> None:
        """Flushes a log in the background. Calls during a flush are combined into one flush after it."""
        if log in self._flushing:
            self._flushing[log] = max(self._flushing[log], up_to)
            return
        flush = log.begin_flush(up_to)
        if flush is None:
            return
        self._flushing[log] = 0
        began = self._clock.monotonic()

        def done(error: BaseException | None) -> None:
            next_up_to = self._flushing.pop(log)
            self.flushed += 1
            self.flush_s += self._clock.monotonic() - began
            if error is None:
                log.finish_flush(flush, self._clock.time_ms())
                if next_up_to > log.recovery_point and not log.is_offline:
                    self.flush(log, next_up_to)
            elif isinstance(error, OSError):
                log.fail(error)
            else:
                raise error

        self._background.run(flush.run, done)

    # ------------------------------------------------------------ checkpoints

    def checkpoint_all(self) -> None:
        """Writes all checkpoints."""
        self.checkpoint_recovery_points()
        self.checkpoint_log_start_offsets()
        self.checkpoint_high_watermarks()

    def checkpoint_recovery_points(self, *, only: LogDirectory | None = None) -> None:
        """Writes the recovery points of all logs, or of those in one directory."""
        self._checkpoint(checkpoints.RECOVERY_POINTS, attrgetter("recovery_point"), only)

    def checkpoint_log_start_offsets(self) -> None:
        """Writes the log start offsets that are above the base offset of the first segment."""
        self._checkpoint(checkpoints.LOG_START_OFFSETS, _raised_log_start_offset)

    def checkpoint_high_watermarks(self) -> None:
        """Writes the high watermarks of all logs."""
        self._checkpoint(checkpoints.HIGH_WATERMARKS, attrgetter("high_watermark"))

    def _checkpoint(
        self, name: str, offset: Callable[[PartitionLog], int | None], only: LogDirectory | None = None
    ) -> None:
        for directory in [only] if only is not None else self._registry.directories:
            if directory.offline is None:
                write = directory.checkpoint(name, self._offsets_in(directory, offset))
                if write is not None:
                    self.in_background(directory, write)

    def _offsets_in(
        self, directory: LogDirectory, offset: Callable[[PartitionLog], int | None]
    ) -> dict[TopicPartition, int]:
        """Returns the content of a checkpoint. As in Apache Kafka it does not include the metadata log."""
        logs = {**self._registry.logs_in(directory), **self._registry.future_logs_in(directory)}
        offsets = {key: offset(log) for key, log in logs.items() if key[0] != METADATA_TOPIC}
        return {key: value for key, value in offsets.items() if value is not None}


def _raised_log_start_offset(log: PartitionLog) -> int | None:
    return log.log_start_offset if log.log_start_offset > log.segments[0].base_offset else None

"""What happens to logs from time to time: flushes, checkpoints, retention, deletions, forgotten producers.

Knows nothing of how a log does these things, only of when, and in which thread.
"""

import logging
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Protocol, Self

from barnabas.clock import Clock, Scheduler, Timer
from barnabas.config.topic import MAX_LONG, TopicConfig
from barnabas.errors import KafkaStorageError
from barnabas.log import checkpoints
from barnabas.log.background import Background
from barnabas.log.checkpoints import TopicPartition
from barnabas.log.files import Files
from barnabas.log.log_directory import LogDirectory
from barnabas.log.partition_log import PartitionLog

logger = logging.getLogger(__name__)

METADATA_TOPIC = "__cluster_metadata"
_AT_ONCE = 64  # logs looked at before the loop has its turn again


class Settings(Protocol):
    """Parsed values by name: a ``BrokerConfig``, or a dict."""

    def __getitem__(self, name: str, /) -> Any: ...


class LogSettings(NamedTuple):
    """The broker's own settings of its logs, under Kafka's names and with its defaults; times in ms."""

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
    def from_config(cls, config: Settings) -> Self:
        """The values that ``config`` has under Kafka's dotted names."""
        return cls(**{name: config[name.replace("_", ".")] for name in cls._fields})


class Housekeeping:
    """The schedules of one broker's logs. ``directories`` and their logs may change while it goes on."""

    def __init__(
        self,
        files: Files,
        directories: Iterable[LogDirectory],
        clock: Clock,
        scheduler: Scheduler | None,
        background: Background,
        settings: LogSettings,
        on_failure: Callable[[LogDirectory, OSError], object],
    ) -> None:
        self.settings = settings
        self._files = files
        self._directories = directories
        self._clock = clock
        self._scheduler = scheduler
        self._background = background
        self._on_failure = on_failure
        self._timers: dict[str, Timer] = {}
        self._flush_interval_ms = settings.log_flush_scheduler_interval_ms
        self._flushing: dict[PartitionLog, int] = {}
        self._stopped = False

    def start(self) -> None:
        """Do everything at its interval from now on; producers that are too old by now are not remembered at all."""
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
        """Do nothing more by itself; what was begun is finished."""
        self._stopped = True
        for timer in self._timers.values():
            timer.cancel()
        self._background.close()

    def _every(self, name: str, interval_ms: int, task: Callable[[], object], first_ms: int | None = None) -> None:
        """Do ``task`` every ``interval_ms``, instead of what was done under that name before."""
        if self._scheduler is None or interval_ms >= MAX_LONG // 1000 or self._stopped:
            return

        def again() -> None:
            self._every(name, interval_ms, task)
            task()

        if name in self._timers:
            self._timers[name].cancel()
        delay_ms = interval_ms if first_ms is None else min(first_ms, interval_ms)
        self._timers[name] = self._scheduler.call_later(delay_ms / 1000, again)

    def later(self, delay_ms: int, callback: Callable[[], object]) -> None:
        """Call back once, that much later; never when everything stops before."""
        if self._scheduler is None or delay_ms <= 0:
            callback()
        elif not self._stopped:
            self._scheduler.call_later(delay_ms / 1000, lambda: None if self._stopped else callback())

    def in_background(self, directory: LogDirectory, work: Callable[[], object]) -> None:
        """Do ``work`` on that directory off this thread; an OSError takes the directory offline."""

        def done(error: BaseException | None) -> None:
            if isinstance(error, OSError):
                self._on_failure(directory, error)
            elif error is not None:
                raise error

        if directory.offline is None:
            self._background.run(work, done)

    def delete_later(self, directory: LogDirectory, paths: list[str], delay_ms: int) -> None:
        """Delete files that are out of use."""

        def delete() -> None:
            for path in paths:
                self._files.delete(path)

        if paths:
            self.later(delay_ms, lambda: self.in_background(directory, delete))

    def delete_tree_later(self, directory: LogDirectory, path: str, delay_ms: int) -> None:
        """Delete a partition's directory that is out of use."""
        self.later(delay_ms, lambda: self.in_background(directory, lambda: self._files.delete_tree(path)))

    def _logs(self) -> list[PartitionLog]:
        return [log for directory in self._directories if directory.offline is None for log in directory.logs.values()]

    def _visit(self, logs: Iterable[PartitionLog], visit: Callable[[PartitionLog], object]) -> None:
        """Visit some of the logs, and the others when the loop has had its turn."""
        remaining = iter(logs)
        for count, log in enumerate(remaining, 1):
            if not log.is_offline:
                try:
                    visit(log)
                except KafkaStorageError:
                    continue  # its directory went offline, and said so
            if count == _AT_ONCE and self._scheduler is not None:
                self._scheduler.call_later(0, self._visit, remaining, visit)
                return

    def enforce_retention(self) -> None:
        """Drop the segments of all logs that are past their time; those of compacted logs are the cleaner's to drop."""
        now_ms = self._clock.time_ms()
        logs = [log for log in self._logs() if not log.config.compacts]
        self._visit(logs, lambda log: log.enforce_retention(now_ms))

    def expire_producers(self) -> None:
        """Forget the producers that have not written for ``producer.id.expiration.ms``."""
        now_ms, expiration_ms = self._clock.time_ms(), self.settings.producer_id_expiration_ms
        self._visit(self._logs(), lambda log: log.producers.expire(now_ms, expiration_ms))

    # ------------------------------------------------------------ flushing

    def expect_flushes(self, config: TopicConfig) -> None:
        """See to it that a topic's ``flush.ms`` is kept, even where ``log.flush.scheduler.interval.ms`` is longer."""
        interval_ms = max(config.flush_ms, 1)
        if interval_ms < self._flush_interval_ms:
            self._flush_interval_ms = interval_ms
            self._every("flush", interval_ms, self.flush_due)

    def flush_due(self) -> None:
        """Flush the logs in which something has been waiting for ``flush.ms``."""
        now_ms = self._clock.time_ms()
        for log in self._logs():
            if log.is_flush_due(now_ms):
                self.flush(log, log.log_end_offset)

    def flush(self, log: PartitionLog, up_to: int) -> None:
        """Flush a log off this thread; what is asked for while that goes on is done in one go after it."""
        if log in self._flushing:
            self._flushing[log] = max(self._flushing[log], up_to)
            return
        flush = log.begin_flush(up_to)
        if flush is None:
            return
        self._flushing[log] = 0

        def done(error: BaseException | None) -> None:
            next_up_to = self._flushing.pop(log)
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
        """Write down all that is written down from time to time."""
        self.checkpoint_recovery_points()
        self.checkpoint_log_start_offsets()
        self.checkpoint_high_watermarks()

    def checkpoint_recovery_points(self, *, only: LogDirectory | None = None) -> None:
        """Write down up to where each log is safe on the disk."""
        self._checkpoint(checkpoints.RECOVERY_POINTS, lambda log: log.recovery_point, only)

    def checkpoint_log_start_offsets(self) -> None:
        """Write down where logs start that do not start with their first segment."""
        self._checkpoint(checkpoints.LOG_START_OFFSETS, _moved_start)

    def checkpoint_high_watermarks(self) -> None:
        """Write down up to where each log is committed."""
        self._checkpoint(checkpoints.HIGH_WATERMARKS, lambda log: log.high_watermark)

    def _checkpoint(
        self, name: str, offset: Callable[[PartitionLog], int | None], only: LogDirectory | None = None
    ) -> None:
        for directory in [only] if only is not None else self._directories:
            if directory.offline is None:
                write = directory.checkpoint(name, offsets_in(directory, offset))
                if write is not None:
                    self.in_background(directory, write)


def offsets_in(directory: LogDirectory, offset: Callable[[PartitionLog], int | None]) -> dict[TopicPartition, int]:
    """One checkpoint's content; like Apache Kafka's it leaves the metadata log out."""
    logs = directory.logs | directory.futures if directory.futures else directory.logs
    offsets = {key: offset(log) for key, log in logs.items() if log.topic != METADATA_TOPIC}
    return {key: value for key, value in offsets.items() if value is not None}


def _moved_start(log: PartitionLog) -> int | None:
    return log.log_start_offset if log.log_start_offset > log.segments[0].base_offset else None

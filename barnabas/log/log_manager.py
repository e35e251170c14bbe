"""All logs of a broker, in one directory or several: opened, placed, flushed, checkpointed, retained, deleted, closed.

Knows nothing of leaders, clients or the metadata: it is told which partitions there are to be, and how they are set.
"""

import logging
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Self, TypeVar

from barnabas.clock import Clock, Scheduler, Timer
from barnabas.config.topic import MAX_LONG, TopicConfig
from barnabas.errors import KafkaStorageError
from barnabas.log import checkpoints
from barnabas.log.background import Background, Inline
from barnabas.log.checkpoints import TopicPartition
from barnabas.log.files import Files
from barnabas.log.log_directory import DELETE_SUFFIX, STRAY_SUFFIX, LogDirectory, LogDirectoryError, renamed
from barnabas.log.meta_properties import MetaProperties, random_uuid, uuid_text
from barnabas.log.partition_log import LogServices, PartitionLog
from barnabas.log.recovery import create_log, open_log
from barnabas.log.segment import IndexCache

logger = logging.getLogger(__name__)

Item = TypeVar("Item")

METADATA_TOPIC = "__cluster_metadata"
_AT_ONCE = 64  # logs looked at before the loop has its turn again


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
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """The values that ``config`` has under Kafka's dotted names, defaults for the others."""
        return cls(**{name: config[name.replace("_", ".")] for name in cls._fields if name.replace("_", ".") in config})


class _Services(LogServices):
    """What the logs of one directory get from the manager."""

    def __init__(self, manager: "LogManager", directory: LogDirectory, index_cache: IndexCache) -> None:
        super().__init__(manager.files, index_cache)
        self.directory = directory
        self._manager = manager

    def jitter_ms(self, upper: int) -> int:
        return self._manager.random_below(upper)

    def delete_later(self, paths: list[str], delay_ms: int) -> None:
        self._manager.delete_later(self.directory, paths, delay_ms)

    def flush_due(self, log: PartitionLog, up_to: int) -> None:
        self._manager.flush_async(log, up_to)

    def failed(self, log: PartitionLog, error: OSError) -> None:
        self._manager.directory_failed(self.directory, error)


class LogManager:
    """The logs of one broker. :meth:`start` first, :meth:`open_all` next, :meth:`close` at the end."""

    def __init__(
        self,
        files: Files,
        log_dirs: Sequence[str],
        *,
        clock: Clock,
        scheduler: Scheduler | None = None,
        background: Background | None = None,
        settings: LogSettings = LogSettings(),  # noqa: B008  # immutable
        random_bytes: Callable[[int], bytes] = os.urandom,
        on_directory_failure: Callable[[LogDirectory], object] | None = None,
    ) -> None:
        self.files = files
        self.clock = clock
        self.settings = settings
        self.directories = [LogDirectory(files, path.rstrip("/") or "/") for path in log_dirs]
        self.logs: dict[TopicPartition, PartitionLog] = {}
        self.on_directory_failure = on_directory_failure
        self._scheduler = scheduler
        self._background = background if background is not None else Inline()
        self._random_bytes = random_bytes
        self._index_cache = IndexCache()
        self._services: dict[str, _Services] = {}
        self._timers: dict[str, Timer] = {}
        self._flushing: dict[PartitionLog, int] = {}
        self._closed = False

    # ------------------------------------------------------------ starting

    def start(self, node_id: int, cluster_id: str | None = None) -> str:
        """Lock the directories and make sure that they are this node's; new ones are given to it. The cluster's id.

        Raises LogDirectoryError when a directory is in use, or another node's or cluster's; when none can be used.
        """
        found: dict[str, MetaProperties | None] = {}
        try:
            for directory in self.directories:
                try:
                    directory.acquire()
                    found[directory.path] = directory.load_properties()
                    directory.take_clean_marker()
                except OSError as error:
                    self.directory_failed(directory, error)
            cluster_id = self._check_identity(found, node_id, cluster_id)
            for directory in self.online_directories:
                self._adopt(directory, found[directory.path], node_id, cluster_id)
            if not self.online_directories:
                raise LogDirectoryError(
                    f"None of the log directories can be used: {', '.join(directory.path for directory in self.directories)}"
                )
        except LogDirectoryError:
            self._release()
            raise
        return cluster_id

    def _check_identity(self, found: Mapping[str, MetaProperties | None], node_id: int, cluster_id: str | None) -> str:
        first = None
        for path, properties in found.items():
            if properties is None:
                continue
            if properties.node_id != node_id:
                raise LogDirectoryError(
                    f"{path}/meta.properties is of node {properties.node_id}, and this one has node.id={node_id}."
                )
            if cluster_id is not None and properties.cluster_id != cluster_id:
                other = f"{first}/meta.properties" if first else "this broker"
                raise LogDirectoryError(
                    f"{path}/meta.properties is of cluster {properties.cluster_id}, and {other} of {cluster_id}."
                )
            first, cluster_id = path, properties.cluster_id
        return cluster_id if cluster_id is not None else uuid_text(random_uuid(self._random_bytes))

    def _adopt(self, directory: LogDirectory, found: MetaProperties | None, node_id: int, cluster_id: str) -> None:
        try:
            if found is None or not any(found.directory_id):
                directory.adopt(MetaProperties(cluster_id, node_id, random_uuid(self._random_bytes)))
            else:
                directory.properties = found
        except OSError as error:
            self.directory_failed(directory, error)
        self._services[directory.path] = _Services(self, directory, self._index_cache)

    @property
    def online_directories(self) -> list[LogDirectory]:
        """The directories that can be used."""
        return [directory for directory in self.directories if directory.offline is None]

    def open(self, topic: str, partition: int, config: TopicConfig) -> PartitionLog | None:
        """Open one log ahead of the others, as the metadata log has to be; None when it is in no directory."""
        for directory in self.online_directories:
            if self.files.exists(f"{directory.path}/{topic}-{partition}"):
                return self._open(directory, f"{topic}-{partition}", (topic, partition), config, {}, {})
        return None

    def open_all(
        self,
        config_of: Callable[[str], TopicConfig],
        is_stray: Callable[[PartitionLog], bool] = lambda log: False,
    ) -> None:
        """Open every partition's directory that is there, recovering those that were not closed.

        Those that ``is_stray`` says do not belong here any more are set aside under another name.
        """
        for directory in self.online_directories:
            try:
                self._open_directory(directory, config_of)
            except OSError as error:
                self.directory_failed(directory, error)
        for log in [log for log in self.logs.values() if is_stray(log)]:
            self._set_aside(log)
        self._schedule()

    def _open_directory(self, directory: LogDirectory, config_of: Callable[[str], TopicConfig]) -> None:
        recovery_points = directory.read_checkpoint(checkpoints.RECOVERY_POINTS)
        start_offsets = directory.read_checkpoint(checkpoints.LOG_START_OFFSETS)
        high_watermarks = directory.read_checkpoint(checkpoints.HIGH_WATERMARKS)
        for path in directory.doomed():
            self._background.run(lambda path=path: self.files.delete_tree(path))  # type: ignore[misc]
        configs: dict[str, TopicConfig] = {}
        work = []
        for name, topic, partition in directory.partitions():
            key = (topic, partition)
            if key in self.logs:
                continue
            if topic not in configs:
                configs[topic] = config_of(topic)
            work.append((name, key, configs[topic]))

        def open_one(item: tuple[str, TopicPartition, TopicConfig]) -> None:
            name, key, config = item
            log = self._open(directory, name, key, config, recovery_points, start_offsets)
            if key in high_watermarks:
                log.maybe_set_high_watermark(min(high_watermarks[key], log.log_end_offset))

        # After a clean stop there is little to wait for, and threads would only take turns.
        threads = 1 if directory.was_clean else self.settings.num_recovery_threads_per_data_dir
        _in_threads(open_one, work, threads)

    def _open(
        self,
        directory: LogDirectory,
        name: str,
        key: TopicPartition,
        config: TopicConfig,
        recovery_points: Mapping[TopicPartition, int],
        start_offsets: Mapping[TopicPartition, int],
    ) -> PartitionLog:
        log = open_log(
            self._services[directory.path],
            f"{directory.path}/{name}",
            *key,
            config,
            clean=directory.was_clean,
            recovery_point=recovery_points.get(key, 0),
            log_start_offset=start_offsets.get(key, 0),
            now_ms=self.clock.time_ms(),
        )
        other = self.logs.setdefault(key, log)
        if other is not log:
            raise LogDirectoryError(f"{log.directory} and {other.directory} are both there; one of them has to go.")
        log.release()
        return log

    # ------------------------------------------------------------ creating and deleting

    def get(self, topic: str, partition: int) -> PartitionLog | None:
        """The log of that partition, if it is here."""
        return self.logs.get((topic, partition))

    def create(
        self, topic: str, partition: int, topic_id: bytes, config: TopicConfig, *, directory_id: bytes | None = None
    ) -> PartitionLog:
        """The log of that partition: the one that is there, or a new one in the directory that has the fewest.

        Raises KafkaStorageError.
        """
        log = self.logs.get((topic, partition))
        if log is not None:
            if log.topic_id == topic_id or not any(log.topic_id):
                return log
            self._set_aside(log)
        directory = self._place(directory_id)
        path = f"{directory.path}/{topic}-{partition}"
        try:
            if self.files.exists(path):
                self.files.rename(path, f"{directory.path}/{self._renamed(topic, partition, STRAY_SUFFIX)}")
            log = create_log(
                self._services[directory.path], path, topic, partition, topic_id, config, now_ms=self.clock.time_ms()
            )
        except OSError as error:
            self.directory_failed(directory, error)
            raise KafkaStorageError(f"{path} cannot be made: {error}") from error
        self.logs[topic, partition] = log
        self._schedule_flush(config)
        return log

    def _place(self, directory_id: bytes | None) -> LogDirectory:
        online = self.online_directories
        if not online:
            raise KafkaStorageError("All log directories are offline.")
        for directory in online:
            if directory.directory_id == directory_id:
                return directory
        counts = dict.fromkeys((directory.path for directory in online), 0)
        for log in self.logs.values():
            parent = os.path.dirname(log.directory)
            if parent in counts:
                counts[parent] += 1
        return min(online, key=lambda directory: counts[directory.path])

    def update_config(self, log: PartitionLog, config: TopicConfig) -> None:
        """Let a log go by other settings from now on."""
        log.update_config(config)
        self._schedule_flush(config)

    def delete_async(self, log: PartitionLog) -> None:
        """Take a log out of use, and delete its files ``file.delete.delay.ms`` later."""
        moved = self._move_aside(log, DELETE_SUFFIX)
        if moved is not None:
            delay_ms = log.config.file_delete_delay_ms
            self._later(delay_ms, lambda: self._background.run(lambda: self.files.delete_tree(moved)))

    def _set_aside(self, log: PartitionLog) -> None:
        moved = self._move_aside(log, STRAY_SUFFIX)
        logger.warning("%s belongs to no partition of this broker and is kept as %s", log.directory, moved)

    def _move_aside(self, log: PartitionLog, suffix: str) -> str | None:
        """Rename a log's directory, so that its partition can be made again; the new path, None if that failed."""
        self.logs.pop((log.topic, log.partition), None)
        directory = self._directory_of(log)
        log.go_offline("it was deleted")
        moved = f"{directory.path}/{self._renamed(log.topic, log.partition, suffix)}"
        try:
            self.files.rename(log.directory, moved)
        except OSError as error:
            self.directory_failed(directory, error)
            return None
        self._checkpoint_recovery_points(directory)
        return moved

    def _renamed(self, topic: str, partition: int, suffix: str) -> str:
        return renamed(f"{topic}-{partition}", self._random_bytes(16).hex(), suffix)

    def delete_later(self, directory: LogDirectory, paths: list[str], delay_ms: int) -> None:
        """Delete files that are out of use, off this thread."""

        def delete() -> None:
            for path in paths:
                self.files.delete(path)

        if paths:
            self._later(delay_ms, lambda: self._in_background(directory, delete))

    def random_below(self, upper: int) -> int:
        """A random number from 0 to below ``upper``."""
        return int.from_bytes(self._random_bytes(8)) % upper

    # ------------------------------------------------------------ failures

    def _directory_of(self, log: PartitionLog) -> LogDirectory:
        return self._services[os.path.dirname(log.directory)].directory

    def directory_failed(self, directory: LogDirectory, error: OSError) -> None:
        """The disk failed somewhere in ``directory``: none of its logs is used any more."""
        if directory.offline is not None:
            return
        directory.offline = str(error)
        logger.error("Log directory %s is offline: %s", directory.path, error)
        for log in self._logs_in(directory):
            log.go_offline(str(error))
        if self.on_directory_failure is not None:
            self.on_directory_failure(directory)

    def _logs_in(self, directory: LogDirectory) -> Iterator[PartitionLog]:
        inside = directory.path + "/"
        return (log for log in self.logs.values() if log.directory.startswith(inside))

    def _in_background(self, directory: LogDirectory, work: Callable[[], object]) -> None:
        def done(error: BaseException | None) -> None:
            if isinstance(error, OSError):
                self.directory_failed(directory, error)
            elif error is not None:
                raise error

        if directory.offline is None:
            self._background.run(work, done)

    # ------------------------------------------------------------ from time to time

    def _later(self, delay_ms: int, callback: Callable[[], object]) -> None:
        if self._scheduler is None or delay_ms <= 0:
            callback()
        elif not self._closed:
            self._scheduler.call_later(delay_ms / 1000, lambda: None if self._closed else callback())

    def _schedule(self) -> None:
        settings = self.settings
        first = settings.log_initial_task_delay_ms
        tasks: list[tuple[str, Callable[[], object], int]] = [
            ("retention", self.enforce_retention, settings.log_retention_check_interval_ms),
            ("recovery points", self.checkpoint_recovery_points, settings.log_flush_offset_checkpoint_interval_ms),
            ("start", self.checkpoint_log_start_offsets, settings.log_flush_start_offset_checkpoint_interval_ms),
            ("high", self.checkpoint_high_watermarks, settings.replica_high_watermark_checkpoint_interval_ms),
            ("producers", self.expire_producers, settings.producer_id_expiration_check_interval_ms),
        ]
        for name, task, interval_ms in tasks:
            self._every(name, interval_ms, task, first)
        for log in self.logs.values():
            self._schedule_flush(log.config)
        self._every("flush", settings.log_flush_scheduler_interval_ms, self.flush_due)

    def _every(self, name: str, interval_ms: int, task: Callable[[], object], first_ms: int | None = None) -> None:
        """Do ``task`` every ``interval_ms``, instead of what was done under that name before."""
        if self._scheduler is None or interval_ms >= MAX_LONG // 1000 or self._closed:
            return

        def again() -> None:
            self._every(name, interval_ms, task)
            task()

        if name in self._timers:
            self._timers[name].cancel()
        delay_ms = interval_ms if first_ms is None else first_ms
        self._timers[name] = self._scheduler.call_later(delay_ms / 1000, again)

    def _bit_by_bit(self, logs: Iterable[PartitionLog], visit: Callable[[PartitionLog], object]) -> None:
        """Visit some logs, and the others when the loop has had its turn."""
        remaining = iter(logs)
        for count, log in enumerate(remaining, 1):
            if not log.is_offline:
                try:
                    visit(log)
                except KafkaStorageError:
                    continue  # its directory went offline, which has been said
            if count == _AT_ONCE and self._scheduler is not None:
                self._scheduler.call_later(0, self._bit_by_bit, remaining, visit)
                return

    def enforce_retention(self) -> None:
        """Drop the segments of all logs that are past their time."""
        now_ms = self.clock.time_ms()
        self._bit_by_bit(list(self.logs.values()), lambda log: log.enforce_retention(now_ms))

    def expire_producers(self) -> None:
        """Forget the producers that have not written for long."""
        now_ms = self.clock.time_ms()
        expiration_ms = self.settings.producer_id_expiration_ms
        self._bit_by_bit(list(self.logs.values()), lambda log: log.producers.expire(now_ms, expiration_ms))

    # ------------------------------------------------------------ flushing

    def _schedule_flush(self, config: TopicConfig) -> None:
        """See to it that ``flush.ms`` of a topic is kept, whatever ``log.flush.scheduler.interval.ms`` is."""
        interval_ms = max(config.flush_ms, 1)
        if interval_ms < self.settings.log_flush_scheduler_interval_ms:
            self.settings = self.settings._replace(log_flush_scheduler_interval_ms=interval_ms)
            self._every("flush", interval_ms, self.flush_due)

    def flush_due(self) -> None:
        """Flush the logs that ``flush.ms`` says it of."""
        now_ms = self.clock.time_ms()
        for log in self.logs.values():
            if not log.is_offline and log.is_flush_due(now_ms):
                self.flush_async(log, log.log_end_offset)

    def flush_async(self, log: PartitionLog, up_to: int) -> None:
        """Flush a log off this thread; what is asked for while it is being flushed is done in one go after that."""
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
                log.finish_flush(flush, self.clock.time_ms())
                if next_up_to > log.recovery_point and not log.is_offline:
                    self.flush_async(log, next_up_to)
            elif isinstance(error, OSError):
                if not log.is_offline:
                    self.directory_failed(self._directory_of(log), error)
            else:
                raise error

        self._background.run(flush.run, done)

    # ------------------------------------------------------------ checkpoints

    def checkpoint_recovery_points(self) -> None:
        """Write down up to where each log is safe on the disk."""
        for directory in self.online_directories:
            self._checkpoint_recovery_points(directory)

    def _checkpoint_recovery_points(self, directory: LogDirectory) -> None:
        self._checkpoint(directory, checkpoints.RECOVERY_POINTS, lambda log: log.recovery_point)

    def checkpoint_log_start_offsets(self) -> None:
        """Write down where logs start that do not start with their first segment."""
        for directory in self.online_directories:
            self._checkpoint(directory, checkpoints.LOG_START_OFFSETS, _moved_start)

    def checkpoint_high_watermarks(self) -> None:
        """Write down up to where each log is committed."""
        for directory in self.online_directories:
            self._checkpoint(directory, checkpoints.HIGH_WATERMARKS, lambda log: log.high_watermark)

    def _checkpoint(self, directory: LogDirectory, name: str, offset: Callable[[PartitionLog], int | None]) -> None:
        write = directory.checkpoint(name, self._offsets(directory, offset))
        if write is not None:
            self._in_background(directory, write)

    def _offsets(
        self, directory: LogDirectory, offset: Callable[[PartitionLog], int | None]
    ) -> dict[TopicPartition, int]:
        offsets = {}
        for log in self._logs_in(directory):
            value = offset(log)
            if value is not None and log.topic != METADATA_TOPIC:
                offsets[log.topic, log.partition] = value
        return offsets

    # ------------------------------------------------------------ closing

    def close(self, broker_epoch: int = -1) -> None:
        """Flush and close all logs, and say in each directory that it was done."""
        self._closed = True
        for timer in self._timers.values():
            timer.cancel()
        self._background.close()
        for directory in self.online_directories:
            try:
                self._close_directory(directory, broker_epoch)
            except OSError as error:
                self.directory_failed(directory, error)
            except KafkaStorageError:
                continue  # a log of it failed, which took the directory offline and said so
        self._release()

    def _close_directory(self, directory: LogDirectory, broker_epoch: int) -> None:
        logs = list(self._logs_in(directory))
        flushes = []
        for log in logs:
            log.prepare_close()
            flush = log.begin_flush()
            if flush is not None:
                flushes.append((log, flush))
        _in_threads(lambda item: item[1].run(), flushes, self.settings.num_recovery_threads_per_data_dir)
        for log, flush in flushes:
            log.finish_flush(flush)
        for log in logs:
            log.release()
        self.checkpoint_recovery_points()
        self.checkpoint_log_start_offsets()
        self.checkpoint_high_watermarks()
        directory.mark_clean(broker_epoch)

    def _release(self) -> None:
        for directory in self.directories:
            directory.release()


def _moved_start(log: PartitionLog) -> int | None:
    return log.log_start_offset if log.log_start_offset > log.segments[0].base_offset else None


def _in_threads(task: Callable[[Item], object], items: Collection[Item], threads: int) -> None:
    """Do ``task`` for each item, in several threads when that may help. Raises what the first that fails raises."""
    if threads <= 1 or len(items) <= 1:
        for item in items:
            task(item)
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(threads, thread_name_prefix="barnabas-recovery") as executor:
        for future in [executor.submit(task, item) for item in items]:
            future.result()

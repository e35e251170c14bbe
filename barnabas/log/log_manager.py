"""The logs of a broker, in one or several log directories: opens, creates, deletes and closes them.

Knows nothing of leaders, clients or the metadata: callers pass in which partitions exist, and their configs.
"""

import logging
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeVar

from barnabas.clock import Clock, Scheduler
from barnabas.config.topic import TopicConfig
from barnabas.errors import KafkaStorageError
from barnabas.log import checkpoints
from barnabas.log.background import Background, Inline
from barnabas.log.checkpoints import TopicPartition
from barnabas.log.cleaner import CleanerSettings, LogCleaner
from barnabas.log.cleaner_workers import CleanerWorker, InlineWorker
from barnabas.log.files import Files, NotCached
from barnabas.log.housekeeping import METADATA_TOPIC, Housekeeping, LogSettings
from barnabas.log.index_cache import IndexCache
from barnabas.log.log_directory import (
    DELETE_SUFFIX,
    FUTURE_SUFFIX,
    STRAY_SUFFIX,
    LogDirectory,
    LogDirectoryError,
)
from barnabas.log.log_registry import LogRegistry
from barnabas.log.meta_properties import MetaProperties
from barnabas.log.moving import Moves
from barnabas.log.partition_log import LogServices, PartitionLog
from barnabas.log.recovery import METADATA_FILE, create_log, open_log, write_topic_id
from barnabas.uuids import random_uuid, uuid_text

logger = logging.getLogger(__name__)

Item = TypeVar("Item")


class _Services(LogServices):
    """The services of the logs in one directory."""

    def __init__(self, manager: "LogManager", directory: LogDirectory, index_cache: IndexCache) -> None:
        super().__init__(directory, index_cache)
        self._manager = manager

    def jitter_ms(self, upper: int) -> int:
        return self._manager.random_below(upper)

    def delete_later(self, paths: list[str], delay_ms: int) -> None:
        self._manager.housekeeping.delete_later(self.log_directory, paths, delay_ms)

    def request_flush(self, log: PartitionLog, up_to: int) -> None:
        self._manager.housekeeping.flush(log, up_to)

    def log_truncated(self, log: PartitionLog, end: int) -> None:
        self._manager.cleaner.truncate_checkpoint(log, end)
        # Records that are appended from ``end`` on are not on the disk, as the old recovery point would say.
        self._manager.housekeeping.checkpoint_recovery_points(only=self.log_directory)

    def storage_failed(self, log: PartitionLog, error: OSError) -> None:
        self._manager.directory_failed(self.log_directory, error)


class LogManager:
    """The logs of one broker. Call :meth:`start`, then :meth:`open_all`, and :meth:`close` at the end.

    :param scheduler: runs periodic work; without one there is none, and delayed work is done at once
    :param background: runs work outside of the event loop's thread; without one it is done in it
    :param reader: runs :meth:`load` in the same way; it does not wait for the fsyncs in ``background``
    :param new_cleaner_worker: creates what runs the jobs of the cleaner; without one they run inline
    """

    def __init__(
        self,
        files: Files,
        log_dirs: Sequence[str],
        *,
        clock: Clock,
        scheduler: Scheduler | None = None,
        background: Background | None = None,
        reader: Background | None = None,
        settings: LogSettings | None = None,
        cleaner_settings: CleanerSettings | None = None,
        new_cleaner_worker: Callable[[], CleanerWorker] | None = None,
        random_bytes: Callable[[int], bytes] = os.urandom,
        on_directory_failure: Callable[[LogDirectory], object] | None = None,
        metadata_log_dir: str | None = None,
    ) -> None:
        self.files = files
        #: Those of ``log.dirs``. The metadata log may be in one of its own, which gets no other logs.
        self.directories = [LogDirectory(files, path.rstrip("/") or "/", random_bytes) for path in log_dirs]
        wanted = (metadata_log_dir or log_dirs[0]).rstrip("/") or "/"
        found = next((each for each in self.directories if each.path == wanted), None)
        self.metadata_directory = found or LogDirectory(files, wanted, random_bytes)
        extra = [] if found is not None else [self.metadata_directory]
        self.registry = LogRegistry([*self.directories, *extra])
        self.logs = self.registry.logs  #: the current logs, by partition
        self.clock = clock
        self._random_bytes = random_bytes
        self._reader = reader if reader is not None else Inline()
        self._on_directory_failure = on_directory_failure
        self._index_cache = IndexCache()
        self._services: dict[LogDirectory, LogServices] = {}
        self.housekeeping = Housekeeping(
            files,
            self.registry,
            clock,
            scheduler,
            background if background is not None else Inline(),
            settings if settings is not None else LogSettings(),
            self.directory_failed,
        )
        self.cleaner = LogCleaner(
            self.registry,
            self.housekeeping,
            clock,
            scheduler,
            cleaner_settings if cleaner_settings is not None else CleanerSettings(),
            new_cleaner_worker if new_cleaner_worker is not None else lambda: InlineWorker(files, clock),
            lambda log: self.moves.is_moving(log),
            self.directory_failed,
        )
        self.moves = Moves(
            self.registry, self.housekeeping, self.cleaner, self._services, clock, scheduler, self.directory_failed
        )
        #: The directories in which logs will be created, as AlterReplicaLogDirs has set for logs that do not exist yet.
        self.preferred_directories: dict[TopicPartition, LogDirectory] = {}
        self._has_opened = False
        self._doubled: dict[TopicPartition, list[PartitionLog]] = {}  # several of a partition, until all are opened

    # ------------------------------------------------------------ starting

    def start(self, node_id: int, cluster_id: str | None = None, *, formats: bool = True) -> str:
        """Locks the directories, and checks that they belong to this node; new ones then do. Returns the cluster id.

        :param formats: whether the first of all directories is formatted here, with a new cluster id
        :raises LogDirectoryError: a directory is locked or belongs to another node or cluster, or all are offline
        """
        try:
            found = self._acquire()
            if not formats and not any(found.values()):
                raise LogDirectoryError(
                    "No readable meta.properties files found: format the log directories with `barnabas storage format`"
                )
            cluster_id = self._check_identity(found, node_id, cluster_id)
            for directory, properties in found.items():
                self._load_identity(directory, properties, node_id, cluster_id)
            if not self.online_directories:
                paths = ", ".join(directory.path for directory in self.directories)
                raise LogDirectoryError(f"All log directories are offline: {paths}")
        except LogDirectoryError:
            self._release()
            raise
        return cluster_id

    def _acquire(self) -> dict[LogDirectory, MetaProperties | None]:
        found = {}
        for directory in self.registry.directories:
            try:
                directory.acquire()
                found[directory] = directory.load_properties()
            except OSError as error:
                self.directory_failed(directory, error)
        return found

    def _check_identity(
        self, found: Mapping[LogDirectory, MetaProperties | None], node_id: int, cluster_id: str | None
    ) -> str:
        owner = "this broker"
        for directory, properties in found.items():
            if properties is None:
                continue
            path = f"{directory.path}/meta.properties"
            if properties.node_id != node_id:
                raise LogDirectoryError(f"{path} is of node {properties.node_id}, and this broker is {node_id}.")
            if cluster_id is not None and properties.cluster_id != cluster_id:
                raise LogDirectoryError(f"{path} is of cluster {properties.cluster_id}, and {owner} of {cluster_id}.")
            owner, cluster_id = path, properties.cluster_id
        return cluster_id if cluster_id is not None else uuid_text(random_uuid(self._random_bytes))

    def _load_identity(
        self, directory: LogDirectory, found: MetaProperties | None, node_id: int, cluster_id: str
    ) -> None:
        try:
            if found is None or not any(found.directory_id):
                directory.write_properties(MetaProperties(cluster_id, node_id, random_uuid(self._random_bytes)))
            else:
                directory.properties = found
            directory.take_clean_shutdown_file()
        except OSError as error:
            self.directory_failed(directory, error)
        self._services[directory] = _Services(self, directory, self._index_cache)

    def check_reads(self, on: bool) -> None:
        """Turns the check of the CRCs of all batches that are read on or off."""
        for services in self._services.values():
            services.checks_reads = on

    @property
    def online_directories(self) -> list[LogDirectory]:
        """The directories of ``log.dirs`` that are not offline."""
        return [directory for directory in self.directories if directory.offline is None]

    def open(self, topic: str, partition: int, config: TopicConfig) -> PartitionLog | None:
        """Opens one log before the others: the metadata log. Returns None when no directory has it.

        After an unclean shutdown it is recovered from its start on.

        :raises OSError: a file cannot be read or written
        """
        for directory in self.registry.online_directories:
            if self.files.exists(f"{directory.path}/{topic}-{partition}"):
                return self._open(directory, f"{topic}-{partition}", (topic, partition), config, 0, 0)
        return None

    def open_all(
        self,
        config_of: Callable[[str], TopicConfig],
        is_stray: Callable[[PartitionLog], bool] = lambda log: False,
        assigned_directory: Callable[[PartitionLog], bytes | None] = lambda log: None,
    ) -> None:
        """Opens all logs, recovers those that were not shut down cleanly, and starts the periodic work.

        :param is_stray: returns whether a log does not belong to this broker; its directory is then renamed
        :param assigned_directory: returns the id of the directory that the metadata assigns a log to
        """
        failures: list[tuple[LogDirectory, OSError]] = []

        def open_directory(directory: LogDirectory) -> None:
            try:
                self._open_directory(directory, config_of)
            except OSError as error:
                failures.append((directory, error))

        online = self.registry.online_directories
        _in_threads(open_directory, online, sum(self._recovery_threads(directory) > 1 for directory in online))
        for directory, error in failures:
            self.directory_failed(directory, error)
        self._keep_one_of_several(is_stray, assigned_directory)
        for directory in self.registry.directories:
            for log in [log for log in self.registry.all_logs_in(directory) if is_stray(log)]:
                self._rename_stray(log)
        self.moves.resume(assigned_directory)
        for log in self.logs.values():
            self.housekeeping.schedule_flushes(log)
        self._has_opened = True
        self.housekeeping.start()
        self.cleaner.start()

    def _open_directory(self, directory: LogDirectory, config_of: Callable[[str], TopicConfig]) -> None:
        recovery_points = directory.read_checkpoint(checkpoints.RECOVERY_POINTS)
        start_offsets = directory.read_checkpoint(checkpoints.LOG_START_OFFSETS)
        high_watermarks = directory.read_checkpoint(checkpoints.HIGH_WATERMARKS)
        cleaned = directory.read_checkpoint(checkpoints.CLEANER_OFFSETS)
        for path in directory.deleted_directories():
            self.housekeeping.delete_tree_later(directory, path, 0)
        configs: dict[str, TopicConfig] = {}
        work = []
        for name, topic, partition in directory.partitions():
            if (topic, partition) not in self.registry.logs_in(directory):
                configs[topic] = configs.get(topic) or config_of(topic)
                work.append((name, (topic, partition), configs[topic]))
        for name, topic, partition in directory.future_partitions():
            configs[topic] = configs.get(topic) or config_of(topic)
            work.append((name, (topic, partition), configs[topic]))

        def open_one(item: tuple[str, TopicPartition, TopicConfig]) -> None:
            name, key, config = item
            offsets = recovery_points.get(key, 0), start_offsets.get(key, 0)
            log = self._open(directory, name, key, config, *offsets, was_compacted=key in cleaned)
            if key in high_watermarks:
                log.maybe_set_high_watermark(min(high_watermarks[key], log.log_end_offset))

        _in_threads(open_one, work, self._recovery_threads(directory))

    def _recovery_threads(self, directory: LogDirectory) -> int:
        """Returns how many logs are opened at once.

        Recovery waits for the disk, and other threads compute meanwhile. After a clean shutdown nothing waits, and
        threads would only take turns.
        """
        return 1 if directory.was_clean else self.housekeeping.settings.num_recovery_threads_per_data_dir

    def _open(
        self,
        directory: LogDirectory,
        name: str,
        key: TopicPartition,
        config: TopicConfig,
        recovery_point: int,
        log_start_offset: int,
        *,
        was_compacted: bool = False,
    ) -> PartitionLog:
        log = open_log(
            self._services[directory],
            f"{directory.path}/{name}",
            *key,
            config,
            clean=directory.was_clean,
            recovery_point=recovery_point,
            log_start_offset=log_start_offset,
            was_compacted=was_compacted,
            now_ms=self.clock.time_ms(),
        )
        is_future = name.endswith(FUTURE_SUFFIX)
        other = self.registry.add_future(log) if is_future else self.registry.add(log)
        log.release()
        if other is not log:
            if is_future:
                raise _both_exist(log, other)
            self._doubled.setdefault(key, [other]).append(log)
        return log

    def _keep_one_of_several(
        self, is_stray: Callable[[PartitionLog], bool], assigned_directory: Callable[[PartitionLog], bytes | None]
    ) -> None:
        """Renames all logs but one of each partition that has several.

        A directory may come back with a log that was deleted, or moved to another directory, while it was offline. Of
        the logs that are not stray, the one in the assigned directory is kept. If there is none, since the broker was
        killed before the metadata had its directory, the one that ends later in the latest leader epoch is kept: as in
        Raft, it has all committed records that the others have. One without a topic id is kept only if all are.

        ``LogManager.loadLog`` renames a log if its topic was deleted, and refuses to start if not.
        """
        for logs in self._doubled.values():
            own = [log for log in logs if not is_stray(log)]
            kept = max(
                own,
                key=lambda log: (
                    log.log_directory.directory_id == assigned_directory(log),
                    any(log.topic_id),
                    log.latest_epoch,
                    log.log_end_offset,
                ),
                default=None,
            )
            for log in logs:
                if log is not kept:
                    self._rename_stray(log)
            if kept is not None:
                logger.warning("Of several logs of a partition, %s is kept", kept.directory)
                self.registry.add(kept)
        self._doubled.clear()

    # ------------------------------------------------------------ reading

    def load(self, ranges: Sequence[NotCached], done: Callable[[], object]) -> None:
        """Reads parts of segments into the page cache in the background, then calls ``done``.

        An error is ignored: the log raises it again when the part is read.
        """

        def load() -> None:
            for each in ranges:
                self.files.load(each.path, each.size, each.at)

        self._reader.run(load, lambda error: done())

    # ------------------------------------------------------------ creating and deleting

    def get(self, topic: str, partition: int) -> PartitionLog | None:
        """Returns the log of a partition; None when there is none."""
        return self.logs.get((topic, partition))

    def create(
        self,
        topic: str,
        partition: int,
        topic_id: bytes,
        config: TopicConfig,
        *,
        directory_id: bytes | None = None,
        is_new: bool = True,
    ) -> PartitionLog:
        """Returns the log of a partition. Creates it if it does not exist.

        It is created in the preferred directory, else in the one with ``directory_id``, else in that with the fewest
        logs. A log with another topic id is renamed to a stray one.

        :param is_new: the partition was just created; otherwise its log may be in a directory that is offline
        :raises KafkaStorageError: the log cannot be created, or may be in a directory that is offline
        """
        key = (topic, partition)
        log = self.logs.get(key)
        if log is not None:
            if not any(log.topic_id) and not log.is_offline:
                self._restore_topic_id(log, topic_id)
            if log.topic_id == topic_id or log.is_offline:
                return log
            self._rename_stray(log)
        if not is_new and len(self.online_directories) < len(self.directories):
            raise KafkaStorageError(f"The log of {topic}-{partition} may be in a directory that is offline.")
        directory = self._choose_directory(key, directory_id)
        path = f"{directory.path}/{topic}-{partition}"
        try:
            if self.files.exists(path):
                self.files.rename(path, directory.unique_path(*key, STRAY_SUFFIX))
            log = create_log(
                self._services[directory], path, topic, partition, topic_id, config, now_ms=self.clock.time_ms()
            )
        except OSError as error:
            self.directory_failed(directory, error)
            raise KafkaStorageError(f"Cannot create {path}: {error}") from error
        self.registry.add(log)
        self.preferred_directories.pop(key, None)
        self.housekeeping.schedule_flushes(log)
        return log

    def _restore_topic_id(self, log: PartitionLog, topic_id: bytes) -> None:
        """Writes the ``partition.metadata`` of a log that has lost it in a power cut.

        :raises KafkaStorageError: the file cannot be written
        """
        try:
            write_topic_id(self.files, log.directory, topic_id)
        except OSError as error:
            self.directory_failed(log.log_directory, error)
            raise KafkaStorageError(f"Cannot write {log.directory}/{METADATA_FILE}: {error}") from error
        log.topic_id = topic_id
        log.sync_later(f"{log.directory}/{METADATA_FILE}", log.directory)

    def _choose_directory(self, key: TopicPartition, directory_id: bytes | None) -> LogDirectory:
        """Returns the preferred directory, else the assigned one, else that with the fewest logs (``nextLogDirs``)."""
        if key[0] == METADATA_TOPIC:
            return self.metadata_directory
        online = self.online_directories
        if not online:
            raise KafkaStorageError("All log directories are offline.")
        preferred = self.preferred_directories.get(key)
        if preferred in online:
            return preferred
        assigned = [directory for directory in online if directory.directory_id == directory_id]
        uncordoned = [directory for directory in online if not directory.is_cordoned]
        return assigned[0] if assigned else min(uncordoned or online, key=self._partition_count)

    def _partition_count(self, directory: LogDirectory) -> int:
        """Returns the number of partitions in a directory, with future ones and without the metadata log."""
        current = sum(topic != METADATA_TOPIC for topic, _ in self.registry.logs_in(directory))
        return current + len(self.registry.future_logs_in(directory))

    def cordon(self, names: Collection[str]) -> None:
        """Cordons the directories of these names, or all with ``*``, against new partitions. Uncordons the others."""
        paths = {name.rstrip("/") or "/" for name in names}
        for directory in self.directories:
            directory.is_cordoned = directory.path in paths or "*" in paths

    def update_config(self, log: PartitionLog, config: TopicConfig) -> None:
        """Replaces the configs of a log."""
        if log.config.compacts and not config.compacts:
            self.cleaner.abort_cleaning(log)
        log.update_config(config)
        self.housekeeping.schedule_flushes(log)

    def delete_async(self, log: PartitionLog) -> None:
        """Removes a log, and deletes its files ``file.delete.delay.ms`` later."""
        self.moves.cancel((log.topic, log.partition))
        renamed = self._remove(log, DELETE_SUFFIX)
        if renamed is not None:
            self.housekeeping.delete_tree_later(log.log_directory, renamed, log.config.file_delete_delay_ms)

    def _rename_stray(self, log: PartitionLog) -> None:
        renamed = self._remove(log, STRAY_SUFFIX)
        logger.warning(
            "%s belongs to no partition of this broker, or is not its only log, and is renamed to %s",
            log.directory,
            renamed,
        )

    def _remove(self, log: PartitionLog, suffix: str) -> str | None:
        """Removes a log and renames its directory. Returns the new path; None when the rename failed."""
        directory = log.log_directory
        if not self.registry.is_future(log):
            self.cleaner.remove_log(log)
        self.registry.remove(log)
        log.go_offline("it was deleted")
        renamed = directory.unique_path(log.topic, log.partition, suffix)
        try:
            self.files.rename(log.directory, renamed)
        except OSError as error:
            self.directory_failed(directory, error)
            return None
        # A new log of that name must not get this one's recovery point.
        self.housekeeping.checkpoint_recovery_points(only=directory)
        return renamed

    def random_below(self, upper: int) -> int:
        """Returns a random number from 0 to below ``upper``."""
        return int.from_bytes(self._random_bytes(8)) % upper

    # ------------------------------------------------------------ failures

    def directory_failed(self, directory: LogDirectory, error: OSError) -> None:
        """Takes a directory and all its logs offline after a disk error."""
        if directory.offline is not None:
            return
        directory.offline = str(error)
        logger.error("Log directory %s is offline: %s", directory.path, error)
        for log in self.registry.all_logs_in(directory):
            log.go_offline(str(error))
            self.cleaner.abort_cleaning(log)
        if self._on_directory_failure is not None:
            self._on_directory_failure(directory)

    # ------------------------------------------------------------ closing

    def close(self, broker_epoch: int = -1) -> None:
        """Flushes and closes all logs, and writes ``.kafka_cleanshutdown`` in each directory.

        If :meth:`open_all` did not complete, checkpoints are not written, and a directory stays as clean as it was.
        """
        self.moves.stop()
        self.cleaner.stop()
        self.housekeeping.stop()
        self._reader.close()
        for directory in self.registry.online_directories:
            try:
                self._close_logs(directory)
            except OSError as error:
                self.directory_failed(directory, error)
            except KafkaStorageError:
                continue  # a log failed and took the directory offline, which was logged
        if self._has_opened:
            self.housekeeping.checkpoint_all()
        for directory in self.registry.online_directories:
            try:
                if self._has_opened or directory.was_clean:
                    epoch = broker_epoch if self._has_opened else directory.clean_broker_epoch
                    directory.write_clean_shutdown_file(epoch)
            except OSError as error:
                self.directory_failed(directory, error)
        self._release()

    def _close_logs(self, directory: LogDirectory) -> None:
        logs = self.registry.all_logs_in(directory)
        flushes = []
        for log in logs:
            log.prepare_close()
            flush = log.begin_flush()
            if flush is not None:
                flushes.append((log, flush))
        threads = self.housekeeping.settings.num_recovery_threads_per_data_dir
        _in_threads(lambda item: item[1].run(), flushes, threads)
        for log, flush in flushes:
            log.finish_flush(flush)
        for log in logs:
            log.release()

    def _release(self) -> None:
        for directory in self.registry.directories:
            directory.release()


def _both_exist(log: PartitionLog, other: PartitionLog) -> LogDirectoryError:
    return LogDirectoryError(f"Both {log.directory} and {other.directory} exist; one of them must be removed.")


def _in_threads(task: Callable[[Item], object], items: Collection[Item], threads: int) -> None:
    """Calls ``task`` for each item, in several threads if ``threads`` is above 1. Raises the first item's error."""
    if threads <= 1 or len(items) <= 1:
        for item in items:
            task(item)
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(threads, thread_name_prefix="barnabas-recovery") as executor:
        for future in [executor.submit(task, item) for item in items]:
            future.result()

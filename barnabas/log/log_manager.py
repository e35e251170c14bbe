"""All logs of a broker, in one directory or several: opened, placed, deleted and closed.

Knows nothing of leaders, clients or the metadata: it is told which partitions there are to be, and how they are set.
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
from barnabas.log.cleaner_hands import Hand, InlineHand
from barnabas.log.files import Files
from barnabas.log.housekeeping import METADATA_TOPIC, Housekeeping, LogSettings
from barnabas.log.index_cache import IndexCache
from barnabas.log.log_directory import (
    DELETE_SUFFIX,
    FUTURE_SUFFIX,
    STRAY_SUFFIX,
    LogDirectory,
    LogDirectoryError,
    renamed,
)
from barnabas.log.meta_properties import MetaProperties, random_uuid, uuid_text
from barnabas.log.moving import Moves
from barnabas.log.partition_log import PartitionLog
from barnabas.log.recovery import METADATA_FILE, create_log, open_log, write_topic_id
from barnabas.log.services import LogServices

logger = logging.getLogger(__name__)

Item = TypeVar("Item")


class _Services(LogServices):
    """What the logs of one directory get from the manager."""

    def __init__(self, manager: "LogManager", directory: LogDirectory, index_cache: IndexCache) -> None:
        super().__init__(manager.files, index_cache)
        self._manager = manager
        self._directory = directory

    def jitter_ms(self, upper: int) -> int:
        return self._manager.random_below(upper)

    def delete_later(self, paths: list[str], delay_ms: int) -> None:
        self._manager.housekeeping.delete_later(self._directory, paths, delay_ms)

    def flush_due(self, log: PartitionLog, up_to: int) -> None:
        self._manager.housekeeping.flush(log, up_to)

    def truncated(self, log: PartitionLog, end: int) -> None:
        self._manager.cleaner.truncated(log, end)
        # What comes in the place of what was cut off must not be believed to be on the disk.
        self._manager.housekeeping.checkpoint_recovery_points(only=self._directory)

    def failed(self, log: PartitionLog, error: OSError) -> None:
        self._manager.directory_failed(self._directory, error)


class LogManager:
    """The logs of one broker: :meth:`start` first, then :meth:`open_all`; :meth:`close` at the end.

    ``scheduler`` and ``background`` do what is to be done later, or off the loop; without them it is done at once, and
    nothing happens from time to time. ``new_hand`` makes what logs are cleaned by; without it that is done at once.
    """

    def __init__(
        self,
        files: Files,
        log_dirs: Sequence[str],
        *,
        clock: Clock,
        scheduler: Scheduler | None = None,
        background: Background | None = None,
        settings: LogSettings | None = None,
        cleaner_settings: CleanerSettings | None = None,
        new_hand: Callable[[], Hand] | None = None,
        random_bytes: Callable[[int], bytes] = os.urandom,
        on_directory_failure: Callable[[LogDirectory], object] | None = None,
    ) -> None:
        self.files = files
        self.directories = [LogDirectory(files, path.rstrip("/") or "/") for path in log_dirs]
        self.logs: dict[TopicPartition, PartitionLog] = {}
        self.housekeeping = Housekeeping(
            files,
            self.directories,
            clock,
            scheduler,
            background if background is not None else Inline(),
            settings if settings is not None else LogSettings(),
            self.directory_failed,
        )
        self.moves = Moves(self, scheduler)
        self.cleaner = LogCleaner(
            self,
            clock,
            scheduler,
            cleaner_settings if cleaner_settings is not None else CleanerSettings(),
            new_hand if new_hand is not None else lambda: InlineHand(files, clock),
        )
        #: Where logs are to be made that are not there yet, as somebody wished.
        self.preferred: dict[TopicPartition, LogDirectory] = {}
        self.clock = clock
        self._random_bytes = random_bytes
        self._on_directory_failure = on_directory_failure
        self._index_cache = IndexCache()
        self._services: dict[LogDirectory, LogServices] = {}
        self._has_opened = False

    # ------------------------------------------------------------ starting

    def start(self, node_id: int, cluster_id: str | None = None) -> str:
        """Lock the directories and make sure that they are this node's; new ones become so. Gives the cluster's id.

        Raises LogDirectoryError when a directory is in use, or another node's or cluster's, or when none can be used.
        """
        try:
            found = self._acquire()
            cluster_id = self._check_identity(found, node_id, cluster_id)
            for directory, properties in found.items():
                self._adopt(directory, properties, node_id, cluster_id)
            if not self.online_directories:
                paths = ", ".join(directory.path for directory in self.directories)
                raise LogDirectoryError(f"None of the log directories can be used: {paths}")
        except LogDirectoryError:
            self._release()
            raise
        return cluster_id

    def _acquire(self) -> dict[LogDirectory, MetaProperties | None]:
        found = {}
        for directory in self.directories:
            try:
                directory.acquire()
                found[directory] = directory.load_properties()
            except OSError as error:
                self.directory_failed(directory, error)
        return found

    def _check_identity(
        self, found: Mapping[LogDirectory, MetaProperties | None], node_id: int, cluster_id: str | None
    ) -> str:
        whose = "this broker"
        for directory, properties in found.items():
            if properties is None:
                continue
            path = f"{directory.path}/meta.properties"
            if properties.node_id != node_id:
                raise LogDirectoryError(f"{path} is of node {properties.node_id}, and this broker is {node_id}.")
            if cluster_id is not None and properties.cluster_id != cluster_id:
                raise LogDirectoryError(f"{path} is of cluster {properties.cluster_id}, and {whose} of {cluster_id}.")
            whose, cluster_id = path, properties.cluster_id
        return cluster_id if cluster_id is not None else uuid_text(random_uuid(self._random_bytes))

    def _adopt(self, directory: LogDirectory, found: MetaProperties | None, node_id: int, cluster_id: str) -> None:
        try:
            if found is None or not any(found.directory_id):
                directory.adopt(MetaProperties(cluster_id, node_id, random_uuid(self._random_bytes)))
            else:
                directory.properties = found
            directory.take_clean_marker()
        except OSError as error:
            self.directory_failed(directory, error)
        self._services[directory] = _Services(self, directory, self._index_cache)

    def check_reads(self, on: bool) -> None:
        """Check, or do not, the CRC of each batch that is read."""
        for services in self._services.values():
            services.checks_reads = on

    @property
    def online_directories(self) -> list[LogDirectory]:
        """The directories that can be used."""
        return [directory for directory in self.directories if directory.offline is None]

    def open(self, topic: str, partition: int, config: TopicConfig) -> PartitionLog | None:
        """Open one log ahead of the others, as the metadata log has to be; None when it is in no directory.

        After a stop that was not clean it is checked from its beginning. Raises OSError.
        """
        for directory in self.online_directories:
            if self.files.exists(f"{directory.path}/{topic}-{partition}"):
                return self._open(directory, f"{topic}-{partition}", (topic, partition), config, 0, 0)
        return None

    def open_all(
        self,
        config_of: Callable[[str], TopicConfig],
        is_stray: Callable[[PartitionLog], bool] = lambda log: False,
        assigned_directory: Callable[[PartitionLog], bytes | None] = lambda log: None,
    ) -> None:
        """Open every partition that is there, recovering those that were not closed; then keep house.

        Those of which ``is_stray`` says that they do not belong here any more are set aside under another name.
        ``assigned_directory`` is the id of the directory that a log should be in, if it is to be in one.
        Raises LogDirectoryError when a partition is there twice.
        """
        failures: list[tuple[LogDirectory, OSError]] = []

        def open_directory(directory: LogDirectory) -> None:
            try:
                self._open_directory(directory, config_of)
            except OSError as error:
                failures.append((directory, error))

        at_once = sum(self._recovery_threads(directory) > 1 for directory in self.online_directories)
        _in_threads(open_directory, self.online_directories, at_once)
        for directory, error in failures:
            self.directory_failed(directory, error)
        for directory in self.directories:
            for log in [log for log in directory.all_logs() if is_stray(log)]:
                self._set_aside(log)
        self.moves.settle(assigned_directory)
        for config in {log.config for log in self.logs.values()}:
            self.housekeeping.expect_flushes(config)
        self._has_opened = True
        self.housekeeping.start()
        self.cleaner.start()

    def _open_directory(self, directory: LogDirectory, config_of: Callable[[str], TopicConfig]) -> None:
        recovery_points = directory.read_checkpoint(checkpoints.RECOVERY_POINTS)
        start_offsets = directory.read_checkpoint(checkpoints.LOG_START_OFFSETS)
        high_watermarks = directory.read_checkpoint(checkpoints.HIGH_WATERMARKS)
        cleaned = directory.read_checkpoint(checkpoints.CLEANER_OFFSETS)
        for path in directory.doomed():
            self.housekeeping.delete_tree_later(directory, path, 0)
        configs: dict[str, TopicConfig] = {}
        work = []
        for name, topic, partition in directory.partitions():
            if (topic, partition) not in directory.logs:
                configs[topic] = configs.get(topic) or config_of(topic)
                work.append((name, (topic, partition), configs[topic]))
        for name, topic, partition in directory.future_partitions():
            configs[topic] = configs.get(topic) or config_of(topic)
            work.append((name, (topic, partition), configs[topic]))

        def open_one(item: tuple[str, TopicPartition, TopicConfig]) -> None:
            name, key, config = item
            points = recovery_points.get(key, 0), start_offsets.get(key, 0)
            log = self._open(directory, name, key, config, *points, was_compacted=key in cleaned)
            if key in high_watermarks:
                log.maybe_set_high_watermark(min(high_watermarks[key], log.log_end_offset))

        _in_threads(open_one, work, self._recovery_threads(directory))

    def _recovery_threads(self, directory: LogDirectory) -> int:
        """How many logs are opened at once. Checking is done at the disk's pace while another thread computes.

        After a clean stop there is little to wait for, and threads would only take turns.
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
        other = (directory.futures if is_future else self.logs).setdefault(key, log)
        if other is not log:
            raise LogDirectoryError(f"{log.directory} and {other.directory} are both there; one of them has to go.")
        if not is_future:
            directory.logs[key] = log
        log.release()
        return log

    # ------------------------------------------------------------ creating and deleting

    def get(self, topic: str, partition: int) -> PartitionLog | None:
        """The log of that partition, if it is here."""
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
        """The log of that partition: the one that is there, or a new one.

        It is made in the directory of that id, or else in the one that has the fewest. A log that is there for another
        topic id is set aside. Raises KafkaStorageError; also when it is not new, and may be in a directory that is
        offline.
        """
        key = (topic, partition)
        log = self.logs.get(key)
        if log is not None:
            if not any(log.topic_id) and not log.is_offline:
                self._identify(log, topic_id)
            if log.topic_id == topic_id or log.is_offline:
                return log
            self._set_aside(log)
        if not is_new and len(self.online_directories) < len(self.directories):
            raise KafkaStorageError(f"The log of {topic}-{partition} may be in a directory that is offline.")
        directory = self._place(key, directory_id)
        path = f"{directory.path}/{topic}-{partition}"
        services, now_ms = self._services[directory], self.clock.time_ms()
        try:
            if self.files.exists(path):
                self.files.rename(path, self.unique_path(directory, key, STRAY_SUFFIX))
            log = create_log(services, path, topic, partition, topic_id, config, now_ms=now_ms)
        except OSError as error:
            self.directory_failed(directory, error)
            raise KafkaStorageError(f"{path} cannot be made: {error}") from error
        self.logs[key] = directory.logs[key] = log
        self.preferred.pop(key, None)
        self.housekeeping.expect_flushes(config)
        return log

    def _identify(self, log: PartitionLog, topic_id: bytes) -> None:
        """Say on the disk which topic a log is of, where a power cut has taken that away. Raises KafkaStorageError."""
        try:
            write_topic_id(self.files, log.directory, topic_id)
        except OSError as error:
            self.directory_failed(self.directory_of(log), error)
            raise KafkaStorageError(f"{log.directory} cannot be told its topic: {error}") from error
        log.topic_id = topic_id
        log.sync_later(f"{log.directory}/{METADATA_FILE}", log.directory)

    def _place(self, key: TopicPartition, directory_id: bytes | None) -> LogDirectory:
        """Where it was wished, else where it is assigned to, else where there are the fewest (``nextLogDirs``)."""
        online = self.online_directories
        if not online:
            raise KafkaStorageError("All log directories are offline.")
        preferred = self.preferred.get(key)
        if preferred in online:
            return preferred
        named = [directory for directory in online if directory.directory_id == directory_id]
        open_to_new = [directory for directory in online if not directory.is_cordoned]
        return named[0] if named else min(open_to_new or online, key=_partition_count)

    def cordon(self, names: Collection[str]) -> None:
        """Put no new partitions into the directories of these names (* is all) any more, and into all others again."""
        paths = {name.rstrip("/") or "/" for name in names}
        for directory in self.directories:
            directory.is_cordoned = directory.path in paths or "*" in paths

    def update_config(self, log: PartitionLog, config: TopicConfig) -> None:
        """Let a log go by other settings from now on."""
        if log.config.compacts and not config.compacts:
            self.cleaner.abort(log)
        log.update_config(config)
        self.housekeeping.expect_flushes(config)

    def delete_async(self, log: PartitionLog) -> None:
        """Take a log out of use, and delete its files ``file.delete.delay.ms`` later."""
        directory = self.directory_of(log)
        self.moves.abandon((log.topic, log.partition))
        moved = self._move_aside(directory, log, DELETE_SUFFIX)
        if moved is not None:
            self.housekeeping.delete_tree_later(directory, moved, log.config.file_delete_delay_ms)

    def _set_aside(self, log: PartitionLog) -> None:
        moved = self._move_aside(self.directory_of(log), log, STRAY_SUFFIX)
        logger.warning("%s belongs to no partition of this broker and is kept as %s", log.directory, moved)

    def _move_aside(self, directory: LogDirectory, log: PartitionLog, suffix: str) -> str | None:
        """Rename a log's directory, so that its partition can be made again; the new path, None if that failed."""
        key = (log.topic, log.partition)
        if directory.futures.get(key) is log:
            del directory.futures[key]
        else:
            self.cleaner.forget(log)
            self.logs.pop(key, None)
            directory.logs.pop(key, None)
        log.go_offline("it was deleted")
        moved = self.unique_path(directory, key, suffix)
        try:
            self.files.rename(log.directory, moved)
        except OSError as error:
            self.directory_failed(directory, error)
            return None
        # A new log under that name must not be believed to be on the disk as far as this one was.
        self.housekeeping.checkpoint_recovery_points(only=directory)
        return moved

    def unique_path(self, directory: LogDirectory, key: TopicPartition, suffix: str) -> str:
        """A new name for a partition's directory that is not, or no longer, in use."""
        return f"{directory.path}/{renamed(f'{key[0]}-{key[1]}', self._random_bytes(16).hex(), suffix)}"

    def services(self, directory: LogDirectory) -> LogServices:
        """What the logs in a directory need."""
        return self._services[directory]

    def random_below(self, upper: int) -> int:
        """A random number from 0 to below ``upper``."""
        return int.from_bytes(self._random_bytes(8)) % upper

    # ------------------------------------------------------------ failures

    def directory_of(self, log: PartitionLog) -> LogDirectory:
        """The directory that a log is in."""
        parent = os.path.dirname(log.directory)
        return next(directory for directory in self.directories if directory.path == parent)

    def directory_failed(self, directory: LogDirectory, error: OSError) -> None:
        """The disk failed somewhere in ``directory``: none of its logs is used any more."""
        if directory.offline is not None:
            return
        directory.offline = str(error)
        logger.error("Log directory %s is offline: %s", directory.path, error)
        for log in directory.all_logs():
            log.go_offline(str(error))
            self.cleaner.abort(log)
        if self._on_directory_failure is not None:
            self._on_directory_failure(directory)

    # ------------------------------------------------------------ closing

    def close(self, broker_epoch: int = -1) -> None:
        """Flush and close all logs, and say in each directory that it was done.

        Where :meth:`open_all` did not come to its end, checkpoints stay, and a directory is as clean as it was.
        """
        self.moves.stop()
        self.cleaner.stop()
        self.housekeeping.stop()
        for directory in self.online_directories:
            try:
                self._close_logs(directory)
            except OSError as error:
                self.directory_failed(directory, error)
            except KafkaStorageError:
                continue  # a log of it failed, which took the directory offline and said so
        if self._has_opened:
            self.housekeeping.checkpoint_all()
        for directory in self.online_directories:
            try:
                if self._has_opened or directory.was_clean:
                    directory.mark_clean(broker_epoch if self._has_opened else directory.clean_broker_epoch)
            except OSError as error:
                self.directory_failed(directory, error)
        self._release()

    def _close_logs(self, directory: LogDirectory) -> None:
        flushes = []
        for log in directory.all_logs():
            log.prepare_close()
            flush = log.begin_flush()
            if flush is not None:
                flushes.append((log, flush))
        threads = self.housekeeping.settings.num_recovery_threads_per_data_dir
        _in_threads(lambda item: item[1].run(), flushes, threads)
        for log, flush in flushes:
            log.finish_flush(flush)
        for log in directory.all_logs():
            log.release()

    def _release(self) -> None:
        for directory in self.directories:
            directory.release()


def _partition_count(directory: LogDirectory) -> int:
    """How many partitions a directory has, or will have; the metadata log is none."""
    return sum(topic != METADATA_TOPIC for topic, _ in directory.logs) + len(directory.futures)


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

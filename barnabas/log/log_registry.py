"""The open logs of a broker, by partition and by log directory (``currentLogs`` and ``futureLogs`` in Kafka).

Knows nothing of how logs are opened, moved, cleaned or deleted.
"""

from collections.abc import Mapping, Sequence

from barnabas.log.checkpoints import TopicPartition
from barnabas.log.log_directory import LogDirectory
from barnabas.log.partition_log import PartitionLog


class LogRegistry:
    """The current logs, and the future logs: copies of current logs that are being moved to another directory."""

    def __init__(self, directories: Sequence[LogDirectory]) -> None:
        self.directories = directories
        self.logs: dict[TopicPartition, PartitionLog] = {}  #: the current logs
        self._current: dict[LogDirectory, dict[TopicPartition, PartitionLog]] = {each: {} for each in directories}
        self._future: dict[LogDirectory, dict[TopicPartition, PartitionLog]] = {each: {} for each in directories}

    @property
    def online_directories(self) -> list[LogDirectory]:
        """The log directories that are not offline."""
        return [directory for directory in self.directories if directory.offline is None]

    def logs_in(self, directory: LogDirectory) -> Mapping[TopicPartition, PartitionLog]:
        """Returns the current logs in a directory."""
        return self._current[directory]

    def future_logs_in(self, directory: LogDirectory) -> Mapping[TopicPartition, PartitionLog]:
        """Returns the future logs in a directory."""
        return self._future[directory]

    def all_logs_in(self, directory: LogDirectory) -> list[PartitionLog]:
        """Returns the current and the future logs in a directory."""
        return [*self._current[directory].values(), *self._future[directory].values()]

    def add(self, log: PartitionLog) -> PartitionLog:
        """Adds a current log. Returns the current log of the partition: this one, unless there was one already."""
        key = (log.topic, log.partition)
        current = self.logs.setdefault(key, log)
        if current is log:
            self._current[log.log_directory][key] = log
        return current

    def add_future(self, log: PartitionLog) -> PartitionLog:
        """Adds a future log. Returns the directory's future log of the partition: this one, unless it had one."""
        return self._future[log.log_directory].setdefault((log.topic, log.partition), log)

    def remove(self, log: PartitionLog) -> None:
        """Removes a log, current or future."""
        key = (log.topic, log.partition)
        if self.logs.get(key) is log:
            del self.logs[key]
        for logs in (self._current[log.log_directory], self._future[log.log_directory]):
            if logs.get(key) is log:
                del logs[key]

    def is_future(self, log: PartitionLog) -> bool:
        """Returns whether a log is a future log."""
        return self._future[log.log_directory].get((log.topic, log.partition)) is log

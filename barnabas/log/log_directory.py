"""One of the ``log.dirs``: its lock, its identity, its checkpoints, and the names of the partitions in it.

Knows nothing of when checkpoints are written, nor of what is in a partition's directory.
"""

import contextlib
import logging
import os
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from barnabas.log import checkpoints, meta_properties
from barnabas.log.checkpoints import CorruptCheckpoint, TopicPartition
from barnabas.log.files import Files, Lock
from barnabas.log.meta_properties import InvalidMetaProperties, MetaProperties
from barnabas.log.partition_log import PartitionLog

logger = logging.getLogger(__name__)

LOCK_FILE = ".lock"
CLEAN_SHUTDOWN_FILE = ".kafka_cleanshutdown"
DELETE_SUFFIX = "-delete"
FUTURE_SUFFIX = "-future"
STRAY_SUFFIX = "-stray"
_MAX_NAME = 255


class LogDirectoryError(Exception):
    """The broker must not start on these directories: somebody else uses them, or they are not its own."""


class PartitionDirectory(NamedTuple):
    """The directory of a partition, by its name."""

    name: str
    topic: str
    partition: int


class LogDirectory:
    """A log directory that this broker has locked."""

    def __init__(self, files: Files, path: str) -> None:
        self.files = files
        self.path = path
        self.properties: MetaProperties
        self.offline: str | None = None  #: why nothing in here can be used any more
        self.is_cordoned = False  #: whether it gets no new partitions (KIP-1066)
        self.was_clean = False  #: whether the broker before us closed its logs
        self.clean_broker_epoch = -1  #: its epoch when it did, if it said so (KIP-966)
        self.logs: dict[TopicPartition, PartitionLog] = {}
        #: Logs that are being copied to here from another directory.
        self.futures: dict[TopicPartition, PartitionLog] = {}
        self._lock: Lock | None = None
        self._written: dict[str, Mapping[TopicPartition, int]] = {}

    def __repr__(self) -> str:
        return f"<LogDirectory {self.path}>"

    @property
    def directory_id(self) -> bytes:
        return self.properties.directory_id

    def acquire(self) -> None:
        """Make the directory if need be, and lock it.

        Raises LogDirectoryError when another broker has it; OSError.
        """
        self._make()
        self._lock = self.files.lock(f"{self.path}/{LOCK_FILE}")
        if self._lock is None:
            raise LogDirectoryError(
                f"Failed to acquire the lock on {self.path}/{LOCK_FILE}: another broker, in this or in another "
                f"process, is using the directory {self.path}."
            )

    def _make(self) -> None:
        """Make the directory and those above it, and see that their names are on the disk."""
        missing, path = [], self.path
        while path != "/" and not self.files.exists(path):
            missing.append(path)
            path = os.path.dirname(path) or "."
        self.files.makedirs(self.path)
        for each in reversed(missing):
            self.files.fsync_path(os.path.dirname(each) or ".")

    def load_properties(self) -> MetaProperties | None:
        """What ``meta.properties`` says. Raises LogDirectoryError, OSError."""
        try:
            return meta_properties.read(self.files, self.path)
        except InvalidMetaProperties as error:
            raise LogDirectoryError(str(error)) from None

    def adopt(self, properties: MetaProperties) -> None:
        """Be of that cluster and node from now on. Raises OSError."""
        meta_properties.write(self.files, self.path, properties)
        self.properties = properties

    def take_clean_marker(self) -> None:
        """See whether the last stop was clean, and remove the sign of it: from now on it is not. Raises OSError."""
        path = f"{self.path}/{CLEAN_SHUTDOWN_FILE}"
        self.was_clean = self.files.exists(path)
        if self.was_clean:
            import json

            text = self.files.read(path)
            self.files.delete(path)
            with contextlib.suppress(ValueError, TypeError, KeyError):  # before Kafka 3.7 the file was empty
                self.clean_broker_epoch = int(json.loads(text)["brokerEpoch"])

    def mark_clean(self, broker_epoch: int) -> None:
        """All logs in here are closed. Raises OSError."""
        text = f'{{"version":0,"brokerEpoch":{broker_epoch}}}'
        self.files.write_atomically(f"{self.path}/{CLEAN_SHUTDOWN_FILE}", text.encode(), sync=True)

    def release(self) -> None:
        """Give the lock back."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    # ------------------------------------------------------------ checkpoints

    def read_checkpoint(self, name: str) -> dict[TopicPartition, int]:
        """The offsets in that checkpoint file; none, and a warning, when it cannot be understood. Raises OSError."""
        try:
            return checkpoints.read_offsets(self.files, f"{self.path}/{name}")
        except CorruptCheckpoint as error:
            logger.warning("A checkpoint is taken for empty: %s", error)
            return {}

    def checkpoint(self, name: str, offsets: Mapping[TopicPartition, int]) -> Callable[[], None] | None:
        """What writes that checkpoint file, in any thread; None when it says so already. It raises OSError."""
        if self._written.get(name) == offsets:
            return None
        self._written[name] = offsets

        def write() -> None:
            checkpoints.write_offsets(self.files, f"{self.path}/{name}", offsets)

        return write

    # ------------------------------------------------------------ names

    def partitions(self) -> list[PartitionDirectory]:
        """The partitions' directories, without those that are on their way in or out. Raises OSError."""
        return _of_partitions((name, name) for name in self.files.list(self.path))

    def future_partitions(self) -> list[PartitionDirectory]:
        """The directories of partitions that were on their way in. Raises OSError."""
        return _of_partitions(
            (name, name.removesuffix(FUTURE_SUFFIX).rpartition(".")[0])
            for name in self.files.list(self.path)
            if name.endswith(FUTURE_SUFFIX)
        )

    def all_logs(self) -> list[PartitionLog]:
        """Those in use, and those that will be."""
        return [*self.logs.values(), *self.futures.values()] if self.futures else list(self.logs.values())

    def doomed(self) -> list[str]:
        """Paths of directories whose deletion was not finished. Raises OSError."""
        return [f"{self.path}/{name}" for name in self.files.list(self.path) if name.endswith(DELETE_SUFFIX)]


def _of_partitions(names: Iterable[tuple[str, str]]) -> list[PartitionDirectory]:
    """Of names of directories, and what is left of them without an ending, those that are partitions'."""
    found = []
    for name, plain in names:
        topic, dash, number = plain.rpartition("-")
        if dash and topic and number.isdecimal() and number.isascii():
            found.append(PartitionDirectory(name, topic, int(number)))
    return sorted(found)


def renamed(name: str, unique_id: str, suffix: str) -> str:
    """A partition's directory name while it is deleted, moved or set aside: still that of its partition, and unique."""
    ending = f".{unique_id}{suffix}"
    return name[: _MAX_NAME - len(ending)] + ending

"""A log directory, one of ``log.dirs``: its lock, identity, checkpoints, and the names of the partitions in it.

Knows nothing of the logs in it, nor of when checkpoints are written.
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

logger = logging.getLogger(__name__)

LOCK_FILE = ".lock"
CLEAN_SHUTDOWN_FILE = ".kafka_cleanshutdown"
DELETE_SUFFIX = "-delete"
FUTURE_SUFFIX = "-future"
STRAY_SUFFIX = "-stray"
_MAX_NAME = 255


class LogDirectoryError(Exception):
    """The broker must not start on these directories: they are locked, or belong to another node or cluster."""


class PartitionDirectory(NamedTuple):
    """The name of a partition's directory, and the partition that it names."""

    name: str
    topic: str
    partition: int


class LogDirectory:
    """A log directory. :meth:`acquire` locks it for this broker."""

    def __init__(self, files: Files, path: str, random_bytes: Callable[[int], bytes] = os.urandom) -> None:
        self.files = files
        self.path = path
        self._random_bytes = random_bytes
        self.properties: MetaProperties
        self.offline: str | None = None  #: why the directory is offline
        self.is_cordoned = False  #: whether it gets no new partitions (KIP-1066)
        self.was_clean = False  #: whether the last shutdown was clean
        self.clean_broker_epoch = -1  #: the broker epoch at that shutdown, if it was recorded (KIP-966)
        self._lock: Lock | None = None
        self._written: dict[str, Mapping[TopicPartition, int]] = {}

    def __repr__(self) -> str:
        return f"<LogDirectory {self.path}>"

    @property
    def directory_id(self) -> bytes:
        return self.properties.directory_id

    def acquire(self) -> None:
        """Creates the directory if it does not exist, and locks it.

        :raises LogDirectoryError: another broker holds the lock
        :raises OSError: the directory cannot be created or locked
        """
        self._make()
        self._lock = self.files.lock(f"{self.path}/{LOCK_FILE}")
        if self._lock is None:
            raise LogDirectoryError(
                f"Failed to acquire the lock on {self.path}/{LOCK_FILE}: another broker, in this or in another "
                f"process, is using the directory {self.path}."
            )

    def _make(self) -> None:
        """Creates the directory and its parents, and fsyncs their entries."""
        missing, path = [], self.path
        while path != "/" and not self.files.exists(path):
            missing.append(path)
            path = os.path.dirname(path) or "."
        self.files.makedirs(self.path)
        for each in reversed(missing):
            self.files.fsync_path(os.path.dirname(each) or ".")

    def load_properties(self) -> MetaProperties | None:
        """Returns the content of ``meta.properties``; None when the file is missing.

        :raises LogDirectoryError: the file cannot be parsed
        :raises OSError: the file cannot be read
        """
        try:
            return meta_properties.read(self.files, self.path)
        except InvalidMetaProperties as error:
            raise LogDirectoryError(str(error)) from None

    def write_properties(self, properties: MetaProperties) -> None:
        """Writes ``meta.properties``.

        :raises OSError: the file cannot be written
        """
        meta_properties.write(self.files, self.path, properties)
        self.properties = properties

    def take_clean_shutdown_file(self) -> None:
        """Sets :attr:`was_clean` by ``.kafka_cleanshutdown``, and deletes the file.

        :raises OSError: the file cannot be read or deleted
        """
        path = f"{self.path}/{CLEAN_SHUTDOWN_FILE}"
        self.was_clean = self.files.exists(path)
        if self.was_clean:
            import json

            text = self.files.read(path)
            self.files.delete(path)
            with contextlib.suppress(ValueError, TypeError, KeyError):  # before Kafka 3.7 the file is empty
                self.clean_broker_epoch = int(json.loads(text)["brokerEpoch"])

    def write_clean_shutdown_file(self, broker_epoch: int) -> None:
        """Writes ``.kafka_cleanshutdown`` when all logs are closed.

        :raises OSError: the file cannot be written
        """
        text = f'{{"version":0,"brokerEpoch":{broker_epoch}}}'
        self.files.write_atomically(f"{self.path}/{CLEAN_SHUTDOWN_FILE}", text.encode(), sync=True)

    def release(self) -> None:
        """Releases the lock."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    # ------------------------------------------------------------ checkpoints

    def read_checkpoint(self, name: str) -> dict[TopicPartition, int]:
        """Returns the offsets in a checkpoint file; nothing, with a warning, when the file is corrupt.

        :raises OSError: the file cannot be read
        """
        try:
            return checkpoints.read_offsets(self.files, f"{self.path}/{name}")
        except CorruptCheckpoint as error:
            logger.warning("Ignoring a corrupt checkpoint: %s", error)
            return {}

    def checkpoint(self, name: str, offsets: Mapping[TopicPartition, int]) -> Callable[[], None] | None:
        """Returns a function that writes a checkpoint file; None when the file has these offsets already.

        The function runs in any thread and raises OSError.
        """
        if self._written.get(name) == offsets:
            return None
        self._written[name] = offsets

        def write() -> None:
            checkpoints.write_offsets(self.files, f"{self.path}/{name}", offsets)

        return write

    # ------------------------------------------------------------ names

    def partitions(self) -> list[PartitionDirectory]:
        """Returns the directories of partitions, without future, deleted and stray ones.

        :raises OSError: the directory cannot be listed
        """
        return _partitions((name, name) for name in self.files.list(self.path))

    def future_partitions(self) -> list[PartitionDirectory]:
        """Returns the directories of future partitions, which were being moved to this log directory.

        :raises OSError: the directory cannot be listed
        """
        return _partitions(
            (name, name.removesuffix(FUTURE_SUFFIX).rpartition(".")[0])
            for name in self.files.list(self.path)
            if name.endswith(FUTURE_SUFFIX)
        )

    def unique_path(self, topic: str, partition: int, suffix: str) -> str:
        """Returns an unused path for a deleted, future or stray log of a partition."""
        ending = f".{self._random_bytes(16).hex()}{suffix}"
        return f"{self.path}/{f'{topic}-{partition}'[: _MAX_NAME - len(ending)]}{ending}"

    def deleted_directories(self) -> list[str]:
        """Returns the paths of deleted partitions whose files are not deleted yet.

        :raises OSError: the directory cannot be listed
        """
        return [f"{self.path}/{name}" for name in self.files.list(self.path) if name.endswith(DELETE_SUFFIX)]


def _partitions(names: Iterable[tuple[str, str]]) -> list[PartitionDirectory]:
    """Returns those directories that are of partitions.

    :param names: of directories, each with the same name without its suffix
    """
    found = []
    for name, plain in names:
        topic, dash, number = plain.rpartition("-")
        if dash and topic and number.isdecimal() and number.isascii():
            found.append(PartitionDirectory(name, topic, int(number)))
    return sorted(found)

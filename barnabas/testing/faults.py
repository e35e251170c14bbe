"""Files that fail: at the n-th operation, in the middle of a write, or by forgetting what was never fsynced.

Knows nothing of what is written to them. A test counts n up from 1 until a run comes to its end without a failure, so
that every operation has failed once::

    for n in itertools.count(1):
        files = FaultyFiles(fail_at=n)
        ...
        if not files.has_failed:
            break
"""

import errno
from collections.abc import Callable
from typing import Literal

from barnabas.clock import Clock
from barnabas.log.files import Data, MemoryFile, MemoryFiles

Failure = Literal["once", "for ever"]


class FaultyFile(MemoryFile):
    """A file of :class:`FaultyFiles`."""

    __slots__ = ("_files", "safe")

    def __init__(self, files: "FaultyFiles", path: str) -> None:
        super().__init__(files.clock, path)
        self._files = files
        self.safe = b""  #: what a power cut leaves of the content

    def write(self, data: Data) -> None:
        written = self._files.step("write", self.path, len(data))
        super().write(memoryview(data)[:written])
        if written != len(data):
            raise self._files.error(self.path)

    def truncate(self, size: int) -> None:
        self._files.step("truncate", self.path)
        super().truncate(size)

    def fsync(self) -> None:
        self._files.step("fsync", self.path)
        self.safe = bytes(self.content)

    def syncer(self) -> Callable[[], None]:
        return self.fsync

    def pread(self, size: int, at: int) -> bytes:
        self._files.reads += 1
        return super().pread(size, at)


class FaultyFiles(MemoryFiles):
    """Files in memory whose ``fail_at``-th change fails with ``code``.

    A failing write still writes ``torn`` bytes, or as many as there are. With ``lasting="for ever"`` everything after
    it fails too, as if the process had been killed at that moment; then :meth:`survivor` is what a new one finds.
    """

    def __init__(
        self,
        fail_at: int = 0,
        *,
        torn: int = 0,
        lasting: Failure = "for ever",
        code: int = errno.EIO,
        clock: Clock | None = None,
    ) -> None:
        super().__init__(clock)
        self.fail_at = fail_at
        self.torn = torn
        self.lasting = lasting
        self.code = code
        self.changes: list[tuple[str, str]] = []  #: kind and path of each operation so far
        self.reads = 0
        self.has_failed = False

    def step(self, kind: str, path: str, size: int = 0) -> int:
        """Count a change. Raises OSError if it is the one that fails; gives how much of a write goes through."""
        self.changes.append((kind, path))
        if len(self.changes) == self.fail_at:
            self.has_failed = True
            if kind == "write" and self.torn < size:
                return self.torn
            if kind != "write":
                raise self.error(path)
            return size
        if self.has_failed and self.lasting == "for ever":
            raise self.error(path)
        return size

    def error(self, path: str) -> OSError:
        """What the operating system would raise."""
        return OSError(self.code, "This operation was told to fail", path)

    def count(self, kind: str) -> int:
        """How many changes of that kind there were."""
        return sum(change == kind for change, _ in self.changes)

    def survivor(self, *, power_cut: bool = False) -> "FaultyFiles":
        """The files that the next process finds; after a power cut only with the content that was fsynced."""
        files = FaultyFiles(clock=self.clock)
        for directory, names in self.directories.items():
            files.directories[directory] = {}
            for name, file in names.items():
                assert isinstance(file, FaultyFile)
                copy = files.directories[directory][name] = FaultyFile(files, file.path)
                copy.content += file.safe if power_cut else file.content
                copy.safe = file.safe
        return files

    def create(self, path: str) -> FaultyFile:
        self.step("create", path)
        directory, name = self._place(path)
        file = FaultyFile(self, path)
        directory[name] = file
        return file

    def write_atomically(self, path: str, data: bytes, *, sync: bool) -> None:
        file = self.create(path + ".tmp")
        file.write(data)
        if sync:
            file.fsync()
        self.rename(path + ".tmp", path)

    def rename(self, old: str, new: str) -> None:
        self.step("rename", old)
        super().rename(old, new)

    def delete(self, path: str) -> None:
        self.step("delete", path)
        super().delete(path)

    def delete_tree(self, path: str) -> None:
        self.step("delete_tree", path)
        super().delete_tree(path)

    def makedirs(self, path: str) -> None:
        self.step("makedirs", path)
        super().makedirs(path)

    def fsync_path(self, path: str) -> None:
        self.step("fsync", path)
        if path not in self.directories:
            file = self.open(path)
            assert isinstance(file, FaultyFile)
            file.safe = bytes(file.content)

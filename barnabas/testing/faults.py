"""Files that fail at the n-th operation, within a write, or by a power cut that loses what was not fsynced.

Knows nothing of the contents. A test increments n from 1 until a run ends without a failure, so that every operation
has failed once::

    for n in itertools.count(1):
        files = FaultyFiles(fail_at=n)
        ...
        if not files.has_failed:
            break

A power cut leaves what POSIX guarantees: the content of a file as of the last fsync of the file, and the name of a file
as of the last fsync of its directory, independently of each other.
"""

import errno
import os
from collections.abc import Callable
from copy import deepcopy
from random import Random
from typing import Literal

from barnabas.clock import Clock
from barnabas.log.files import Data, MemoryFile, MemoryFiles

Failure = Literal["once", "for ever"]
"""Whether one operation fails, or all operations from then on, as if the process had been killed."""


class FaultyFile(MemoryFile):
    """A file of :class:`FaultyFiles`."""

    __slots__ = ("_files", "_unsynced", "safe")

    def __init__(self, files: "FaultyFiles", path: str, content: bytes = b"") -> None:
        super().__init__(files.clock, path, content)
        self._files = files
        self.safe = content  #: what was fsynced
        self._unsynced: list[bytes | int] = []  # changes since then: data, or the size of a truncation

    def write(self, data: Data) -> None:
        written = self._files.step("write", self.path, len(data))
        part = bytes(memoryview(data)[:written])
        super().write(part)
        self._unsynced.append(part)
        if self._files.on_write is not None:
            self._files.on_write(self, part)
        if written != len(data):
            raise self._files.error(self.path)

    def truncate(self, size: int) -> None:
        self._files.step("truncate", self.path)
        super().truncate(size)
        self._unsynced.append(size)

    def fsync(self) -> None:
        self._files.step("fsync", self.path)
        self.keep()

    def keep(self) -> None:
        """Marks everything that was written as fsynced."""
        self.safe = bytes(self.content)
        self._unsynced.clear()

    def syncer(self) -> Callable[[], None]:
        return self.fsync

    def pread(self, size: int, at: int) -> bytes:
        self._files.reading(self.path)
        return super().pread(size, at)

    def after_power_cut(self, chance: Random | None) -> bytes:
        """Returns the content after a power cut: what was fsynced, and with ``chance`` a part of the rest, or zeros."""
        if chance is None:
            return self.safe
        content, reached = bytearray(self.safe), chance.randint(0, len(self._unsynced))
        for number, change in enumerate(self._unsynced[:reached], 1):
            if isinstance(change, int):
                del content[change:]
            elif number < reached:
                content += change
            else:
                part = change[: chance.randint(0, len(change))]
                content += bytes(len(part)) if chance.random() < 0.3 else part
        return bytes(content)


class Folder:
    """A directory, with its current ``names``, and those as of the last fsync in ``safe``."""

    __slots__ = ("names", "safe", "unsynced")

    def __init__(self) -> None:
        self.names: dict[str, FaultyFile | Folder] = {}
        self.safe: dict[str, FaultyFile | Folder] = {}
        self.unsynced: list[dict[str, FaultyFile | Folder | None]] = []  #: since then, in order; None: a removed name

    def change(self, changes: dict[str, "FaultyFile | Folder | None"]) -> None:
        """Adds or removes these names, atomically."""
        self.unsynced.append(changes)
        apply(self.names, changes)

    def keep(self) -> None:
        """Marks all names as fsynced."""
        self.safe = dict(self.names)
        self.unsynced.clear()

    def after_power_cut(self, chance: Random | None) -> "dict[str, FaultyFile | Folder]":
        """Returns the names after a power cut; file systems write changes in their order."""
        names = dict(self.safe)
        for changes in self.unsynced[: chance.randint(0, len(self.unsynced)) if chance is not None else 0]:
            apply(names, changes)
        return names


def apply(names: dict[str, FaultyFile | Folder], changes: dict[str, FaultyFile | Folder | None]) -> None:
    for name, node in changes.items():
        if node is None:
            names.pop(name, None)
        else:
            names[name] = node


def parent_of(path: str) -> str:
    return os.path.split(path)[0]


class FaultyFiles(MemoryFiles):
    """Files in memory whose ``fail_at``-th change fails with the error number ``code``.

    :param torn: how many bytes a failing write still writes, or a :class:`Random` that chooses the number
    :param lasting: ``"for ever"`` makes everything after it fail, too, as if the process had been killed;
        :meth:`survivor` is then what a new process finds
    :param under: the directory tree to which failures and the count are confined
    """

    def __init__(
        self,
        fail_at: int = 0,
        *,
        torn: int | Random = 0,
        lasting: Failure = "for ever",
        code: int = errno.EIO,
        clock: Clock | None = None,
        under: str = "",
    ) -> None:
        super().__init__(clock)
        self.fail_at = fail_at
        self.torn = torn
        self.lasting = lasting
        self.code = code
        self.under = under
        self.changes: list[tuple[str, str]] = []  #: kind and path of each operation so far
        self.on_write: Callable[[FaultyFile, bytes], object] | None = None  #: called for each write
        self.reads = 0
        self.has_failed = False
        self._kinds: tuple[str, ...] = ()
        self.root = Folder()
        self._folders: dict[str, Folder] = {"/": self.root, "": self.root}
        self.directories["/"] = {}

    # ------------------------------------------------------------ failures

    def step(self, kind: str, path: str, size: int = 0) -> int:
        """Counts a change; returns how many bytes of a write are written. :raises OSError: this change fails"""
        if not path.startswith(self.under):
            return size
        self.changes.append((kind, path))
        if len(self.changes) == self.fail_at:
            self.has_failed = True
            if kind != "write" or not size:
                raise self.error(path)
            return min(self.torn, size - 1) if isinstance(self.torn, int) else self.torn.randrange(size)
        if self.has_failed and self.lasting == "for ever" and (not self._kinds or kind in self._kinds):
            raise self.error(path)
        return size

    def fail_now(self, code: int, *kinds: str) -> None:
        """Makes all further changes, or those of these kinds, fail with that error number. Reads are of the kind
        "read".
        """
        self.code, self._kinds, self.has_failed, self.lasting = code, kinds, True, "for ever"

    def fail_once(self, number: int, *, code: int, torn: int | Random = 0) -> None:
        """Makes the ``number``-th change from now on fail with that error number, and none after it."""
        self.fail_at, self.code, self.torn = len(self.changes) + number, code, torn
        self._kinds, self.has_failed, self.lasting = (), False, "once"

    def succeed(self) -> None:
        """Makes nothing fail from now on."""
        self.fail_at, self._kinds, self.has_failed = 0, (), False

    def reading(self, path: str) -> None:
        """Counts a read. :raises OSError: reads fail"""
        self.reads += 1
        if "read" in self._kinds and path.startswith(self.under):
            raise self.error(path)

    def error(self, path: str) -> OSError:
        """Returns the error that the operating system would raise."""
        return OSError(self.code, os.strerror(self.code), path)

    def count(self, kind: str) -> int:
        """Returns the number of changes of that kind."""
        return sum(change == kind for change, _ in self.changes)

    # ------------------------------------------------------------ survivors

    def survivor(self, *, power_cut: bool = False, chance: Random | None = None) -> "FaultyFiles":
        """Returns the files that the next process finds.

        After a kill these are all, and a later power cut may still take what was not fsynced before it.

        :param power_cut: whether only names and contents that were fsynced are left
        :param chance: decides after a power cut which of the other changes have reached the disk
        """
        files = FaultyFiles(clock=self.clock)
        if power_cut:
            self._copy(self.root, "", files, chance)
            files.keep()
            files.changes.clear()
        else:
            known = {id(self): files, id(self.clock): self.clock}
            everything = self.root, self.directories, self._folders
            files.root, files.directories, files._folders = deepcopy(everything, known)
        return files

    def _copy(self, folder: Folder, path: str, files: "FaultyFiles", chance: Random | None) -> None:
        """Copies what a power cut leaves in a directory."""
        if path:
            files.makedirs(path)
        for name, node in folder.after_power_cut(chance).items():
            if isinstance(node, Folder):
                self._copy(node, f"{path}/{name}", files, chance)
            else:
                copy = FaultyFile(files, f"{path}/{name}", node.after_power_cut(chance))
                copy.modified_ms = node.modified_ms
                files.directories[path][name] = files._folder(path).names[name] = copy

    def keep(self) -> None:
        """Marks all names and contents as fsynced."""
        for path, folder in self._folders.items():
            folder.keep()
            for file in self.directories.get(path, {}).values():
                assert isinstance(file, FaultyFile)
                file.keep()

    def _folder(self, path: str) -> Folder:
        try:
            return self._folders[path]
        except KeyError:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path) from None

    # ------------------------------------------------------------ changes

    def create(self, path: str) -> FaultyFile:
        self.step("create", path)
        directory, name = self._place(path)
        file = FaultyFile(self, path)
        directory[name] = file
        self._folder(parent_of(path)).change({name: file})
        return file

    def write_atomically(self, path: str, data: bytes, *, sync: bool) -> None:
        file = self.create(path + ".tmp")
        file.write(data)
        if sync:
            file.fsync()
        self.rename(path + ".tmp", path)
        if sync:
            self.fsync_path(parent_of(path))

    def rename(self, old: str, new: str) -> None:
        self.step("rename", old)
        (old_parent, old_name), (new_parent, new_name) = os.path.split(old), os.path.split(new)
        source, target = self._folder(old_parent), self._folder(new_parent)
        node = source.names.get(old_name)
        super().rename(old, new)  # raises if the path does not exist
        assert node is not None
        if source is target:
            source.change({old_name: None, new_name: node})
        else:
            target.change({new_name: node})
            source.change({old_name: None})
        inside = old + "/"
        for path in [path for path in self._folders if path == old or path.startswith(inside)]:
            self._folders[new + path[len(old) :]] = self._folders.pop(path)

    def delete(self, path: str) -> None:
        self.step("delete", path)
        parent, name = os.path.split(path)
        if self.directories.get(parent, {}).pop(name, None) is not None:
            self._folder(parent).change({name: None})

    def delete_tree(self, path: str) -> None:
        if path not in self.directories:
            return
        for name in self.list(path):
            inner = f"{path}/{name}"
            if inner in self.directories:
                self.delete_tree(inner)
            else:
                self.delete(inner)
        self.step("delete", path)
        del self.directories[path], self._folders[path]
        parent, name = os.path.split(path)
        self._folder(parent).change({name: None})

    def makedirs(self, path: str) -> None:
        if path in self.directories or path in self._folders:
            return
        parent, name = os.path.split(path)
        self.makedirs(parent)
        self.step("makedirs", path)
        self.directories[path] = {}
        folder = self._folders[path] = Folder()
        self._folders[parent].change({name: folder})

    def fsync_path(self, path: str) -> None:
        self.step("fsync", path)
        if path in self._folders:
            self._folders[path].keep()
        else:
            file = self.open(path)
            assert isinstance(file, FaultyFile)
            file.keep()

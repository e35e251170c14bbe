"""Files and directories: the only access to the disk, with one implementation on a disk and one in memory.

Knows nothing of what is in the files.

A :class:`File` is used by one thread at a time. Only the function that :meth:`File.syncer` returns may run in another.
"""

import collections
import contextlib
import errno
import os
import threading
from collections.abc import Callable
from typing import Protocol

from barnabas.clock import Clock, SystemClock
from barnabas.log import systems
from barnabas.log.systems import Space, pread

Data = bytes | bytearray | memoryview

_APPENDING = os.O_RDWR | os.O_APPEND | systems.FLAGS
_NOWAIT: int | None = getattr(os, "RWF_NOWAIT", None)  # only Linux has it
_PROBE = [bytearray(1)]
_LOAD_SIZE = 1 << 20


class NotCached(Exception):
    """A read would wait for the disk. :meth:`Files.load` reads the bytes into the page cache."""

    def __init__(self, path: str, size: int, at: int) -> None:
        super().__init__(path, size, at)
        self.path, self.size, self.at = path, size, at


class File(Protocol):
    """An open file that is appended to and read at any position."""

    path: str

    def pread(self, size: int, at: int) -> bytes:
        """Returns up to ``size`` bytes from position ``at``; fewer at the end of the file."""
        ...

    def is_cached(self, size: int, at: int) -> bool:
        """Returns False if a read of these bytes would wait for the disk. Only the last byte is probed."""
        ...

    def write(self, data: Data) -> None:
        """Appends all of ``data``. After an OSError any part of it may have been written."""
        ...

    def truncate(self, size: int) -> None:
        """Cuts the file to ``size`` bytes."""
        ...

    def size(self) -> int:
        """Returns the number of bytes in the file."""
        ...

    def fsync(self) -> None:
        """Returns when everything written so far is on the disk."""
        ...

    def syncer(self) -> Callable[[], None]:
        """Returns a function that fsyncs the file once, in any thread, even when this object is closed by then."""
        ...

    def close(self) -> None:
        """Closes the descriptor. The next use opens the file again."""
        ...


class Lock(Protocol):
    """A lock file, held until it is closed or the process ends."""

    def close(self) -> None: ...


class Files(Protocol):
    """A tree of files. All methods raise OSError and its subclasses as the os module does."""

    def create(self, path: str) -> File:
        """Creates an empty file, which replaces a file of that name."""
        ...

    def open(self, path: str) -> File:
        """Returns an existing file. The first use opens it."""
        ...

    def read(self, path: str) -> bytes:
        """Returns the whole content."""
        ...

    def load(self, path: str, size: int, at: int) -> None:
        """Reads ``size`` bytes from position ``at`` into the page cache, in any thread."""
        ...

    def write_atomically(self, path: str, data: bytes, *, sync: bool) -> None:
        """Replaces the whole content. Readers see the old or the new content, also after a crash of the process.

        :param sync: fsync the new content before it replaces the old one, so that this holds after a power cut too
        """
        ...

    def rename(self, old: str, new: str) -> None:
        """Renames a file or directory. A file called ``new`` is replaced."""
        ...

    def delete(self, path: str) -> None:
        """Deletes a file, if it exists."""
        ...

    def delete_tree(self, path: str) -> None:
        """Deletes a directory and its content, if it exists."""
        ...

    def list(self, path: str) -> list[str]:
        """Returns the names in a directory."""
        ...

    def sizes(self, path: str) -> dict[str, int]:
        """Returns the names of the files in a directory, with their sizes in bytes.

        A file that goes meanwhile may be missing.
        """
        ...

    def exists(self, path: str) -> bool: ...

    def modified_ms(self, path: str) -> int:
        """Returns when the content last changed, in ms since 1970."""
        ...

    def set_modified_ms(self, path: str, time_ms: int) -> None:
        """Sets the time that :meth:`modified_ms` returns, until the content changes."""
        ...

    def makedirs(self, path: str) -> None:
        """Creates a directory and its parents, where they do not exist."""
        ...

    def fsync_path(self, path: str) -> None:
        """Fsyncs a file's content or a directory's entries, in any thread."""
        ...

    def lock(self, path: str) -> Lock | None:
        """Creates and locks the lock file ``path``; returns None when another broker holds it."""
        ...

    def space(self, path: str) -> Space:
        """Returns the space on the volume that holds ``path``."""
        ...


class DiskFile:
    """A file on disk. The first use opens it; :class:`DiskFiles` closes it when too many files are open."""

    __slots__ = ("_fd", "_files", "path", "recent")

    def __init__(self, files: "DiskFiles", path: str, fd: int = -1) -> None:
        self._files = files
        self.path = path
        self._fd = fd
        self.recent = True

    def pread(self, size: int, at: int) -> bytes:
        fd = self._fd if self._fd >= 0 else self._reopen()
        self.recent = True
        try:
            data = pread(fd, size, at)
        except OSError as error:
            raise _named(error, self.path) from None
        # The kernel returns less than ``size`` at the end of the file, and of reads above 2 GiB.
        return data if len(data) == size else self._pread_rest(data, size, at)

    def _pread_rest(self, data: bytes, size: int, at: int) -> bytes:
        pieces = [data]
        got = len(data)
        while got < size and (data := pread(self._fd, size - got, at + got)):
            pieces.append(data)
            got += len(data)
        return b"".join(pieces) if len(pieces) > 1 else pieces[0]

    def is_cached(self, size: int, at: int) -> bool:
        if _NOWAIT is None:
            return True
        try:
            os.preadv(self._fd if self._fd >= 0 else self._reopen(), _PROBE, at + size - 1, _NOWAIT)
        except BlockingIOError:
            return False
        except OSError:  # the file system does not support the flag; or the read will raise the same error
            return True
        return True

    def write(self, data: Data) -> None:
        fd = self._fd if self._fd >= 0 else self._reopen()
        self.recent = True
        try:
            written = os.write(fd, data)
            if written != len(data):
                rest = memoryview(data)
                while written < len(rest):
                    rest = rest[written:]
                    written = os.write(fd, rest)
        except OSError as error:
            raise _named(error, self.path) from None

    def truncate(self, size: int) -> None:
        try:
            os.ftruncate(self._fd if self._fd >= 0 else self._reopen(), size)
        except OSError as error:
            raise _named(error, self.path) from None

    def size(self) -> int:
        return os.fstat(self._fd).st_size if self._fd >= 0 else os.stat(self.path).st_size

    def fsync(self) -> None:
        _fsync(self._fd if self._fd >= 0 else self._reopen(), self.path)

    def syncer(self) -> Callable[[], None]:
        # A duplicate: this descriptor may be evicted, and its number reused for another file, before the thread runs.
        fd = os.dup(self._fd if self._fd >= 0 else self._reopen())

        def sync() -> None:
            try:
                _fsync(fd, self.path)
            finally:
                os.close(fd)

        return sync

    def close(self) -> None:
        if self._fd >= 0:
            self._files.forget(self)
            self.release()

    def release(self) -> None:
        """Closes the descriptor without a call to :meth:`DiskFiles.forget`."""
        fd, self._fd = self._fd, -1
        os.close(fd)

    def _reopen(self) -> int:
        self._fd = os.open(self.path, _APPENDING)
        self._files.remember(self)
        return self._fd


class DiskFiles:
    """Files on disk. At most ``max_open`` of them hold a descriptor; those that were not used lately lose it first."""

    def __init__(self, max_open: int | None = None) -> None:
        self.max_open = max_open if max_open is not None else _half_of_the_descriptors()
        self._open: collections.OrderedDict[DiskFile, None] = collections.OrderedDict()
        self._owner = threading.get_ident()

    def create(self, path: str) -> DiskFile:
        file = DiskFile(self, path, os.open(path, _APPENDING | os.O_CREAT | os.O_TRUNC, 0o644))
        self.remember(file)
        return file

    def open(self, path: str) -> DiskFile:
        return DiskFile(self, path)

    def remember(self, file: DiskFile) -> None:
        """Counts an open file, and closes another one above ``max_open`` (second chance: recently used files stay)."""
        self._open[file] = None
        if len(self._open) <= self.max_open or threading.get_ident() != self._owner:
            return  # only the owner's thread can be sure that no other file is being used at this moment
        for _ in range(2 * len(self._open)):
            candidate, _ = self._open.popitem(last=False)
            if candidate is file or candidate.recent:
                candidate.recent = candidate is file
                self._open[candidate] = None
            else:
                candidate.release()
                return

    def forget(self, file: DiskFile) -> None:
        """Stops counting a file that is being closed."""
        self._open.pop(file, None)

    @property
    def open_count(self) -> int:
        """The number of files that hold a descriptor."""
        return len(self._open)

    def read(self, path: str) -> bytes:
        fd = os.open(path, os.O_RDONLY | systems.FLAGS)
        try:
            pieces = []
            while data := os.read(fd, 1 << 20):
                pieces.append(data)
        finally:
            os.close(fd)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def load(self, path: str, size: int, at: int) -> None:
        fd = os.open(path, os.O_RDONLY | systems.FLAGS)
        try:
            buffer, end = memoryview(bytearray(min(size, _LOAD_SIZE))), at + size
            while at < end and (got := systems.read_into(fd, buffer[: end - at], at)):
                at += got
        finally:
            os.close(fd)

    def write_atomically(self, path: str, data: bytes, *, sync: bool) -> None:
        temporary = path + ".tmp"
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | systems.FLAGS, 0o644)
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(fd, rest) :]
            if sync:
                os.fsync(fd)
        except OSError as error:
            raise _named(error, temporary) from None
        finally:
            os.close(fd)
        os.replace(temporary, path)
        if sync:
            self.fsync_path(os.path.dirname(path))

    def rename(self, old: str, new: str) -> None:
        os.replace(old, new)

    def delete(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)

    def delete_tree(self, path: str) -> None:
        import shutil  # takes a tenth of a broker's start, and is seldom needed

        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(path)

    def list(self, path: str) -> list[str]:
        return os.listdir(path)

    def sizes(self, path: str) -> dict[str, int]:
        found = {}
        with os.scandir(path) as entries:
            for entry in entries:
                try:
                    if entry.is_file():
                        found[entry.name] = entry.stat().st_size
                except FileNotFoundError:
                    continue  # another thread or process has renamed or deleted it meanwhile
        return found

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def modified_ms(self, path: str) -> int:
        return os.stat(path).st_mtime_ns // 1_000_000

    def set_modified_ms(self, path: str, time_ms: int) -> None:
        try:
            os.utime(path, ns=(time_ms * 1_000_000, time_ms * 1_000_000))
        except OSError as error:
            raise _named(error, path) from None

    def makedirs(self, path: str) -> None:
        os.makedirs(path, exist_ok=True)

    def fsync_path(self, path: str) -> None:
        if systems.OPENS_DIRECTORIES:
            fd = os.open(path, os.O_RDONLY | systems.FLAGS)
        elif os.path.isdir(path):
            return
        else:
            fd = os.open(path, os.O_RDWR | systems.FLAGS)  # Windows fsyncs only what may be written
        try:
            _fsync(fd, path)
        finally:
            os.close(fd)

    def lock(self, path: str) -> "DiskLock | None":
        fd = os.open(path, os.O_RDWR | os.O_CREAT | systems.FLAGS, 0o644)
        try:
            systems.lock(fd)
        except BlockingIOError:
            os.close(fd)
            return None
        except OSError:
            os.close(fd)
            raise
        return DiskLock(fd)

    def space(self, path: str) -> Space:
        return systems.space(path)


class DiskLock:
    """A locked lock file."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def close(self) -> None:
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            os.close(fd)


def _fsync(fd: int, path: str) -> None:
    try:
        os.fsync(fd)
    except OSError as error:
        raise _named(error, path) from None


def _named(error: OSError, path: str) -> OSError:
    """Adds the path to an error: calls on a descriptor fail without naming the file."""
    return OSError(error.errno, error.strerror, path)


def _half_of_the_descriptors() -> int:
    """Returns half of the process's limit; the other half is for sockets."""
    return max(16, min(systems.descriptors(), 1 << 20) // 2)


class MemoryFile:
    """A file of :class:`MemoryFiles`. As on a disk, an open file can be used after it was deleted or renamed."""

    __slots__ = ("_clock", "content", "modified_ms", "path")

    def __init__(self, clock: Clock, path: str, content: bytes = b"") -> None:
        self._clock = clock
        self.path = path
        self.content = bytearray(content)
        self.modified_ms = clock.time_ms()

    def pread(self, size: int, at: int) -> bytes:
        return bytes(memoryview(self.content)[at : at + size])

    def is_cached(self, size: int, at: int) -> bool:
        return True

    def write(self, data: Data) -> None:
        self.content += data
        self.modified_ms = self._clock.time_ms()

    def truncate(self, size: int) -> None:
        del self.content[size:]

    def size(self) -> int:
        return len(self.content)

    def fsync(self) -> None:
        """Does nothing."""

    def syncer(self) -> Callable[[], None]:
        return self.fsync

    def close(self) -> None:
        """Does nothing."""


class MemoryFiles:
    """Files in memory: a dictionary for each directory.

    The event loop and the background thread use them at the same time, so loops are over copies of the names.
    """

    def __init__(self, clock: Clock | None = None) -> None:
        self.clock = clock if clock is not None else SystemClock()
        self.directories: dict[str, dict[str, MemoryFile]] = {}
        self._locked: set[str] = set()

    def create(self, path: str) -> MemoryFile:
        directory, name = self._place(path)
        file = directory[name] = MemoryFile(self.clock, path)
        return file

    def open(self, path: str) -> MemoryFile:
        directory, name = self._place(path)
        try:
            return directory[name]
        except KeyError:
            raise FileNotFoundError(errno.ENOENT, "No such file", path) from None

    def read(self, path: str) -> bytes:
        return bytes(self.open(path).content)

    def load(self, path: str, size: int, at: int) -> None:
        """Does nothing."""

    def write_atomically(self, path: str, data: bytes, *, sync: bool) -> None:
        directory, name = self._place(path)
        directory[name] = MemoryFile(self.clock, path, data)

    def rename(self, old: str, new: str) -> None:
        if old in self.directories:
            inside = old + "/"
            for path in [path for path in list(self.directories) if path == old or path.startswith(inside)]:
                names = self.directories[new + path[len(old) :]] = self.directories.pop(path)
                for name, file in names.copy().items():
                    file.path = f"{new}{path[len(old) :]}/{name}"
            return
        file = self.open(old)
        source, old_name = self._place(old)
        target, name = self._place(new)
        del source[old_name]
        target[name] = file
        file.path = new

    def delete(self, path: str) -> None:
        directory, name = os.path.split(path)
        self.directories.get(directory, {}).pop(name, None)

    def delete_tree(self, path: str) -> None:
        inside = path + "/"
        for directory in [name for name in list(self.directories) if name == path or name.startswith(inside)]:
            del self.directories[directory]

    def list(self, path: str) -> list[str]:
        inside = path + "/"
        below = {name[len(inside) :].partition("/")[0] for name in list(self.directories) if name.startswith(inside)}
        return [*self._names(path), *below]

    def sizes(self, path: str) -> dict[str, int]:
        return {name: file.size() for name, file in self._names(path).copy().items()}

    def exists(self, path: str) -> bool:
        return path in self.directories or os.path.basename(path) in self.directories.get(os.path.dirname(path), ())

    def modified_ms(self, path: str) -> int:
        return self.open(path).modified_ms

    def set_modified_ms(self, path: str, time_ms: int) -> None:
        self.open(path).modified_ms = time_ms

    def makedirs(self, path: str) -> None:
        while path and path not in self.directories:
            self.directories[path] = {}
            path = os.path.dirname(path)

    def fsync_path(self, path: str) -> None:
        """Does nothing."""

    def lock(self, path: str) -> "MemoryLock | None":
        if path in self._locked:
            return None
        self._locked.add(path)
        return MemoryLock(self._locked, path)

    def space(self, path: str) -> Space:
        return Space(-1, -1)

    def _names(self, path: str) -> dict[str, MemoryFile]:
        try:
            return self.directories[path]
        except KeyError:
            raise FileNotFoundError(errno.ENOENT, "No such directory", path) from None

    def _place(self, path: str) -> tuple[dict[str, MemoryFile], str]:
        directory, name = os.path.split(path)
        return self._names(directory), name


class MemoryLock:
    """A locked name."""

    def __init__(self, locked: set[str], path: str) -> None:
        self._locked = locked
        self._path = path

    def close(self) -> None:
        self._locked.discard(self._path)

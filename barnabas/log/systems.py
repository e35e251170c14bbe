"""System calls on files that not every operating system has, and what is used in their place.

Knows nothing of what is in the files. What a system lacks is looked for by its name, not by the system's, so
that a test can take it away (tests/test_portability.py).
"""

import os
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

FLAGS: Final = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
"""Flags of each file that is opened: Windows would change the ends of lines otherwise."""

_FEW_DESCRIPTORS: Final = 512  # the limit of the C library of Windows, which cannot be queried
OPENS_DIRECTORIES: Final = hasattr(os, "O_DIRECTORY")
"""Whether a directory can be opened, and so fsynced."""


class Space(NamedTuple):
    """The size of a volume and the part of it that this process can still use, in bytes."""

    total: int
    usable: int


def _seek_and_read(fd: int, size: int, at: int) -> bytes:
    os.lseek(fd, at, os.SEEK_SET)  # writes go to the end in any case: files are opened with O_APPEND
    return os.read(fd, size)


def _seek_and_read_into(fd: int, buffers: Sequence[memoryview], at: int) -> int:
    data = _seek_and_read(fd, len(buffers[0]), at)
    buffers[0][: len(data)] = data
    return len(data)


pread: Callable[[int, int, int], bytes] = getattr(os, "pread", _seek_and_read)


def read_into(fd: int, buffer: memoryview, at: int) -> int:
    """Reads from position ``at`` into the buffer. Returns the number of bytes, 0 at the end of the file."""
    read: int = getattr(os, "preadv", _seek_and_read_into)(fd, [buffer], at)
    return read


def lock(fd: int) -> None:
    """Locks an open file until it is closed.

    :raises BlockingIOError: another process, or this one, has locked it
    """
    try:
        import fcntl
    except ImportError:
        _lock_first_byte(fd)
        return
    # The first lock is of the kind that Apache Kafka takes. The second keeps out a broker in this process.
    fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _lock_first_byte(fd: int) -> None:
    import msvcrt

    try:  # Java's FileLock is over all bytes, and so over this one
        msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    except PermissionError as error:
        raise BlockingIOError(error.errno, error.strerror) from None


def space(path: str) -> Space:
    """Returns the space on the volume that holds ``path``."""
    if hasattr(os, "statvfs"):
        volume = os.statvfs(path)
        return Space(volume.f_blocks * volume.f_frsize, volume.f_bavail * volume.f_frsize)
    import shutil

    usage = shutil.disk_usage(path)
    return Space(usage.total, usage.free)


def descriptors() -> int:
    """Returns how many files and sockets this process may open."""
    try:
        import resource
    except ImportError:
        return _FEW_DESCRIPTORS
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def raise_descriptors() -> None:
    """Raises that limit as far as the system allows: each partition and each connection takes one."""
    try:
        import resource
    except ImportError:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

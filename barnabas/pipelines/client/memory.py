"""Keeps freed memory in the process for the next fetch, instead of returning it to the kernel.

Knows nothing of what the memory is used for.
"""

import ctypes
import functools

KEPT = 64 << 20
"""Bytes. A fetch and its columns take several times the fetched bytes, and the next fetch takes as much again."""

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of glibc's mallopt
_LARGEST_MMAP_THRESHOLD = 32 << 20


@functools.cache
def keep_freed_memory() -> None:
    """Configures glibc's allocator for this process. Does nothing with other allocators.

    By default glibc returns freed megabytes to the kernel, which clears each page before it hands it out again. In
    virtual machines that costs more than all the work on the bytes.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, _LARGEST_MMAP_THRESHOLD)
        mallopt(_TRIM_THRESHOLD, KEPT)

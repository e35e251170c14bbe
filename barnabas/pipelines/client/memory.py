"""Keeps the memory that reading and writing free for what they take next, instead of giving it back in between.

Knows nothing of what the memory is for.
"""

import ctypes
import functools

KEPT = 64 << 20
"""Bytes. A fetch and what is made of it take a few times as much as was fetched, and the next one takes it again."""

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of glibc's mallopt
_LARGEST_MMAP_THRESHOLD = 32 << 20


@functools.cache
def keep_freed_memory() -> None:
    """Tell glibc, for this process; other allocators go by their own rules, and nothing is done.

    Left alone it hands megabytes back to the kernel as soon as they are free, which then clears page by page what it
    gives out again: in virtual machines that costs more than all that is done with the bytes.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, _LARGEST_MMAP_THRESHOLD)
        mallopt(_TRIM_THRESHOLD, KEPT)

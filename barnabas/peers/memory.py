"""The memory of large responses, which is reused once there is no view of it any more.

Knows nothing of responses. New memory causes a page fault for each of its pages, which costs about as much as receiving
the data. A follower that catches up fetches megabytes at a time, and is done with each response before the next one.
"""

import mmap

BUFFER_SIZE = 64 * 1024
"""The size of the buffer for small responses. Larger responses have memory of their own."""

MOST_KEPT = 16 * 1024 * 1024
"""The maximum size of memory that is kept."""


KEPT_FOR = 16
"""After how many small responses in a row the memory is freed: a follower that has caught up gets small ones."""


class ResponseMemory:
    """The memory of one connection's large responses."""

    __slots__ = ("_kept", "_rests")

    def __init__(self) -> None:
        self._kept: bytearray | None = None
        self._rests = 0

    def take(self, size: int) -> memoryview:
        """Returns memory of that size, with undefined content.

        The system allocates pages of large memory when they are written, so that a length field alone uses no memory.
        """
        if size > MOST_KEPT:
            return memoryview(mmap.mmap(-1, size))
        kept, self._rests = self._kept, 0
        if kept is None or len(kept) < size or _has_views(kept):
            kept = self._kept = bytearray(-(-size // BUFFER_SIZE) * BUFFER_SIZE)
        return memoryview(kept)[:size]

    def rest(self) -> None:
        """Notes that a small response has arrived, which needs no such memory."""
        if self._kept is not None:
            self._rests += 1
            if self._rests >= KEPT_FOR:
                self._kept = None


def _has_views(kept: bytearray) -> bool:
    """Returns whether there are views of it, in which case Python refuses to resize it."""
    try:
        kept.append(kept.pop())
    except BufferError:
        return True
    return False

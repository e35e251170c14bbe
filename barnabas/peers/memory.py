"""The memory of large responses, which is used again when nobody has a view of it any more.

Knows nothing of responses. New memory costs a fault for each of its pages, about as much as receiving into it: a
follower that catches up takes megabytes at a time, and is done with each before the next comes.
"""

import mmap

BUFFER_SIZE = 64 * 1024
"""What smaller responses are received into. Larger ones have memory of their own."""

MOST_KEPT = 16 * 1024 * 1024
"""Larger memory is not kept."""


KEPT_FOR = 16
"""How many times memory may be left unused before it is freed: a follower that has caught up gets small responses."""


class ResponseMemory:
    """The memory of one connection's large responses."""

    __slots__ = ("_kept", "_rests")

    def __init__(self) -> None:
        self._kept: bytearray | None = None
        self._rests = 0

    def take(self, size: int) -> memoryview:
        """Returns memory of that size. What is in it is undefined.

        The pages of large memory are made as they are touched: an announced length costs nothing by itself.
        """
        if size > MOST_KEPT:
            return memoryview(mmap.mmap(-1, size))
        kept, self._rests = self._kept, 0
        if kept is None or len(kept) < size or _has_views(kept):
            kept = self._kept = bytearray(-(-size // BUFFER_SIZE) * BUFFER_SIZE)
        return memoryview(kept)[:size]

    def rest(self) -> None:
        """Takes in that there were small responses only, which need no such memory."""
        if self._kept is not None:
            self._rests += 1
            if self._rests >= KEPT_FOR:
                self._kept = None


def _has_views(kept: bytearray) -> bool:
    """Returns whether there are views of it: Python refuses to resize what has some."""
    try:
        kept.append(kept.pop())
    except BufferError:
        return True
    return False

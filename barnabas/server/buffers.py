"""Receive buffers: a connection takes one when bytes arrive, and gives it back when it is empty.

Knows nothing of frames. A buffer is anonymous mapped memory, whose pages are allocated when something is received into
them. A client that sends the first bytes of a frame costs only the pages of those bytes, whatever length it announces.
"""

import mmap

BUFFER_SIZE = 2 * 1024 * 1024
"""Room for two of librdkafka's largest requests. Larger buffers do not fit into the processor's cache."""

KEPT = 4
"""How many returned buffers are kept for later use."""


def allocate(size: int) -> memoryview:
    """Returns new writable memory. Its pages are made as they are touched, and freed with the last view of it."""
    return memoryview(mmap.mmap(-1, size))


class BufferPool:
    """The receive buffers of one event loop."""

    __slots__ = ("_free",)

    def __init__(self) -> None:
        self._free: list[memoryview] = []

    def take(self) -> memoryview:
        """Returns a buffer of :data:`BUFFER_SIZE`. The caller owns it until it gives it back."""
        return self._free.pop() if self._free else allocate(BUFFER_SIZE)

    def give_back(self, buffer: memoryview) -> None:
        """Takes a buffer back. There may be no references to its memory."""
        if len(buffer) == BUFFER_SIZE and len(self._free) < KEPT:
            self._free.append(buffer)

"""Memory to receive into: one buffer that all idle connections share, lent to the one that needs to keep bytes.

Knows nothing of frames. A buffer is anonymous mapped memory, whose pages exist only once something was received into
them: a stranger that sends the first bytes of a frame costs the pages of those bytes, whatever length it announced.
"""

import mmap

BUFFER_SIZE = 2 * 1024 * 1024
"""Two of librdkafka's largest requests; larger ones and the processor's cache no longer helps."""

KEPT = 4
"""How many returned buffers stay around for the next who needs one."""


def allocate(size: int) -> memoryview:
    """Fresh, writable memory; its pages are made as they are touched, and freed when the last view of it goes."""
    return memoryview(mmap.mmap(-1, size))


class BufferPool:
    """The receive buffers of one event loop."""

    __slots__ = ("_free",)

    def __init__(self) -> None:
        self._free: list[memoryview] = []

    def take(self) -> memoryview:
        """A buffer of :data:`BUFFER_SIZE`, yours until you give it back."""
        return self._free.pop() if self._free else allocate(BUFFER_SIZE)

    def give_back(self, buffer: memoryview) -> None:
        """Take it away again; nothing of it may be referred to any more."""
        if len(buffer) == BUFFER_SIZE and len(self._free) < KEPT:
            self._free.append(buffer)

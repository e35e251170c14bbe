"""Which closed segments have their indexes in memory.

Knows nothing of what an index is but its size.
"""

import collections
from typing import Protocol


class HasIndexes(Protocol):
    """A segment, as the cache sees it."""

    def forget_indexes(self) -> None:
        """Give the memory of the indexes back."""
        ...


class IndexCache:
    """The segments whose indexes were read last, up to ``max_bytes`` in all."""

    def __init__(self, max_bytes: int = 64 << 20) -> None:
        self.max_bytes = max_bytes
        self.bytes = 0
        self._loaded: collections.OrderedDict[HasIndexes, int] = collections.OrderedDict()

    def add(self, segment: HasIndexes, size: int) -> None:
        """The segment has an index in memory, of so many bytes."""
        self._loaded[segment] = self._loaded.pop(segment, 0) + size
        self.bytes += size
        while self.bytes > self.max_bytes and len(self._loaded) > 1:
            oldest, freed = self._loaded.popitem(last=False)
            self.bytes -= freed
            oldest.forget_indexes()

    def drop(self, segment: HasIndexes) -> None:
        """The segment is gone, or appended to again."""
        self.bytes -= self._loaded.pop(segment, 0)

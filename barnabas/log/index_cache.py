"""A cache of the closed segments whose indexes are in memory; it evicts the least recently loaded ones.

Knows nothing of an index but its size.
"""

import collections
from typing import Protocol


class HasIndexes(Protocol):
    """A segment, as far as the cache uses it."""

    def forget_indexes(self) -> None:
        """Releases the memory of the indexes."""
        ...


class IndexCache:
    """The segments whose indexes were loaded last, up to ``max_bytes`` in total."""

    def __init__(self, max_bytes: int = 64 << 20) -> None:
        self.max_bytes = max_bytes
        self.bytes = 0
        self._loaded: collections.OrderedDict[HasIndexes, int] = collections.OrderedDict()

    def add(self, segment: HasIndexes, size: int) -> None:
        """Counts ``size`` bytes of indexes of the segment, and evicts the oldest segments above ``max_bytes``."""
        self._loaded[segment] = self._loaded.pop(segment, 0) + size
        self.bytes += size
        while self.bytes > self.max_bytes and len(self._loaded) > 1:
            oldest, freed = self._loaded.popitem(last=False)
            self.bytes -= freed
            oldest.forget_indexes()

    def drop(self, segment: HasIndexes) -> None:
        """Stops counting the segment: it is closed or active again."""
        self.bytes -= self._loaded.pop(segment, 0)

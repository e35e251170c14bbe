"""A heap that decides ties as Java's ``PriorityQueue`` does.

Knows nothing of its items. Python's ``heapq`` decides ties differently.
"""

from typing import Generic, TypeVar

T = TypeVar("T")


class JavaHeap(Generic[T]):
    """Items with a rank, the smallest rank first.

    >>> heap = JavaHeap()
    >>> for name in "abc":
    ...     heap.push(0, name)
    >>> [heap.pop() for _ in range(len(heap))]
    ['a', 'c', 'b']
    """

    __slots__ = ("_entries",)

    def __init__(self) -> None:
        self._entries: list[tuple[float, T]] = []

    def __len__(self) -> int:
        return len(self._entries)

    def push(self, rank: float, item: T) -> None:
        """Adds an item, as ``PriorityQueue.offer`` does."""
        entries = self._entries
        at = len(entries)
        entries.append((rank, item))
        while at > 0:
            parent = (at - 1) >> 1
            if rank >= entries[parent][0]:
                break
            entries[at] = entries[parent]
            at = parent
        entries[at] = (rank, item)

    def pop(self) -> T:
        """Removes and returns the first item, as ``PriorityQueue.poll`` does."""
        entries = self._entries
        first = entries[0]
        last = entries.pop()
        size = len(entries)
        if size:
            at = 0
            while (child := 2 * at + 1) < size:
                right = child + 1
                if right < size and entries[child][0] > entries[right][0]:
                    child = right
                if last[0] <= entries[child][0]:
                    break
                entries[at] = entries[child]
                at = child
            entries[at] = last
        return first[1]

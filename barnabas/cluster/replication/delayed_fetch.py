"""A fetch that waits until the watermarks of its partitions advance, or until its wait time ends.

Knows nothing of what is fetched. Apache Kafka's ``DelayedFetch`` and ``DelayedShareFetch``.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from barnabas.clock import Scheduler, Timer
from barnabas.cluster.replication.partition import Partition


class DelayedFetch(ABC):
    """A fetch that waits until :meth:`try_complete` finds enough data, or until :meth:`expire` is called."""

    __slots__ = ("_expiry", "_look", "_partitions", "_scheduler")

    def __init__(
        self, scheduler: Scheduler, partitions: Sequence[Partition], isolation_level: int, max_wait_ms: int
    ) -> None:
        self._scheduler = scheduler
        self._partitions = partitions
        for partition in partitions:
            partition.watch(self.advanced, isolation_level)
        self._expiry = scheduler.call_later(max_wait_ms / 1000, self.expire)
        self._look: Timer | None = None

    def advanced(self, size: int) -> None:
        """Handles ``size`` more readable bytes of a partition; 0 if it has changed otherwise."""
        self.look_soon()

    def look_soon(self) -> None:
        """Calls :meth:`try_complete` in the next turn of the loop, after all appends of this one."""
        if self._look is None:
            self._look = self._scheduler.call_later(0, self.try_complete)

    @abstractmethod
    def try_complete(self) -> None:
        """Completes the fetch if there is enough data; otherwise sets ``_look`` to None, and waits."""

    @abstractmethod
    def expire(self) -> None:
        """Completes the fetch with the available data: the wait time has ended."""

    def stop(self) -> None:
        """Stops waiting."""
        self._expiry.cancel()
        if self._look is not None:
            self._look.cancel()
        for partition in self._partitions:
            partition.unwatch(self.advanced)

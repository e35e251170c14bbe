"""A fetch that waits until the watermarks of its partitions advance, or until its time is up.

Knows nothing of what is fetched. Model: Apache Kafka's ``DelayedFetch`` and ``DelayedShareFetch``.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from barnabas.clock import Scheduler, Timer
from barnabas.cluster.replication.partition import Partition


class DelayedFetch(ABC):
    """A fetch that waits until :meth:`try_complete` finds enough, or until :meth:`expire` is called."""

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
        """Takes in that ``size`` bytes more can be read of a partition; 0 when it has changed otherwise."""
        self.look_soon()

    def look_soon(self) -> None:
        """Calls :meth:`try_complete` in the next turn of the loop, after all that is appended in this one."""
        if self._look is None:
            self._look = self._scheduler.call_later(0, self.try_complete)

    @abstractmethod
    def try_complete(self) -> None:
        """Answers if there is enough to answer with; else sets ``_look`` to None, and goes on waiting."""

    @abstractmethod
    def expire(self) -> None:
        """Answers with what there is: the time is up."""

    def stop(self) -> None:
        """Stops waiting."""
        self._expiry.cancel()
        if self._look is not None:
            self._look.cancel()
        for partition in self._partitions:
            partition.unwatch(self.advanced)

"""So many bytes a second and no more.

Knows nothing of what the bytes are.
"""

from collections.abc import Callable
from typing import Final

from barnabas.clock import Clock

INTERVAL: Final = 0.3  # seconds that are looked at together, as Apache Kafka's ``Throttler`` does


class Throttle:
    """Waits, in :meth:`add`, until as much time has passed as the bytes may take."""

    __slots__ = ("_bytes", "_clock", "_rate", "_since", "_sleep")

    def __init__(self, bytes_per_second: float, clock: Clock, sleep: Callable[[float], object]) -> None:
        self._rate = bytes_per_second
        self._clock, self._sleep = clock, sleep
        self._since, self._bytes = clock.monotonic(), 0

    def add(self, size: int) -> None:
        """So many bytes went through."""
        self._bytes += size
        passed = self._clock.monotonic() - self._since
        if passed < INTERVAL and self._bytes < self._rate * INTERVAL:
            return  # the bytes so far may still come to be too few for their time
        due = self._bytes / self._rate
        if due > passed:
            self._sleep(due - passed)
        self._since, self._bytes = self._clock.monotonic(), 0

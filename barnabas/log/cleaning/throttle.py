"""Limits a rate of bytes per second by waiting.

Knows nothing of what the bytes are.
"""

from collections.abc import Callable
from typing import Final

from barnabas.clock import Clock

INTERVAL: Final = 0.3  # seconds over which the rate is measured, as in Apache Kafka's ``Throttler``


class Throttle:
    """Waits in :meth:`add` until the bytes so far are within the rate."""

    __slots__ = ("_bytes", "_clock", "_rate", "_since", "_sleep")

    def __init__(self, bytes_per_second: float, clock: Clock, sleep: Callable[[float], object]) -> None:
        self._rate = bytes_per_second
        self._clock, self._sleep = clock, sleep
        self._since, self._bytes = clock.monotonic(), 0

    def add(self, size: int) -> None:
        """Counts ``size`` bytes, and waits if the rate is exceeded."""
        self._bytes += size
        passed = self._clock.monotonic() - self._since
        if passed < INTERVAL and self._bytes < self._rate * INTERVAL:
            return  # the interval is not over and its bytes are not used up
        due = self._bytes / self._rate
        if due > passed:
            self._sleep(due - passed)
        self._since, self._bytes = self._clock.monotonic(), 0

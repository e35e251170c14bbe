"""Clocks and schedulers, which are passed in, so that tests control time.

Knows nothing of what is scheduled. An asyncio loop is a :class:`Scheduler`. A :class:`ManualClock` is both a clock and
a scheduler; only tests advance it.
"""

import heapq
import itertools
import time
from collections.abc import Callable
from typing import Any, Protocol


class Clock(Protocol):
    """A source of the current time."""

    def time_ms(self) -> int:
        """Returns milliseconds since 1970, the unit of timestamps in records."""
        ...

    def monotonic(self) -> float:
        """Returns seconds since an arbitrary moment; never decreases."""
        ...


class Timer(Protocol):
    """A scheduled call."""

    def cancel(self) -> None:
        """Cancels the call; has no effect after the call."""
        ...


class Scheduler(Protocol):
    """Schedules calls."""

    def call_later(self, delay: float, callback: Callable[..., object], *args: Any) -> Timer:
        """Schedules one call of ``callback(*args)`` in ``delay`` seconds."""
        ...


class SystemClock:
    """The clocks of the operating system."""

    def time_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()


class ManualTimer:
    """A call that :meth:`ManualClock.advance` makes at its time."""

    __slots__ = ("args", "callback")

    def __init__(self, callback: Callable[..., object], args: tuple[Any, ...]) -> None:
        self.callback: Callable[..., object] | None = callback
        self.args = args

    def cancel(self) -> None:
        self.callback = None


class ManualClock:
    """A clock that only :meth:`advance` moves, and a scheduler that uses it.

    >>> clock = ManualClock(time_ms=1000)
    >>> called = []
    >>> timer = clock.call_later(0.5, called.append, "half a second")
    >>> clock.advance(1)
    >>> called, clock.time_ms()
    (['half a second'], 2000)
    """

    def __init__(self, time_ms: int = 1_700_000_000_000) -> None:
        self._start_ms = time_ms
        self._now = 0.0
        self._due: list[tuple[float, int, ManualTimer]] = []
        self._order = itertools.count()

    def time_ms(self) -> int:
        return self._start_ms + round(self._now * 1000)

    def monotonic(self) -> float:
        return self._now

    def call_later(self, delay: float, callback: Callable[..., object], *args: Any) -> ManualTimer:
        timer = ManualTimer(callback, args)
        heapq.heappush(self._due, (self._now + max(delay, 0.0), next(self._order), timer))
        return timer

    def advance(self, seconds: float) -> None:
        """Advances the clock, and makes each call at its own time, in order."""
        end = self._now + seconds
        while self._due and self._due[0][0] <= end + 1e-9:
            at, _, timer = heapq.heappop(self._due)
            self._now = max(self._now, at)
            callback, timer.callback = timer.callback, None
            if callback is not None:
                callback(*timer.args)
        self._now = end

    def skip(self, seconds: float) -> None:
        """Advances the clock without a turn of the event loop: due calls wait for the next :meth:`advance`."""
        self._now += seconds

    def turn(self, milliseconds: int) -> None:
        """Turns the time of day, forward or back. Timers do not notice."""
        self._start_ms += milliseconds

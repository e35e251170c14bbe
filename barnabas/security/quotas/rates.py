"""The usage of a quota: a rate over the last samples, and a token bucket.

Knows nothing of clients and clocks: each call has the time in milliseconds. The arithmetic is that of Kafka's
``SampledStat``, ``Rate``, ``QuotaUtils.throttleTime`` and ``TokenBucket``.
"""

from math import isfinite
from typing import NamedTuple

LONGEST_MS = 2**31 - 1
"""The longest throttle time that a response can have."""


class Windows(NamedTuple):
    """The samples of a rate: their number, the current one included, and the length of each."""

    number: int = 11
    length_ms: int = 1000

    @property
    def burst_s(self) -> float:
        """The seconds of a token bucket's rate that can be used at once."""
        return self.number * self.length_ms / 1000


WINDOWS = Windows()
"""Kafka's default: ten whole samples of a second, and the current one."""


def milliseconds(value: float) -> int:
    """Returns the throttle time, rounded as in Java; 0 for NaN, which a quota that is NaN or infinite leads to."""
    if value != value or value <= 0:
        return 0
    return min(int(value + 0.5), LONGEST_MS) if isfinite(value) else LONGEST_MS


class Rate:
    """A rate per second over the last samples.

    >>> rate = Rate(Windows())
    >>> rate.record(10_000, now_ms=0)
    >>> rate.throttle_ms(bound=1000, now_ms=0)
    0
    >>> rate.record(2_000, now_ms=500)
    >>> rate.throttle_ms(bound=1000, now_ms=500)
    1500
    """

    __slots__ = ("_current", "_first", "_lasts", "_purged_until", "_starts", "_used", "_values", "_windows")

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        # The samples: the start, the time of the last record, and the sum of each. There is one more than the window
        # has.
        self._starts: list[int] = []
        self._lasts: list[int] = []
        self._values: list[float] = []
        self._current = 0
        # Totals of the samples: their sum, the first start, and the time until which no sample leaves the window.
        self._used = 0.0
        self._first = 0
        self._purged_until = 0

    def record(self, value: float, now_ms: int) -> None:
        """Adds to the current sample. A negative value takes back what was recorded before."""
        if not self._starts:
            self._add(now_ms)
        elif now_ms - self._starts[self._current] >= self._windows.length_ms:
            self._advance(now_ms)
        self._values[self._current] += value
        self._used += value
        self._lasts[self._current] = now_ms

    def throttle_ms(self, bound: float, now_ms: int) -> int:
        """Returns the time in which the rate falls to ``bound`` if nothing is recorded; 0 if it is not above it."""
        if now_ms >= self._purged_until:
            self._purge(now_ms)
        span_ms = self._span(now_ms)
        allowed = bound * span_ms / 1000
        if self._used <= allowed or not span_ms:
            return 0
        return milliseconds((self._used - allowed) / bound * 1000)

    def is_idle(self, now_ms: int) -> bool:
        """Returns whether all that was recorded is out of the window."""
        self._purge(now_ms)
        return not any(self._values)

    def _add(self, now_ms: int) -> None:
        self._starts.append(now_ms)
        self._lasts.append(now_ms)
        self._values.append(0.0)
        self._sum_up()

    def _reset(self, sample: int, now_ms: int) -> None:
        self._starts[sample] = self._lasts[sample] = now_ms
        self._values[sample] = 0.0

    def _advance(self, now_ms: int) -> None:
        self._current = (self._current + 1) % (self._windows.number + 1)
        if self._current == len(self._starts):
            self._add(now_ms)
        else:
            self._reset(self._current, now_ms)
            self._sum_up()

    def _sum_up(self) -> None:
        self._used = sum(self._values)
        self._first = min(self._starts)

    def _purge(self, now_ms: int) -> None:
        """Empties the samples that are out of the window."""
        window_ms = self._windows.number * self._windows.length_ms
        for sample, last in enumerate(self._lasts):
            if last <= now_ms - window_ms:
                self._reset(sample, now_ms)
        if self._lasts:
            self._sum_up()
            self._purged_until = min(self._lasts) + window_ms

    def _span(self, now_ms: int) -> int:
        """Returns the length of the window. Samples that do not exist yet count as empty ones."""
        number, length_ms = self._windows
        elapsed = now_ms - self._first if self._starts else 0
        missing = number - 1 - elapsed // length_ms
        return elapsed + missing * length_ms if missing > 0 else elapsed


class TokenBucket:
    """A token bucket that is filled at a rate, up to the burst of all samples. It may fall below zero once (KIP-599).

    >>> bucket = TokenBucket(Windows())
    >>> bucket.record(15, bound=1, now_ms=0)
    >>> bucket.throttle_ms(bound=1, now_ms=0)
    4000
    """

    __slots__ = ("_tokens", "_updated_ms", "_windows")

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self._tokens = float("inf")  # full, whatever the quota
        self._updated_ms = 0

    def record(self, value: float, bound: float, now_ms: int) -> None:
        """Takes tokens; gives them back if ``value`` is negative."""
        self._refill(bound, now_ms)
        self._tokens = min(self._windows.burst_s * bound, self._tokens - value)

    def throttle_ms(self, bound: float, now_ms: int) -> int:
        """Returns the time until the bucket is not below zero any more."""
        self._refill(bound, now_ms)
        return milliseconds(-self._tokens / bound * 1000) if self._tokens < 0 else 0

    def is_idle(self, bound: float, now_ms: int) -> bool:
        """Returns whether the bucket is full."""
        self._refill(bound, now_ms)
        return self._tokens >= self._windows.burst_s * bound

    def _refill(self, bound: float, now_ms: int) -> None:
        refilled = self._tokens + bound * (now_ms - self._updated_ms) / 1000
        self._tokens = min(self._windows.burst_s * bound, refilled)
        self._updated_ms = now_ms

"""The clock of a broker or a cluster in this process, which a test advances: retention, expiry, time-outs and sessions
use it.

Knows nothing of the broker. Sockets use the machine's time, as clients do, and so do the nodes of a cluster among
themselves.
"""

import asyncio
import itertools
import math
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from datetime import datetime

LEAPS: Final = 100
"""The most steps in which the clock is advanced. Timers that are due within a step run at its end."""

TURNS_A_LEAP: Final = 5
"""How many turns the event loop runs after each step, so that the callbacks of timers can finish."""


class TurnedTimer:
    """A call of :class:`TurnedClock`."""

    __slots__ = ("args", "at", "callback", "clock", "handle", "number")

    def __init__(
        self, clock: "TurnedClock", at: float, number: int, callback: Callable[..., object], args: tuple[Any, ...]
    ) -> None:
        self.clock = clock
        self.at = at  #: in seconds of the clock's ``monotonic``
        self.number = number
        self.callback = callback
        self.args = args
        self.handle: asyncio.TimerHandle | None = None

    def cancel(self) -> None:
        self.clock.timers.discard(self)
        if self.handle is not None:
            self.handle.cancel()

    def ring(self) -> None:
        """Makes the call."""
        self.clock.timers.discard(self)
        self.callback(*self.args)

    def ring_soon(self) -> None:
        """Makes the call in the next turn of the loop."""
        self.cancel()
        self.clock.loop.call_soon(self.callback, *self.args)


class TurnedClock:
    """The machine's clock, and the loop's timers, plus the time by which a test has advanced them."""

    loop: asyncio.AbstractEventLoop

    def __init__(self) -> None:
        self._turned_s = 0.0  # by how much the clock has been advanced
        self._ahead_ms = 0  # by how much its date is ahead of the machine's
        self._frozen_ms: int | None = None
        self._order = itertools.count()
        self.timers: set[TurnedTimer] = set()

    def time_ms(self) -> int:
        frozen_ms = self._frozen_ms
        return time.time_ns() // 1_000_000 + self._ahead_ms if frozen_ms is None else frozen_ms

    def monotonic(self) -> float:
        return time.monotonic() + self._turned_s

    def call_later(self, delay: float, callback: Callable[..., object], *args: Any) -> TurnedTimer:
        timer = TurnedTimer(self, self.monotonic() + delay, next(self._order), callback, args)
        timer.handle = self.loop.call_later(max(delay, 0), timer.ring)
        if delay > 0:
            self.timers.add(timer)
        return timer

    @property
    def is_frozen(self) -> bool:
        """Whether the date is frozen."""
        return self._frozen_ms is not None

    def freeze(self) -> None:
        """Stops the date. Timers, such as that of a Fetch that waits for data, go on."""
        self._frozen_ms = self.time_ms()

    def go_on(self) -> None:
        """Unfreezes the date, which goes on from its current value."""
        if self._frozen_ms is not None:
            self._ahead_ms, self._frozen_ms = self._frozen_ms - _machine_ms(), None

    def set_back(self) -> None:
        """Sets the date to that of the machine."""
        self._ahead_ms, self._frozen_ms = 0, None

    async def advance(self, seconds: float, settled: Callable[[], Awaitable[object]]) -> None:
        """Advances the clock, and runs the timers that are due, in their order.

        :param settled: waits for the work that they have started in other threads
        """
        left, least = seconds, seconds / LEAPS
        while left > 0:
            first = min((timer.at for timer in self.timers), default=math.inf)
            leap = min(left, max(first - self.monotonic(), least))
            left -= leap
            self._turn(leap)
            now = self.monotonic()
            for timer in sorted(self.timers, key=lambda timer: (timer.at, timer.number)):
                if timer.at > now:
                    break
                timer.ring_soon()
            for _ in range(TURNS_A_LEAP):
                await asyncio.sleep(0)
        await settled()
        now = self.monotonic()
        for timer in self.timers:
            if timer.handle is not None:
                timer.handle.cancel()
            timer.handle = self.loop.call_later(max(timer.at - now, 0), timer.ring)

    def _turn(self, seconds: float) -> None:
        self._turned_s += seconds
        self._ahead_ms += round(seconds * 1000)
        if self._frozen_ms is not None:
            self._frozen_ms += round(seconds * 1000)

    def set_date(self, time_ms: int) -> None:
        """Sets the date; timers are not affected."""
        self._ahead_ms = time_ms - _machine_ms()
        if self._frozen_ms is not None:
            self._frozen_ms = time_ms


class Undisturbed:
    """The date of a clock, and the machine's ``monotonic``: what nodes wait for from one another takes its time."""

    def __init__(self, clock: TurnedClock) -> None:
        self.time_ms = clock.time_ms
        self.monotonic = time.monotonic


def moment_of(date: "str | datetime") -> int:
    """Returns milliseconds since 1970; a date without a time zone is in UTC.

    :raises ValueError: it is no date of ISO 8601
    """
    from datetime import UTC, datetime

    moment = datetime.fromisoformat(date) if isinstance(date, str) else date
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)


def _machine_ms() -> int:
    return time.time_ns() // 1_000_000


class BrokerClock:
    """The clock of a broker, or of all nodes of a cluster, as a test controls it.

    :param advance: advances the clock by seconds, and returns when that is done
    """

    def __init__(self, clock: TurnedClock, advance: Callable[[float], object]) -> None:
        self._clock = clock
        self._advance = advance

    def advance(self, *, seconds: float = 0, minutes: float = 0, hours: float = 0, days: float = 0) -> None:
        """Advances the clock. Timers that are due have run when this returns.

        :raises ValueError: the clock would go back
        """
        whole = seconds + 60 * minutes + 3600 * hours + 86400 * days
        if whole < 0:
            raise ValueError("the clock cannot go back; at() sets the date back")
        self._advance(whole)

    def at(self, date: "str | datetime") -> None:
        """Advances the clock to a date, in UTC if it has no time zone. For a date in the past, only the date is set.

        :raises ValueError: it is no date of ISO 8601
        """
        time_ms = moment_of(date)
        ahead_ms = time_ms - self.time_ms
        if ahead_ms > 0:
            self._advance(ahead_ms / 1000)
        self._clock.set_date(time_ms)

    def freeze(self) -> None:
        """Freezes the date: timestamps of new records, retention and expiry. Time-outs and sessions go on."""
        self._clock.freeze()

    def go_on(self) -> None:
        """Unfreezes the date, which goes on from its current value."""
        self._clock.go_on()

    @property
    def is_frozen(self) -> bool:
        """Whether the date is frozen."""
        return self._clock.is_frozen

    @property
    def time_ms(self) -> int:
        """The broker's time in milliseconds since 1970."""
        return self._clock.time_ms()

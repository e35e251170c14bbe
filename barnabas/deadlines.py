"""Many deadlines on one timer.

Knows nothing of the callbacks. A heartbeat moves its member's deadline thousands of times before the deadline is
reached, so moving a deadline to later is an assignment, and only the earliest one has a timer of the event loop.
"""

import heapq
import itertools
from collections import deque
from collections.abc import Callable
from typing import Any

from barnabas.clock import Clock, Scheduler, Timer

NEVER = float("inf")


class Deadline:
    """A callback and its time, which may change. A new deadline is not set.

    It is created once, and set by :meth:`Deadlines.set` as often as needed.
    """

    __slots__ = ("args", "at", "callback", "queued_at")

    def __init__(self, callback: Callable[..., object], *args: Any) -> None:
        self.callback = callback
        self.args = args
        self.at = NEVER
        """The time of the call, in seconds of the clock's ``monotonic``."""
        self.queued_at = NEVER
        """The position in the queue: never later than ``at``, often earlier."""

    def cancel(self) -> None:
        """Unsets the deadline. Its entry in the queue is dropped later."""
        self.at = NEVER

    @property
    def is_set(self) -> bool:
        return self.at != NEVER


class Deadlines:
    """A queue of deadlines, with one timer for the earliest.

    The event loop serves ready sockets before due timers. A handler of requests that depend on deadlines calls
    :meth:`run_due` first, so that due deadlines have passed for it.

    >>> from barnabas.clock import ManualClock
    >>> clock = ManualClock()
    >>> deadlines = Deadlines(clock, clock)
    >>> session = Deadline(print, "expired")
    >>> deadlines.set(session, 10)
    >>> clock.advance(9)
    >>> deadlines.set(session, 10)
    >>> clock.advance(9)
    >>> clock.advance(1)
    expired
    """

    def __init__(self, clock: Clock, scheduler: Scheduler) -> None:
        self._clock = clock
        self._scheduler = scheduler
        self._queue: list[tuple[float, int, Deadline]] = []
        self._due: deque[Deadline] = deque()
        self._next_turn: list[Deadline] = []
        self._order = itertools.count()
        self._timer: Timer | None = None
        self._timer_at = NEVER
        self._turn_timer: Timer | None = None
        self._is_closed = False

    def set(self, deadline: Deadline, delay: float) -> None:
        """Sets the deadline to ``delay`` seconds from now.

        With a delay of 0 it is due in the next turn of the event loop, after requests that are ready now.
        """
        if self._is_closed:
            return
        at = deadline.at = self._clock.monotonic() + delay
        if delay <= 0:
            self._next_turn.append(deadline)
            if self._turn_timer is None:
                self._turn_timer = self._scheduler.call_later(0, self._turn)
            return
        if at < deadline.queued_at:
            self._enqueue(deadline)
            if at < self._timer_at:
                self._arm(at)

    def run_due(self) -> None:
        """Runs the due callbacks. Costs a comparison if none is due."""
        if self._timer_at <= self._clock.monotonic() or self._due:
            self._run()

    def close(self) -> None:
        """Drops all deadlines. None can be set any longer."""
        self._is_closed = True
        for timer in (self._timer, self._turn_timer):
            if timer is not None:
                timer.cancel()
        self._timer, self._timer_at, self._turn_timer = None, NEVER, None
        self._queue.clear()
        self._due.clear()
        self._next_turn.clear()

    def _enqueue(self, deadline: Deadline) -> None:
        deadline.queued_at = deadline.at
        heapq.heappush(self._queue, (deadline.at, next(self._order), deadline))

    def _arm(self, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = at
        self._timer = self._scheduler.call_later(max(at - self._clock.monotonic(), 0.0), self._run)

    def _turn(self) -> None:
        self._turn_timer = None
        self._due.extend(self._next_turn)
        self._next_turn.clear()
        self._run()

    def _run(self) -> None:
        """Runs the due callbacks, requeues moved deadlines, and sets the timer for the next one.

        The next request of a client may call :meth:`run_due` within a callback: that call runs the remaining callbacks
        first.
        """
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._timer_at = None, NEVER
        now = self._clock.monotonic()
        self._collect(now)
        try:
            while self._due:
                deadline = self._due.popleft()
                if deadline.at <= now:  # an earlier callback may have cancelled or moved it
                    deadline.at = NEVER
                    deadline.callback(*deadline.args)
        finally:
            # An unexpected error of a callback must not stop the others.
            while self._due:
                deadline = self._due.popleft()
                if deadline.is_set and deadline.queued_at == NEVER:
                    self._enqueue(deadline)
            if self._queue and self._queue[0][0] < self._timer_at:
                self._arm(self._queue[0][0])

    def _collect(self, now: float) -> None:
        """Moves due deadlines from the queue to ``_due``."""
        while self._queue and self._queue[0][0] <= now:
            at, _, deadline = heapq.heappop(self._queue)
            if at != deadline.queued_at:
                continue  # it was moved to earlier, and is in the queue twice
            deadline.queued_at = NEVER
            if deadline.at <= now:
                self._due.append(deadline)
            elif deadline.at != NEVER:
                self._enqueue(deadline)

"""Many deadlines on one timer.

Knows nothing of whose they are. A heartbeat moves its member's deadline thousands of times for each time that it is
reached, so moving one later costs an assignment; only the first to come is in the event loop.
"""

import heapq
import itertools
from collections.abc import Callable
from typing import Any

from barnabas.clock import Clock, Scheduler, Timer

NEVER = float("inf")


class Deadline:
    """Something to be done at a moment that may still move; not set to begin with.

    Made once for whatever has it, then set and cancelled through :class:`Deadlines`.
    """

    __slots__ = ("args", "at", "callback", "queued_at")

    def __init__(self, callback: Callable[..., object], *args: Any) -> None:
        self.callback = callback
        self.args = args
        self.at = NEVER
        """In seconds of the clock's ``monotonic``."""
        self.queued_at = NEVER
        """Where it stands in the queue: never later than ``at``, often earlier."""

    def cancel(self) -> None:
        """Not any more. What stands in the queue is dropped when its turn comes."""
        self.at = NEVER

    @property
    def is_set(self) -> bool:
        return self.at != NEVER


class Deadlines:
    """The queue of them all, and the one timer that waits for its head.

    >>> from barnabas.clock import ManualClock
    >>> clock = ManualClock()
    >>> deadlines = Deadlines(clock, clock)
    >>> session = Deadline(print, "too late")
    >>> deadlines.set(session, 10)
    >>> clock.advance(9)
    >>> deadlines.set(session, 10)
    >>> clock.advance(9)
    >>> clock.advance(1)
    too late
    """

    def __init__(self, clock: Clock, scheduler: Scheduler) -> None:
        self._clock = clock
        self._scheduler = scheduler
        self._queue: list[tuple[float, int, Deadline]] = []
        self._order = itertools.count()
        self._timer: Timer | None = None
        self._timer_at = NEVER

    def set(self, deadline: Deadline, delay: float) -> None:
        """``delay`` seconds from now, wherever it was before."""
        at = self._clock.monotonic() + delay
        deadline.at = at
        if at < deadline.queued_at:
            self._enqueue(deadline)
            if at < self._timer_at:
                self._arm(at)

    def close(self) -> None:
        """Forget them all."""
        if self._timer is not None:
            self._timer.cancel()
        self._queue.clear()

    def _enqueue(self, deadline: Deadline) -> None:
        deadline.queued_at = deadline.at
        heapq.heappush(self._queue, (deadline.at, next(self._order), deadline))

    def _arm(self, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = at
        self._timer = self._scheduler.call_later(max(at - self._clock.monotonic(), 0.0), self._come)

    def _come(self) -> None:
        """Do what is due; put off what has moved; wait for the next."""
        self._timer, self._timer_at = None, NEVER
        now = self._clock.monotonic()
        due: list[Deadline] = []
        while self._queue and self._queue[0][0] <= now:
            at, _, deadline = heapq.heappop(self._queue)
            if at != deadline.queued_at:
                continue  # it was moved forward, and stands in the queue a second time
            deadline.queued_at = NEVER
            if deadline.at <= now:
                due.append(deadline)
            elif deadline.at != NEVER:
                self._enqueue(deadline)
        due.reverse()
        try:
            while due:
                deadline = due.pop()
                if deadline.at <= now:  # what came before it may have cancelled or moved it
                    deadline.at = NEVER
                    deadline.callback(*deadline.args)
        finally:
            # A callback that fails is a bug of ours, and no reason to forget the others.
            for deadline in due:
                self._enqueue(deadline)
            if self._queue and self._queue[0][0] < self._timer_at:
                self._arm(self._queue[0][0])

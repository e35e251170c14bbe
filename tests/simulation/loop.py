"""An asyncio event loop under a virtual clock: when nothing is left to do, it is the time of the next timer.

Knows nothing of nodes, but that each callback belongs to a life: that of the process which scheduled it. What belongs
to a dead process is never called, what belongs to a stopped one is called when it goes on.
"""

import asyncio
import heapq
from collections.abc import Callable
from contextvars import Context, ContextVar, copy_context
from typing import Any


class Life:
    """One run of one process, from its start to its end. :param name: of the node or client, in traces"""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_dead = False
        self.is_paused = False
        self.held: list[asyncio.Handle] = []
        self.context = copy_context()
        self.context.run(LIFE.set, self)


LIFE: ContextVar[Life | None] = ContextVar("LIFE", default=None)
"""Whose code is running. Tasks and timers inherit it."""


def holds_back(handle: asyncio.Handle, context: Context) -> bool:
    """Returns whether the callback is not to be called now."""
    life = context.get(LIFE)
    if life is None or not (life.is_dead or life.is_paused):
        return False
    life.held.append(handle)  # of a dead one, too: what would be freed now would run its last words
    return True


class LifeHandle(asyncio.Handle):
    """A callback of a life."""

    __slots__ = ()

    def _run(self) -> None:
        if not holds_back(self, self._context):  # type: ignore[attr-defined]
            super()._run()


class LifeTimer(asyncio.TimerHandle):
    """A timer of a life. Of two that are due at one moment, the one that was set first is the first."""

    __slots__ = ("number",)

    def __lt__(self, other: Any) -> bool:
        mine, others = self._when, other._when
        return bool(mine < others or (mine == others and self.number < other.number))

    def _run(self) -> None:
        if not holds_back(self, self._context):  # type: ignore[attr-defined]
            super()._run()


class Stuck(Exception):
    """Nothing is left to do, ever."""


class SimulatedLoop(asyncio.BaseEventLoop):
    """The loop. Its ``network`` makes connections and servers."""

    network: Any

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.timers = 0
        self.errors: list[str] = []  #: what callbacks and tasks raised, and nobody caught
        self._selector = self
        self._clock_resolution = 1e-9
        self.set_exception_handler(self._note)

    def _note(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if error is not None:
            self.errors.append(f"{context['message']}: {error!r}")

    # ------------------------------------------------------------ time

    def time(self) -> float:
        return self.now

    def select(self, timeout: float | None) -> list[Any]:
        """Lets the time pass that BaseEventLoop wants to wait. :raises Stuck: it would wait for ever"""
        if timeout is None:
            raise Stuck
        if timeout > 0:
            self.now = max(self.now, self._scheduled[0]._when)  # type: ignore[attr-defined]
        return []

    def _process_events(self, events: list[Any]) -> None:
        """There are none."""

    def _write_to_self(self) -> None:
        """Nothing waits in another thread."""

    # ------------------------------------------------------------ callbacks

    def _call_soon(self, callback: Callable[..., Any], args: Any, context: Context | None) -> asyncio.Handle:
        handle = LifeHandle(callback, args, self, context)
        self._ready.append(handle)  # type: ignore[attr-defined]
        return handle

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        timer = LifeTimer(when, callback, args, self, context)
        timer.number = self.timers
        self.timers += 1
        heapq.heappush(self._scheduled, timer)  # type: ignore[attr-defined]
        timer._scheduled = True  # type: ignore[attr-defined]
        return timer

    def resume(self, life: Life) -> None:
        """Lets a stopped process go on: first with what has become due meanwhile."""
        life.is_paused = False
        self._ready.extend(life.held)  # type: ignore[attr-defined]
        life.held = []

    # ------------------------------------------------------------ connections

    async def create_connection(self, factory: Any, host: Any = None, port: Any = None, **_: Any) -> Any:  # type: ignore[override]
        return await self.network.connect(factory, host, port)

    async def create_server(self, factory: Any, *, sock: Any, **_: Any) -> Any:  # type: ignore[override]
        return self.network.serve(factory, sock)


class SimulatedBackground:
    """Work beside the loop (:class:`barnabas.log.background.Background`): one after the other, each after a moment."""

    def __init__(self, loop: SimulatedLoop, delay: Callable[[], float]) -> None:
        self._loop = loop
        self._delay = delay
        self._queue: list[tuple[Callable[[], object], Callable[[BaseException | None], object] | None]] = []
        self._closed = False

    def run(self, work: Callable[[], object], done: Callable[[BaseException | None], object] | None = None) -> None:
        self._queue.append((work, done))
        if self._closed:
            self._drain()
        elif len(self._queue) == 1:
            self._loop.call_later(self._delay(), self._next)

    def _next(self) -> None:
        if self._queue:
            self._work(*self._queue[0])
            del self._queue[0]
        if self._queue:
            self._loop.call_later(self._delay(), self._next)

    def _work(self, work: Callable[[], object], done: Callable[[BaseException | None], object] | None) -> None:
        outcome: BaseException | None = None
        try:
            work()
        except Exception as error:
            outcome = error
        if done is not None:
            self._loop.call_soon(done, outcome)

    def _drain(self) -> None:
        while self._queue:
            self._work(*self._queue.pop(0))

    def close(self) -> None:
        self._closed = True
        self._drain()

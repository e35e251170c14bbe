"""An asyncio event loop under a virtual clock: when nothing is left to do, it advances to the next timer.

Knows nothing of nodes, except that each callback belongs to a life, that of the process which has scheduled it.
Callbacks of a dead process are never called, those of a suspended one are called when it is resumed.
"""

import asyncio
import heapq
from collections import deque
from collections.abc import Callable
from contextvars import Context, ContextVar, copy_context
from typing import Any


class Life:
    """One run of one process. :param name: of the node or client, in traces"""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_dead = False
        self.is_paused = False
        self.turns = 0  #: how many of its callbacks were called
        self.held: list[asyncio.Handle] = []
        self.context = copy_context()
        self.context.run(LIFE.set, self)


LIFE: ContextVar[Life | None] = ContextVar("LIFE", default=None)
"""The life of the running code. Tasks and timers inherit it."""


class LifeHandle(asyncio.Handle):
    """A callback, without the debug information of :class:`asyncio.Handle`: a minute has 100,000 of them."""

    __slots__ = ()

    def __init__(
        self, callback: Callable[..., Any], args: Any, loop: asyncio.AbstractEventLoop, context: Context | None
    ) -> None:
        self._callback = callback
        self._args = args
        self._loop = loop
        self._context = copy_context() if context is None else context
        self._cancelled = False
        self._source_traceback = self._repr = None


class LifeTimer(LifeHandle, asyncio.TimerHandle):
    """A callback that is due at a time."""

    __slots__ = ()

    def __init__(
        self,
        when: float,
        callback: Callable[..., Any],
        args: Any,
        loop: asyncio.AbstractEventLoop,
        context: Context | None,
    ) -> None:
        LifeHandle.__init__(self, callback, args, loop, context)
        self._when = when
        self._scheduled = True


RESOLUTION_S = 1e-9
"""The resolution of the clock: closer timers are due together."""


class Stuck(Exception):
    """Nothing is left to do."""


class SimulatedLoop(asyncio.BaseEventLoop):
    """The loop. Its ``network`` makes connections and servers."""

    network: Any
    _ready: "deque[asyncio.Handle]"
    _stopping: bool

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._set_timers = 0
        self.errors: list[str] = []  #: uncaught errors of callbacks and tasks
        self.set_exception_handler(self._note)

    def _note(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if error is not None:
            self.errors.append(f"{context['message']}: {error!r}")

    # ------------------------------------------------------------ time

    def time(self) -> float:
        return self.now

    def _advance(self) -> None:
        """Advances the time to the next timer. :raises Stuck: there is none"""
        timers = self._timers
        while timers and timers[0][2]._cancelled:
            heapq.heappop(timers)
        if not timers:
            raise Stuck
        if timers[0][0] > self.now:
            self.now = timers[0][0]

    def _run_once(self) -> None:
        """Calls ready callbacks and due timers. Timers with the same time are called in the order in which they were
        set.
        """
        ready, timers = self._ready, self._timers
        if not ready and not self._stopping:
            self._advance()
        while timers and timers[0][0] < self.now + RESOLUTION_S:
            timer = heapq.heappop(timers)[2]
            timer._scheduled = False
            ready.append(timer)
        for _ in range(len(ready)):
            handle = ready.popleft()
            if handle._cancelled:
                continue
            context = handle._context
            life = context.get(LIFE)
            if life is not None:
                if life.is_dead or life.is_paused:
                    life.held.append(handle)  # also of a dead one: freeing it would run its finally clauses
                    continue
                life.turns += 1
            try:
                context.run(handle._callback, *handle._args)
            except (SystemExit, KeyboardInterrupt):
                raise
            except BaseException as error:
                self.call_exception_handler({"message": f"Exception in callback {handle!r}", "exception": error})

    def _write_to_self(self) -> None:
        """Does nothing: no other thread waits."""

    # ------------------------------------------------------------ callbacks

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        self._check_closed()
        handle = LifeHandle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self.now + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        self._check_closed()
        timer = LifeTimer(when, callback, args, self, context)
        self._set_timers += 1
        heapq.heappush(self._timers, (when, self._set_timers, timer))
        return timer

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Does nothing: a cancelled timer stays until it would be due."""

    def resume(self, life: Life) -> None:
        """Resumes a suspended process, beginning with its due callbacks."""
        life.is_paused = False
        self._ready.extend(life.held)
        life.held = []

    # ------------------------------------------------------------ connections

    async def create_connection(self, factory: Any, host: Any = None, port: Any = None, **_: Any) -> Any:  # type: ignore[override]
        return await self.network.connect(factory, host, port)

    async def create_server(self, factory: Any, *, sock: Any, **_: Any) -> Any:  # type: ignore[override]
        return self.network.serve(factory, sock)


class SimulatedBackground:
    """Background work (:class:`barnabas.log.background.Background`): in order, each after a short time."""

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

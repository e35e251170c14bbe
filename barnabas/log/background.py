"""One thread for what would hold up the event loop: fsyncs, deletions, checkpoints; in the order they were asked for.

Knows nothing of what the work is.
"""

import queue
import threading
from collections.abc import Callable
from typing import Any, Protocol

Work = Callable[[], object]
Done = Callable[[BaseException | None], object]


class Background(Protocol):
    """Does work off the caller's thread."""

    def run(self, work: Work, done: Done | None = None) -> None:
        """Do ``work`` after what was asked for before; then, in the caller's thread, tell ``done`` how it ended.

        ``done`` gets what ``work`` raised, or None.
        """
        ...

    def close(self) -> None:
        """Return when all work is done; what is asked for later is done at once."""
        ...


class Inline:
    """Does everything at once, in the caller's thread: for tests, and for tools that have no loop."""

    def run(self, work: Work, done: Done | None = None) -> None:
        outcome = _outcome(work)
        if done is not None:
            done(outcome)

    def close(self) -> None:
        """Nothing is left to do."""


class BackgroundThread:
    """A thread that starts with the first work; ``call_soon_threadsafe`` brings the outcome back to the loop."""

    def __init__(self, call_soon_threadsafe: Callable[..., object], name: str = "barnabas-disk") -> None:
        self._call_soon_threadsafe = call_soon_threadsafe
        self._name = name
        self._queue: queue.SimpleQueue[tuple[Work, Done | None] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._closed = False

    def run(self, work: Work, done: Done | None = None) -> None:
        if self._closed:
            Inline().run(work, done)
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
            self._thread.start()
        self._queue.put((work, done))

    def _work(self) -> None:
        while (item := self._queue.get()) is not None:
            work, done = item
            outcome = _outcome(work)
            if done is not None:
                self._tell(done, outcome)

    def _tell(self, *call: Any) -> None:
        try:
            self._call_soon_threadsafe(*call)
        except RuntimeError:
            if not self._closed:  # else the loop is gone, and nobody is left to be told
                raise

    def close(self) -> None:
        self._closed = True
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()
            self._thread = None


def _outcome(work: Work) -> BaseException | None:
    try:
        work()
    except Exception as error:
        return error
    return None

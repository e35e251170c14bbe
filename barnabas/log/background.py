"""One thread for work that would block the event loop: fsyncs, deletions and checkpoints, in the order of the calls.

Knows nothing of what the work is.
"""

import queue
import threading
from collections.abc import Callable
from typing import Any, Protocol

Work = Callable[[], object]
Done = Callable[[BaseException | None], object]


class Background(Protocol):
    """Runs work outside the caller's thread."""

    def run(self, work: Work, done: Done | None = None) -> None:
        """Runs ``work`` after all work that was passed in earlier, then calls ``done`` in the caller's thread.

        :param done: is called with the exception that ``work`` raised, or with None
        """
        ...

    def close(self) -> None:
        """Returns when all work is done. Work that is passed in later runs at once, in the caller's thread."""
        ...


class Inline:
    """Runs all work at once, in the caller's thread. For tests, and for tools without an event loop."""

    def run(self, work: Work, done: Done | None = None) -> None:
        outcome = _outcome(work)
        if done is not None:
            done(outcome)

    def close(self) -> None:
        """Does nothing: no work is left."""


class BackgroundThread:
    """Runs work in a thread, which starts with the first work; ``call_soon_threadsafe`` returns to the loop."""

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
                self._call_in_loop(done, outcome)

    def _call_in_loop(self, *call: Any) -> None:
        try:
            self._call_soon_threadsafe(*call)
        except RuntimeError:
            if not self._closed:  # after close() the loop may be closed, and nothing waits for the outcome
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

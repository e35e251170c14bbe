"""Where the work of cleaning is done: in a thread with a process at its disposal, or at once.

Knows nothing of which logs are cleaned, nor how.
"""

import queue
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from barnabas.clock import Clock
from barnabas.log.cleaning.job import CleanedGroup, CleaningJob, CleaningResult
from barnabas.log.files import Files

if TYPE_CHECKING:
    from barnabas.log.cleaning.process import Cleaner

T = TypeVar("T")
Outcome = CleaningResult | BaseException
OnGroup = Callable[[CleanedGroup], object]


class Stopped(Exception):
    """The broker does not answer any more: it is stopping."""


class Hand(Protocol):
    """Does jobs, one at a time. All but :meth:`ask` is called in the broker's own thread."""

    def begin(self, job: CleaningJob, on_group: OnGroup, done: Callable[[Outcome], object]) -> None:
        """Do a job; ``on_group`` is called where it is done, ``done`` with its outcome in the broker's thread."""
        ...

    def ask(self, question: Callable[[], T]) -> T:
        """From within ``on_group``: have something done in the broker's thread, and wait for what comes of it.

        Raises what it raises; :class:`Stopped`, and then it is not done.
        """
        ...

    def abort(self) -> None:
        """End the job that is under way."""
        ...

    def rest(self) -> None:
        """Give everything back some time soon; no job is under way, and no other will come."""
        ...

    def close(self) -> None:
        """Give everything back; a job that is under way is ended first."""
        ...


class InlineHand:
    """Does everything at once, in the broker's thread: for files in memory, and for tests."""

    def __init__(self, files: Files, clock: Clock) -> None:
        self._files, self._clock = files, clock

    def begin(self, job: CleaningJob, on_group: OnGroup, done: Callable[[Outcome], object]) -> None:
        from barnabas.log.cleaning.process import InThread

        done(_outcome(InThread(self._files, self._clock, lambda seconds: None), job, on_group))

    def ask(self, question: Callable[[], T]) -> T:
        return question()

    def abort(self) -> None:
        """It is over before anybody can say so."""

    def rest(self) -> None:
        """Nothing to give back."""

    def close(self) -> None:
        """Nothing to give back."""


class ThreadHand:
    """Has jobs done in a process of its own, which a thread waits for; ``call_soon_threadsafe`` reaches the loop."""

    def __init__(
        self, call_soon_threadsafe: Callable[..., object], cleaner: "Callable[[], Cleaner] | None" = None
    ) -> None:
        self._call_soon_threadsafe = call_soon_threadsafe
        self._new_cleaner = cleaner
        self._cleaner: Cleaner | None = None
        self._thread: threading.Thread | None = None
        self._asked: queue.SimpleQueue[tuple[Any, BaseException | None]] | None = None
        self._closed = False

    def begin(self, job: CleaningJob, on_group: OnGroup, done: Callable[[Outcome], object]) -> None:
        cleaner = self._cleaner
        if cleaner is None:
            cleaner = self._cleaner = self._make()

        def work() -> None:
            outcome = _outcome(cleaner, job, on_group)
            try:
                self._call_soon_threadsafe(done, outcome)
            except RuntimeError:
                if not self._closed:  # else the loop is gone, and nobody is left to be told
                    raise

        self._thread = threading.Thread(target=work, name="barnabas-cleaner", daemon=True)
        self._thread.start()

    def _make(self) -> "Cleaner":
        if self._new_cleaner is not None:
            return self._new_cleaner()
        from barnabas.log.cleaning.process import Worker  # a broker without compacted topics never needs it

        return Worker()

    def ask(self, question: Callable[[], T]) -> T:
        answer: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()
        self._asked = answer
        if self._closed:
            raise Stopped

        def reply() -> None:
            try:
                answer.put((question(), None))
            except BaseException as error:
                answer.put((None, error))

        self._call_soon_threadsafe(reply)
        given, error = answer.get()
        if error is not None:
            raise error
        found: T = given
        return found

    def abort(self) -> None:
        if self._cleaner is not None:
            self._cleaner.abort()

    def rest(self) -> None:
        threading.Thread(target=self.close, name="barnabas-cleaner-end", daemon=True).start()

    def close(self) -> None:
        self._closed = True
        if self._asked is not None:
            self._asked.put((None, Stopped()))  # nobody is left to answer; a later answer is not looked at
        if self._cleaner is not None:
            self._cleaner.close()
        if self._thread is not None:
            self._thread.join()


def _outcome(cleaner: "Cleaner", job: CleaningJob, on_group: OnGroup) -> Outcome:
    try:
        return cleaner.run(job, on_group)
    except BaseException as error:
        return error

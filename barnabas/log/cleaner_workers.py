"""Workers of the log cleaner: run cleaning jobs in a thread that drives a process, or inline.

Knows nothing of which logs are cleaned, nor how.
"""

import queue
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

from barnabas.clock import Clock
from barnabas.log.files import Files

if TYPE_CHECKING:
    from barnabas.log.cleaning.job import CleanedGroup, CleaningJob, CleaningResult
    from barnabas.log.cleaning.process import Cleaner

T = TypeVar("T")
Outcome: TypeAlias = "CleaningResult | BaseException"
OnGroup = Callable[["CleanedGroup"], object]


class Stopped(Exception):
    """The broker is shutting down and does not run calls from the worker any more."""


class CleanerWorker(Protocol):
    """Runs jobs, one at a time. All methods except :meth:`call_in_loop` are called in the event loop's thread."""

    def start(self, job: "CleaningJob", on_group: OnGroup, done: Callable[[Outcome], object]) -> None:
        """Starts a job.

        :param on_group: is called with each cleaned group, in the worker's thread
        :param done: is called with the result or the error, in the event loop's thread
        """
        ...

    def call_in_loop(self, function: Callable[[], T]) -> T:
        """Calls ``function`` in the event loop's thread and returns its result. Called from ``on_group``.

        :raises Stopped: the broker is shutting down; the function is then not called
        """
        ...

    def abort(self) -> None:
        """Aborts the current job."""
        ...

    def release(self) -> None:
        """Frees the worker's resources without waiting for that. No job may be running, and none may follow."""
        ...

    def close(self) -> None:
        """Aborts the current job, and frees the worker's resources."""
        ...


class InlineWorker:
    """Runs jobs in the event loop's thread. For files in memory, and for tests."""

    def __init__(self, files: Files, clock: Clock) -> None:
        self._files, self._clock = files, clock

    def start(self, job: "CleaningJob", on_group: OnGroup, done: Callable[[Outcome], object]) -> None:
        from barnabas.log.cleaning.process import InlineCleaner

        done(_run(InlineCleaner(self._files, self._clock, lambda seconds: None), job, on_group))

    def call_in_loop(self, function: Callable[[], T]) -> T:
        return function()

    def abort(self) -> None:
        """Does nothing: :meth:`start` returns when the job is done."""

    def release(self) -> None:
        """Does nothing."""

    def close(self) -> None:
        """Does nothing."""


class ThreadWorker:
    """Runs jobs in a separate process, for which a thread waits. ``call_soon_threadsafe`` reaches the event loop."""

    def __init__(
        self, call_soon_threadsafe: Callable[..., object], new_cleaner: "Callable[[], Cleaner] | None" = None
    ) -> None:
        self._call_soon_threadsafe = call_soon_threadsafe
        self._new_cleaner = new_cleaner
        self._cleaner: Cleaner | None = None
        self._thread: threading.Thread | None = None
        self._result: queue.SimpleQueue[tuple[Any, BaseException | None]] | None = None
        self._closed = False

    def start(self, job: "CleaningJob", on_group: OnGroup, done: Callable[[Outcome], object]) -> None:
        cleaner = self._cleaner
        if cleaner is None:
            cleaner = self._cleaner = self._create_cleaner()

        def work() -> None:
            outcome = _run(cleaner, job, on_group)
            try:
                self._call_soon_threadsafe(done, outcome)
            except RuntimeError:
                if not self._closed:  # after close() the loop may be closed, and nothing waits for the outcome
                    raise

        self._thread = threading.Thread(target=work, name="barnabas-cleaner", daemon=True)
        self._thread.start()

    def _create_cleaner(self) -> "Cleaner":
        if self._new_cleaner is not None:
            return self._new_cleaner()
        from barnabas.log.cleaning.process import ProcessCleaner  # not needed by a broker without compacted topics

        return ProcessCleaner()

    def call_in_loop(self, function: Callable[[], T]) -> T:
        result: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()
        self._result = result
        if self._closed:
            raise Stopped

        def call() -> None:
            try:
                result.put((function(), None))
            except BaseException as error:
                result.put((None, error))

        self._call_soon_threadsafe(call)
        value, error = result.get()
        if error is not None:
            raise error
        returned: T = value
        return returned

    def abort(self) -> None:
        if self._cleaner is not None:
            self._cleaner.abort()

    def release(self) -> None:
        threading.Thread(target=self.close, name="barnabas-cleaner-end", daemon=True).start()

    def close(self) -> None:
        self._closed = True
        if self._result is not None:
            self._result.put((None, Stopped()))  # the loop will not run the call; a later result is not read
        if self._cleaner is not None:
            self._cleaner.close()
        if self._thread is not None:
            self._thread.join()


def _run(cleaner: "Cleaner", job: "CleaningJob", on_group: OnGroup) -> Outcome:
    try:
        return cleaner.run(job, on_group)
    except BaseException as error:
        return error

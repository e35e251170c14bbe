"""The broker's end of the pipes to a process that cleans logs.

Knows nothing of which logs there are, nor of what becomes of the new segments.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any, Final, Protocol

from barnabas.clock import Clock
from barnabas.errors import CorruptMessage
from barnabas.log.cleaning.cleaning import clean
from barnabas.log.cleaning.job import CleanedGroup, CleaningFailed, CleaningJob, CleaningResult, Statistics
from barnabas.log.cleaning.output import CLEANED_SUFFIX
from barnabas.log.files import DiskFiles, Files

OnGroup = Callable[[CleanedGroup], object]

PATIENCE: Final = 10.0  # seconds that a worker may take to end by itself


class CleaningAborted(Exception):
    """The job was called off; the log is as it was, but for the groups that were given."""


class WorkerDied(Exception):
    """The process ended without an answer: killed by hand, or for want of memory. A new one may fare better."""


class Cleaner(Protocol):
    """What does jobs, one at a time."""

    def run(self, job: CleaningJob, on_group: OnGroup) -> CleaningResult:
        """Do the job, in the calling thread's time. ``on_group`` has renamed a group's files when it returns.

        On any failure no ``.cleaned`` file is left behind, and what was given by then stays good.

        Raises OSError with its number and file, CorruptMessage where the log is not what it was, CleaningFailed,
        CleaningAborted after :meth:`abort`, WorkerDied, and what ``on_group`` raises.
        """
        ...

    def abort(self) -> None:
        """End the job that runs, if one does, in whichever thread; returns at once."""
        ...

    def close(self) -> None:
        """Give everything back. A job that runs is aborted, and no other can follow."""
        ...


class InThread:
    """Does jobs in the thread that brings them: for files in memory, and for tests."""

    def __init__(self, files: Files, clock: Clock, sleep: Callable[[float], object]) -> None:
        self._files, self._clock, self._sleep = files, clock, sleep
        self._aborted = self._closed = False

    def run(self, job: CleaningJob, on_group: OnGroup) -> CleaningResult:
        self._aborted = self._closed
        try:
            passing = clean(self._files, job, self._clock, sleep=self._sleep, go_on=self._check)
            while True:
                self._check()
                try:
                    on_group(next(passing))
                except StopIteration as end:
                    result: CleaningResult = end.value
                    return result
        except BaseException:
            delete_cleaned(self._files, job.directory)
            raise

    def _check(self) -> None:
        if self._aborted:
            raise CleaningAborted

    def abort(self) -> None:
        self._aborted = True

    def close(self) -> None:
        self._closed = self._aborted = True


class Worker:
    """Does jobs in a process, which is started when the first one comes, and again when it died."""

    def __init__(self, command: list[str] | None = None, environment: dict[str, str] | None = None) -> None:
        """``command`` starts another program than the worker, for tests."""
        self._command = command if command is not None else worker_command()
        self._environment = environment if environment is not None else worker_environment()
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._running = self._aborted = self._closed = False

    @property
    def pid(self) -> int | None:
        """Of the process, None while there is none."""
        process = self._process
        return process.pid if process is not None else None

    def run(self, job: CleaningJob, on_group: OnGroup) -> CleaningResult:
        with self._lock:
            if self._closed:
                raise CleaningAborted
            process = self._start()
            self._running, self._aborted = True, False
        try:
            return self._converse(process, job, on_group)
        except BaseException as error:
            # A worker that answered with an error waits for the next job. In all other cases it may still be writing.
            if not isinstance(error, Answered):
                self._end(process, kill=True)
            delete_cleaned(DiskFiles(), job.directory)
            if self._aborted:
                raise CleaningAborted from None
            if isinstance(error, Answered):
                raise error.error from None
            raise
        finally:
            with self._lock:
                self._running = False

    def _converse(self, process: "subprocess.Popen[bytes]", job: CleaningJob, on_group: OnGroup) -> CleaningResult:
        assert process.stdin is not None and process.stdout is not None
        with contextlib.suppress(BrokenPipeError):  # it died; the next line says how
            process.stdin.write(json.dumps(job.to_json()).encode() + b"\n")
            process.stdin.flush()
        for line in process.stdout:
            if not line.endswith(b"\n"):
                break
            ((kind, what),) = json.loads(line).items()
            if kind == "group":
                on_group(CleanedGroup(*what))
            elif kind == "result":
                next_dirty_offset, statistics = what
                return CleaningResult(next_dirty_offset, Statistics(*statistics))
            else:
                raise Answered(error_of(what))
        raise WorkerDied(f"The cleaner's process {process.pid} {how_it_ended(process.wait())}.")

    def abort(self) -> None:
        with self._lock:
            if self._running and self._process is not None:
                self._aborted = True
                self._process.kill()

    def close(self) -> None:
        self._closed = True
        self.abort()
        with self._lock:
            process = self._process
        if process is not None and not self._running:
            self._end(process, kill=False)

    def _start(self) -> "subprocess.Popen[bytes]":
        process = self._process
        if process is None or process.poll() is not None:
            if process is not None:
                self._forget(process)
            try:
                process = self._process = subprocess.Popen(
                    self._command, env=self._environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
                )
            except OSError as error:  # want of memory or of processes: no disk has failed
                self._process = None
                raise WorkerDied(f"No process could be started to clean logs: {error}") from error
        return process

    def _end(self, process: "subprocess.Popen[bytes]", *, kill: bool) -> None:
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        if kill:
            process.kill()
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        with self._lock:
            self._forget(process)

    def _forget(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdin is not None and process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        process.stdout.close()
        if self._process is process:
            self._process = None


class Answered(Exception):
    """The worker told what went wrong."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


def error_of(told: dict[str, Any]) -> Exception:
    """The exception that a worker's answer tells of."""
    if told["kind"] == "OSError":
        return OSError(told["errno"], told["message"], told["path"])
    return {"CorruptMessage": CorruptMessage, "CleaningFailed": CleaningFailed}[told["kind"]](told["message"])


def how_it_ended(code: int) -> str:
    """An exit code in words."""
    return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"


def delete_cleaned(files: Files, directory: str) -> None:
    """Delete what is left of a job that failed; what cannot be deleted now is at the next start."""
    with contextlib.suppress(OSError):
        for name in files.sizes(directory):
            if name.endswith(CLEANED_SUFFIX):
                files.delete(f"{directory}/{name}")


def worker_command() -> list[str]:
    """This interpreter, told not to look for modules where the broker happens to have been started."""
    return [sys.executable, "-P", "-m", "barnabas.log.cleaning.worker"]


def worker_environment() -> dict[str, str]:
    """The broker's, with the place of this package, by which way ever the broker found it."""
    import barnabas

    root = os.path.dirname(os.path.dirname(os.path.abspath(barnabas.__file__)))
    others = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{others}" if others else root}

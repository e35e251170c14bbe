"""Runs cleaning jobs: in the calling thread, or in a process to which the broker is connected by two pipes.

Knows nothing of which logs there are, nor of how the new segments are swapped in.
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

STOP_TIMEOUT_S: Final = 10.0
"""How long the process may take to end before it is killed."""


class CleaningAborted(Exception):
    """The job was aborted. The log is unchanged, except for the groups that were swapped in."""


class CleanerDied(Exception):
    """The process ended without an answer: it was killed, or had too little memory. A retry may succeed."""


class Cleaner(Protocol):
    """Runs jobs, one at a time."""

    def run(self, job: CleaningJob, on_group: OnGroup) -> CleaningResult:
        """Runs a job, and returns when it is done. After an error no ``.cleaned`` file is left.

        :param on_group: is called with each group, and renames its files before it returns
        :raises OSError: the disk fails
        :raises CorruptMessage: the log is corrupt
        :raises CleaningFailed: the log cannot be cleaned for another reason
        :raises CleaningAborted: after :meth:`abort`
        :raises CleanerDied: the process ended
        """
        ...

    def abort(self) -> None:
        """Aborts the current job, if there is one, from any thread. Returns at once."""
        ...

    def close(self) -> None:
        """Aborts the current job and ends the process. No job can follow."""
        ...


class InlineCleaner:
    """Runs jobs in the calling thread. For files in memory, and for tests."""

    def __init__(self, files: Files, clock: Clock, sleep: Callable[[float], object]) -> None:
        self._files, self._clock, self._sleep = files, clock, sleep
        self._aborted = self._closed = False

    def run(self, job: CleaningJob, on_group: OnGroup) -> CleaningResult:
        self._aborted = self._closed
        try:
            passing = clean(self._files, job, self._clock, sleep=self._sleep, check_aborted=self._check)
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


class ProcessCleaner:
    """Runs jobs in a process. It is started with the first job, and again if it has died."""

    def __init__(self, command: list[str] | None = None, environment: dict[str, str] | None = None) -> None:
        """
        :param command: starts another program than :mod:`barnabas.log.cleaning.worker`
        """
        self._command = command if command is not None else worker_command()
        self._environment = environment if environment is not None else worker_environment()
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._running = self._aborted = self._closed = False

    @property
    def pid(self) -> int | None:
        """The process's id; None while there is no process."""
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
            # After a reported error the process waits for the next job. After any other it may still be writing.
            if not isinstance(error, ReportedError):
                self._end(process, kill=True)
            delete_cleaned(DiskFiles(), job.directory)
            if self._aborted:
                raise CleaningAborted from None
            if isinstance(error, ReportedError):
                raise error.error from None
            raise
        finally:
            with self._lock:
                self._running = False
                is_left = self._closed and self._process is process
            if is_left:  # it was closed between the process's answer and here
                self._end(process, kill=True)

    def _converse(self, process: "subprocess.Popen[bytes]", job: CleaningJob, on_group: OnGroup) -> CleaningResult:
        assert process.stdin is not None and process.stdout is not None
        with contextlib.suppress(BrokenPipeError):  # the process died; the end of its output follows
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
                raise ReportedError(error_of(what))
        raise CleanerDied(f"The cleaner's process {process.pid} {exit_reason(process.wait())}.")

    def abort(self) -> None:
        with self._lock:
            if self._running and self._process is not None:
                self._aborted = True
                self._process.kill()

    def close(self) -> None:
        self._closed = True
        self.abort()
        with self._lock:
            process = None if self._running else self._process  # else the job's thread ends it
        if process is not None:
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
            except OSError as error:  # too little memory or too many processes: the disk has not failed
                self._process = None
                raise CleanerDied(f"Cannot start a process to clean logs: {error}") from error
        return process

    def _end(self, process: "subprocess.Popen[bytes]", *, kill: bool) -> None:
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        if kill:
            process.kill()
        try:
            process.wait(STOP_TIMEOUT_S)
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


class ReportedError(Exception):
    """The process has answered with an error."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


def error_of(fields: dict[str, Any]) -> Exception:
    """Returns the exception for an error that the process has answered with."""
    if fields["kind"] == "OSError":
        return OSError(fields["errno"], fields["message"], fields["path"])
    return {"CorruptMessage": CorruptMessage, "CleaningFailed": CleaningFailed}[fields["kind"]](fields["message"])


def exit_reason(code: int) -> str:
    """Returns an exit code in words."""
    return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"


def delete_cleaned(files: Files, directory: str) -> None:
    """Deletes the files of a failed job. The next start deletes those that cannot be deleted now."""
    with contextlib.suppress(OSError):
        for name in files.sizes(directory):
            if name.endswith(CLEANED_SUFFIX):
                files.delete(f"{directory}/{name}")


def worker_command() -> list[str]:
    """Returns the command of the process. ``-P`` keeps the current directory out of the module path."""
    return [sys.executable, "-P", "-m", "barnabas.log.cleaning.worker"]


def worker_environment() -> dict[str, str]:
    """Returns the broker's environment with this package's directory in ``PYTHONPATH``."""
    import barnabas

    root = os.path.dirname(os.path.dirname(os.path.abspath(barnabas.__file__)))
    others = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{others}" if others else root}

"""``python -m barnabas.log.cleaning.worker``: the process that cleans logs, apart from the broker's interpreter.

Knows nothing of the broker but two pipes. Jobs come in on standard input, one JSON text per line. For each job it
writes lines to standard output: ``{"group": [...]}`` for each group that is fsynced, then ``{"result": [...]}`` or
``{"error": {...}}``. The process ends when its input ends, also in the middle of a job.
"""

import gc
import json
import os
import select
import signal
import sys
from collections.abc import Callable
from typing import Any, BinaryIO, Final

from barnabas.clock import SystemClock
from barnabas.errors import CorruptMessage
from barnabas.log.cleaning.cleaning import clean
from barnabas.log.cleaning.job import CleanedGroup, CleaningFailed, CleaningJob, CleaningResult
from barnabas.log.files import DiskFiles

NICENESS: Final = 10
"""Where broker and cleaner compete for the processor, the cleaner gets about a tenth of it."""


class Orphaned(Exception):
    """The broker has closed the pipe."""


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends Ctrl-C to this process too; the broker ends it
    os.nice(NICENESS)
    gc.disable()  # there are no reference cycles, and a collection would visit millions of keys
    serve(sys.stdin.buffer, sys.stdout.buffer)


def serve(jobs: BinaryIO, answers: BinaryIO) -> None:
    """Runs jobs until the input ends."""
    poll = select.poll()
    poll.register(jobs, select.POLLIN | select.POLLHUP)

    def wait(seconds: float = 0) -> None:
        # The broker sends no job while one runs, so anything to read is the end of the input.
        if poll.poll(min(seconds, 1e6) * 1000):
            raise Orphaned

    def answer(kind: str, what: Any) -> None:
        answers.write(json.dumps({kind: what}).encode() + b"\n")
        answers.flush()

    files = DiskFiles()
    try:
        while line := jobs.readline():
            kind, what = run(files, line, wait, lambda group: answer("group", group))
            answer(kind, what)
    except (Orphaned, BrokenPipeError):
        return


def run(
    files: DiskFiles, line: bytes, wait: Callable[..., None], on_group: Callable[[CleanedGroup], None]
) -> tuple[str, Any]:
    """Runs a job. Returns the kind and the content of its last line.

    :param wait: sleeps, and raises Orphaned when the broker has closed the pipe
    """
    try:
        job = CleaningJob.from_json(json.loads(line))
        passing = clean(files, job, SystemClock(), sleep=wait, check_aborted=wait)
        while True:
            try:
                on_group(next(passing))
            except StopIteration as end:
                result: CleaningResult = end.value
                return "result", result
    except (Orphaned, BrokenPipeError):
        raise
    except OSError as error:
        return "error", {"kind": "OSError", "message": error.strerror, "errno": error.errno, "path": error.filename}
    except (CorruptMessage, CleaningFailed) as error:
        return "error", {"kind": type(error).__name__, "message": str(error)}
    except Exception:
        import traceback

        return "error", {"kind": "CleaningFailed", "message": traceback.format_exc()}


if __name__ == "__main__":
    main()

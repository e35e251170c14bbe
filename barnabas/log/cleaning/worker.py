"""``python -m barnabas.log.cleaning.worker``: cleans logs in a process of its own, away from the broker's interpreter.

Knows nothing of the broker but the two pipes to it: jobs come in on standard input, one JSON text a line, and for each
job lines go out on standard output: ``{"group": [...]}`` for each group that is on the disk, then ``{"result": [...]}``
or ``{"error": {...}}``. It ends when its input does, also in the middle of a job: the broker is gone, or wants it gone.
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
"""How far the worker stands back for the broker where both want the processor: it gets a tenth, not nothing."""


class Orphaned(Exception):
    """Nobody waits for the rest of this job."""


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to all processes of a terminal; the broker ends this one
    os.nice(NICENESS)
    gc.disable()  # there are no cycles here, but millions of keys to look through for some
    serve(sys.stdin.buffer, sys.stdout.buffer)


def serve(jobs: BinaryIO, answers: BinaryIO) -> None:
    """Do the jobs that come in, until there is an end to them."""
    poll = select.poll()
    poll.register(jobs, select.POLLIN | select.POLLHUP)

    def wait(seconds: float = 0) -> None:
        # While a job runs, the other side sends no other. What there is to read is the end.
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
    """Do a job; how it ended, as a line says it. ``wait`` raises Orphaned when nobody wants it any more."""
    try:
        job = CleaningJob.from_json(json.loads(line))
        passing = clean(files, job, SystemClock(), sleep=wait, go_on=wait)
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

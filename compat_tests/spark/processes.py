"""Programs started by tests: they can import this repository, and end with the test at the latest.

Knows nothing of what they do.
"""

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from compat_tests import running

ROOT = Path(__file__).parents[2]


def environment(**more: str) -> dict[str, str]:
    """Returns the environment of a broker, with this repository on Python's path."""
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**running.environment(), "PYTHONPATH": path, **more}


@contextlib.contextmanager
def started(*words: str, seconds: float, **options: Any) -> "Iterator[subprocess.Popen[str]]":
    """Runs a command in its own process group, which is killed at the end of the block, or after the timeout."""
    with subprocess.Popen(words, text=True, env=environment(), process_group=0, **options) as process:
        late = threading.Timer(seconds, _kill, [process])  # readers of its output get the end of the stream
        late.start()
        try:
            yield process
        finally:
            late.cancel()
            _kill(process)


def _kill(process: "subprocess.Popen[str]") -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)

"""Programs that tests start beside themselves: they find what is in this repository, and never outlive the test.

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
    """What a broker is started with, this repository on the path of Python, and more."""
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**running.environment(), "PYTHONPATH": path, **more}


@contextlib.contextmanager
def started(*words: str, seconds: float, **options: Any) -> "Iterator[subprocess.Popen[str]]":
    """A command in a process group of its own, which is killed when the block ends, or when its time is over."""
    with subprocess.Popen(words, text=True, env=environment(), process_group=0, **options) as process:
        late = threading.Timer(seconds, _kill, [process])  # whoever reads what it says comes to the end of it
        late.start()
        try:
            yield process
        finally:
            late.cancel()
            _kill(process)


def _kill(process: "subprocess.Popen[str]") -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)

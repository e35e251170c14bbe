"""A clock that is set while its process runs."""

import subprocess
import sys
import time

import pytest

from tests.history import clocks
from tests.history.clocks import Clock

PROGRAM = "import sys, time\nfor line in sys.stdin:\n    print(time.time(), time.monotonic(), flush=True)"


def test_a_clock_is_set_and_the_monotonic_one_is_not(tmp_path):
    if clocks.library() is None:
        pytest.skip("libfaketime is not here")
    clock = Clock(tmp_path / "clock")
    command = [*clock.prefix, sys.executable, "-c", PROGRAM]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        for ahead in (0, 300, -5):
            clock.set(ahead)
            before = time.time(), time.monotonic()
            process.stdin.write("\n")
            process.stdin.flush()
            shown, monotonic = map(float, process.stdout.readline().split())
            after = time.time(), time.monotonic()
            assert before[0] + ahead - 4 < shown < after[0] + ahead + 4
            assert before[1] - 4 < monotonic < after[1] + 4
        process.stdin.close()

"""Free ports: each is given once."""

import subprocess
import sys

from compat_tests.ports import PORTS, free_port, reserve, reserved

RESERVE = "import sys; from compat_tests.ports import reserve; reserve(int(sys.argv[1]))"


def test_each_is_given_once() -> None:
    before = set(reserved())
    given = [free_port() for _ in range(50)]
    assert len({*given, *before}) == 50 + len(before)
    assert set(given) <= set(PORTS)


def test_another_process_cannot_reserve_it() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", RESERVE, str(free_port())], capture_output=True, text=True, check=False
    )
    assert "BlockingIOError" in ended.stderr


def test_the_end_of_a_process_frees_its_ports() -> None:
    port = free_port_of_another()
    reserve(port)
    assert port in reserved()


def free_port_of_another() -> int:
    """Returns a port that a process, which has ended, had reserved."""
    command = [sys.executable, "-c", "from compat_tests.ports import free_port; print(free_port())"]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

"""The commands and snippets of the documents, run in each page's order.

Knows the pages only as a reader does. In a ``console`` block a line with ``$`` is a command; the lines under it
are its output, in which ``…`` matches anything. A ``python`` block is a program.
"""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from compat_tests.groups.conftest import QUICK
from compat_tests.hanging import leave_transactions
from compat_tests.running import Running

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"^```(?P<kind>python|console)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
ADDRESS = re.compile(r"\b(?:127\.0\.0\.1|localhost):9092\b")
NOT_HERE = (". .venv/bin/activate", "pip install", "barnabas serve")
"""The prepared environment, and broker."""


def blocks(page: str) -> list[tuple[str, str]]:
    found = [(match["kind"], match["body"]) for match in BLOCK.finditer((ROOT / page).read_text())]
    assert found, f"nothing to run in {page}"
    return found


def commands(body: str) -> Iterator[tuple[str, list[str]]]:
    """Returns each command of a console block, and its expected output."""
    for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
        command, *printed = part.rstrip("\n").split("\n")
        yield command.partition("  #")[0].strip(), printed


def shapes(lines: list[str]) -> list[str]:
    """Returns lines without what differs from day to day (milliseconds since 1970), and without trailing blanks."""
    return [re.sub(r"\b1\d{12}\b", "now", line).rstrip() for line in lines]


class Reader:
    """A reader who types the page's commands."""

    def __init__(self, home: Path, broker: Running, *, timeout: float = 60) -> None:
        self.home, self.broker, self.runs, self.timeout = home, broker, 0, timeout
        shim = home / "barnabas"
        shim.write_text(
            '#!/bin/sh\nverb=$1; shift\n[ "$verb" != pipeline ] || { verb="$verb $1"; shift; }\n'
            '[ "$verb" = explain ] || set -- --bootstrap-server "$BOOTSTRAP" "$@"\n'
            f'exec {sys.executable} -m barnabas $verb "$@"\n'
        )
        shim.chmod(0o755)

    def type(self, command: str, printed: list[str]) -> None:
        if command == "make run":
            self.runs += 1
            if self.runs > 1:  # the page says to stop it
                self.broker.stop()
                self.broker.start()
        elif not command.startswith(NOT_HERE):
            path = f"{self.home}{os.pathsep}{os.environ['PATH']}"
            environment = {**os.environ, "PATH": path, "BOOTSTRAP": self.broker.bootstrap, "COLUMNS": "120"}
            ran = subprocess.run(
                ["bash", "-o", "pipefail", "-c", command],
                env=environment,
                cwd=self.home,
                capture_output=True,
                text=True,
                timeout=self.timeout,
                check=False,
            )
            assert ran.returncode == 0, f"{command}\n{ran.stderr}"
            if printed != ["…"]:
                found, wanted = shapes(ran.stdout.splitlines()), shapes(printed)
                assert len(found) == len(wanted), f"{command}\n{ran.stdout}"
                for one, other in zip(found, wanted, strict=True):
                    anything = re.escape(other).replace("…", ".*")
                    assert re.fullmatch(anything, one), f"{command}: {one!r} instead of {other!r}"

    def paste(self, program: str) -> None:
        run_program(ADDRESS.sub(self.broker.bootstrap, program), self.home)


def run_program(program: str, home: Path, *arguments: str) -> None:
    command = [sys.executable, "-W", "ignore", *(arguments or ("-c", program))]
    ran = subprocess.run(command, cwd=home, capture_output=True, text=True, timeout=90, check=False)
    assert ran.returncode == 0, f"{program}\n{ran.stdout}\n{ran.stderr}"


def test_the_tutorial(own_broker: Callable[..., Running], tmp_path: Path) -> None:
    reader = Reader(tmp_path, own_broker())
    for kind, body in blocks("docs/tutorial/first-steps.md"):
        if kind == "python":
            reader.paste(body)
        else:
            for command, printed in commands(body):
                reader.type(command, printed)
    assert reader.runs == 2


def test_the_readme_snippet(own_broker: Callable[..., Running], tmp_path: Path) -> None:
    reader = Reader(tmp_path, own_broker())
    snippets = [body for kind, body in blocks("README.md") if kind == "python" and ADDRESS.search(body)]
    assert snippets
    for snippet in snippets:
        reader.paste(snippet)


def test_how_to_find_and_end_transactions(own_broker: Callable[..., Running], tmp_path: Path) -> None:
    broker = own_broker({"node.id": "1", "transaction.partition.verification.enable": "false"})
    leave_transactions(int(broker.bootstrap.rpartition(":")[2]))
    reader = Reader(tmp_path, broker)
    for _, body in blocks("docs/how-to/find-and-end-transactions.md"):
        for command, printed in commands(body):
            reader.type(command, printed)


def test_how_to_choose_features(own_broker: Callable[..., Running], tmp_path: Path) -> None:
    reader = Reader(tmp_path, own_broker(features={"transaction.version": 1}))
    for kind, body in blocks("docs/how-to/features.md"):
        if kind == "python":
            run_program(body, tmp_path)
        else:
            for command, printed in commands(body):
                reader.type(command, printed)


@pytest.mark.parametrize("page", ["use-the-consumer-protocol", "use-share-groups"])
def test_how_to_use_groups_of_the_newer_kinds(own_broker: Callable[..., Running], tmp_path: Path, page: str) -> None:
    reader = Reader(tmp_path, own_broker(QUICK))
    for kind, body in blocks(f"docs/how-to/{page}.md"):
        if kind == "python":
            reader.paste(body)
        else:
            for command, printed in commands(body):
                reader.type(command, printed)


@pytest.mark.parametrize("name", ["faults", "proxy", "turn-the-clock"])
def test_how_to_test_what_is_rare(tmp_path: Path, name: str) -> None:
    page = "\n\n".join(body for _, body in blocks(f"docs/how-to/{name}.md"))
    (tmp_path / "test_page.py").write_text(page)
    run_program(page, tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_page.py")


def test_how_to_use_it_in_tests(tmp_path: Path) -> None:
    pages = [body for kind, body in blocks("docs/how-to/use-in-tests.md") if kind == "python"]
    tests = [body for body in pages if "def test_" in body]
    fixtures = [body for body in pages if "@pytest.fixture" in body]
    assert tests
    assert fixtures
    (tmp_path / "conftest.py").write_text("\n\n".join(fixtures))
    (tmp_path / "test_page.py").write_text("\n\n".join(tests))
    run_program("the page's tests", tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_page.py")
    for program in pages:
        if program not in tests and program not in fixtures:
            run_program(program, tmp_path)

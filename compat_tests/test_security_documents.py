"""The how-to pages of security, run in order: files, brokers, commands and programs.

A block of ``properties`` is the file that its first line names. Knows the pages only as a reader does.
"""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from compat_tests.ports import free_port
from compat_tests.test_documents import ROOT, commands, run_program, shapes

BLOCK = re.compile(r"^```(?P<kind>python|console|properties)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
ADDRESS = re.compile(r"\blocalhost:909[23]\b")
START_SECONDS = 30.0


class Reader:
    """A reader who follows the page, in a directory."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.port = free_port()
        shim = home / "barnabas"
        shim.write_text(f'#!/bin/sh\nexec {sys.executable} -m barnabas "$@"\n')
        shim.chmod(0o755)
        path = f"{home}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self.environment = {**os.environ, "PATH": path, "COLUMNS": "120", "PYTHONPATH": str(ROOT)}
        self.broker: subprocess.Popen[bytes] | None = None

    def do(self, kind: str, body: str) -> None:
        body = ADDRESS.sub(f"localhost:{self.port}", body)
        if kind == "properties":
            name = body.partition("\n")[0].removeprefix("# ")
            (self.home / name).write_text(body)
        elif kind == "python":
            run_program(body, self.home)
        else:
            for command, printed in commands(body):
                self.type(command, printed)

    def type(self, command: str, printed: list[str]) -> None:
        if command.startswith("pip install"):
            return
        if command.startswith("barnabas serve"):
            self.serve(command)
            return
        ran = subprocess.run(["bash", "-c", command], env=self.environment, cwd=self.home, capture_output=True,
                             text=True, timeout=60, check=False)  # fmt: skip
        assert ran.returncode == 0, f"{command}\n{ran.stdout}{ran.stderr}"
        if printed and printed != ["…"]:
            assert shapes(ran.stdout.splitlines()) == shapes(printed), f"{command}\n{ran.stdout}"

    def serve(self, command: str) -> None:
        log = self.home / "broker.log"
        with log.open("wb") as output:
            self.broker = subprocess.Popen(
                command.split(), env=self.environment, cwd=self.home, stdout=output, stderr=output
            )
        deadline = time.monotonic() + START_SECONDS
        while b"listens on" not in log.read_bytes():
            assert self.broker.poll() is None and time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)

    def leave(self) -> None:
        if self.broker is not None:
            self.broker.terminate()
            self.broker.wait(30)


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    reader = Reader(tmp_path)
    yield reader
    reader.leave()


@pytest.mark.parametrize("page", ["tls", "users-and-passwords", "who-may-do-what", "slow-a-client-down"])
def test_a_page(reader: Reader, page: str) -> None:
    found = [(match["kind"], match["body"]) for match in BLOCK.finditer((ROOT / f"docs/how-to/{page}.md").read_text())]
    assert found
    for kind, body in found:
        reader.do(kind, body)

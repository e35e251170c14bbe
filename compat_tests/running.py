"""A broker under test, in its own process: started as by a user, stopped cleanly or killed, restarted.

Knows nothing of how Barnabas works inside: only its command line, its output, and its port.
"""

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

ADDRESS = re.compile(r"127\.0\.0\.1:([1-9]\d*)")
START_SECONDS = 30.0
STOP_SECONDS = 30.0

A_DAY_MS = "86400000"

ALONE = {
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
    "log.retention.check.interval.ms": A_DAY_MS,
    "log.initial.task.delay.ms": A_DAY_MS,
}
"""Configs of a broker without peers, with short waits for tests; records with old timestamps are retained."""


class Running(Protocol):
    """A broker at ``bootstrap``; it keeps its port and its data after a restart."""

    @property
    def bootstrap(self) -> str: ...
    def start(self) -> object: ...
    def stop(self) -> None: ...
    def kill(self) -> None: ...
    def complaints(self) -> list[str]: ...


class Elsewhere:
    """An external broker, named by ``BARNABAS_COMPAT_BOOTSTRAP``: tests cannot stop it."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def start(self) -> None:
        raise RuntimeError("this broker is not ours to start")

    def stop(self) -> None:
        raise RuntimeError("this broker is not ours to stop")

    kill = stop

    def complaints(self) -> list[str]:
        return []


class BarnabasProcess:
    """``python -m barnabas serve`` on 127.0.0.1 with its data and its output in one folder.

    ``BARNABAS_COMPAT_PYTHON`` names the interpreter, so that an installed wheel can be tested; the process starts in
    ``home``, where no source tree can replace the package. ``features`` are the levels of a new data directory, where
    these are not the newest.
    """

    def __init__(
        self, home: Path, overrides: Mapping[str, str] | None = None, features: Mapping[str, int] | None = None
    ) -> None:
        self.home = home
        self.features = dict(features or {})
        self.overrides = {**ALONE, **(overrides or {})}
        self.port = 0
        self.output = home / "output"
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    def command(self) -> list[str]:
        settings = {"listeners": f"PLAINTEXT://127.0.0.1:{self.port}", "log.dirs": str(self.home / "data")}
        if self.port and "listeners" not in self.overrides:
            settings["advertised.listeners"] = settings["listeners"]
        python = os.environ.get("BARNABAS_COMPAT_PYTHON") or sys.executable
        command = [python, "-m", "barnabas", "serve"]
        for name, value in {**settings, **self.overrides}.items():
            command += ["--override", f"{name}={value}"]
        for name, level in self.features.items():
            command += ["--feature", f"{name}={level}"]
        return command

    def start(self) -> "BarnabasProcess":
        """Returns once it answers; raises `RuntimeError` with the end of its log if it does not."""
        assert self.process is None
        self.home.mkdir(parents=True, exist_ok=True)
        said_before = self.output.stat().st_size if self.output.exists() else 0
        with self.output.open("ab") as output:
            self.process = subprocess.Popen(
                self.command(),
                cwd=self.home,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=environment(),
                start_new_session=True,
            )
        try:
            self._await_answer(said_before)
        except BaseException:
            self.kill()
            raise
        return self

    def _await_answer(self, said_before: int) -> None:
        assert self.process is not None
        deadline = time.monotonic() + START_SECONDS
        while True:
            port = self.port or self._printed_port(said_before)
            if port and answers(port):
                self.port = port
                return
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the broker did not start:\n{self.output.read_text(errors='replace')[-4000:]}")
            time.sleep(0.01)

    def _printed_port(self, said_before: int) -> int:
        said = self.output.read_bytes()[said_before:].decode(errors="replace")
        found = ADDRESS.search(said)
        return int(found[1]) if found else 0

    def stop(self) -> None:
        """Sends SIGTERM, and waits for the end; fails if it has to be killed, or exits with an error."""
        code = self._end(signal.SIGTERM)
        if code not in (0, None):
            raise RuntimeError(f"exit code {code}:\n{self.output.read_text(errors='replace')[-4000:]}")

    def kill(self) -> None:
        """Sends SIGKILL: unwritten data are lost."""
        self._end(signal.SIGKILL)

    def complaints(self) -> list[str]:
        """Returns the errors in its log; a broker without failures logs none."""
        lines = self.output.read_text(errors="replace").splitlines() if self.output.exists() else []
        return [line for line in lines if " ERROR " in line or line.startswith("Traceback")]

    def _end(self, number: signal.Signals) -> int | None:
        process, self.process = self.process, None
        if process is None:
            return None
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(number)
        try:
            return process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise RuntimeError(f"the broker did not end within {STOP_SECONDS} s of {number.name}") from None


def environment() -> dict[str, str]:
    """Returns our environment without the variables of the broker's configs."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("KAFKA_")}
    return {**inherited, "PYTHONUNBUFFERED": "1"}


def answers(port: int) -> bool:
    """Returns whether a Kafka broker answers ApiVersions 0 at this port of 127.0.0.1."""
    request = bytes.fromhex("0000000a00120000000000010000")
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1) as connection:
        connection.settimeout(5)
        connection.sendall(request)
        return len(connection.recv(4)) == 4
    return False

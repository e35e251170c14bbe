"""Starts the measured servers (Barnabas, Apache Kafka, the baselines), and reads their CPU time and memory.

Knows nothing of the measurements.
"""

import contextlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

REPOSITORY = Path(__file__).resolve().parent.parent
HEAP = ("-Xms1G", "-Xmx1G")
"""The heap set by Apache Kafka's own start script."""


class Running:
    """A server process under load."""

    def __init__(self, name: str, process: "subprocess.Popen[str]", port: int, started_s: float) -> None:
        self.name, self.process, self.port, self.started_s = name, process, port, started_s
        self.psutil = psutil.Process(process.pid)

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    def cpu_s(self) -> float:
        """Returns CPU seconds used so far, user and system."""
        if sys.platform == "linux":  # the other figure has steps of 10 ms
            return time.clock_gettime(~self.process.pid << 3 | 2)  # clock_getcpuclockid(3)
        times = self.psutil.cpu_times()
        return float(times.user + times.system)

    def rss(self) -> int:
        """Returns the resident memory in bytes."""
        return int(self.psutil.memory_info().rss)


@contextlib.contextmanager
def spawned(name: str, command: list[str]) -> Iterator[Running]:
    """Runs a process that prints its port, bare or after 127.0.0.1, within the block."""
    # Users start it with the bytecode of an earlier start.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    began = time.perf_counter()
    process = subprocess.Popen(
        command, cwd=REPOSITORY, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if found := re.search(r"(?:127\.0\.0\.1:|^)(\d+)\b", line):
                yield Running(name, process, int(found[1]), time.perf_counter() - began)
                return
        raise RuntimeError(f"{name} ended with {process.wait()} before it said its port: {' '.join(command)}")
    finally:
        process.terminate()
        process.wait()


@contextlib.contextmanager
def barnabas(directory: Path, *overrides: str, keep: bool = False) -> Iterator[Running]:
    """Runs Barnabas of this tree, on a data directory that is removed afterwards unless `keep` is set."""
    settings = [f"--override={each}" for each in ("listeners=PLAINTEXT://127.0.0.1:0", *overrides)]
    command = [sys.executable, "-m", "barnabas", "serve", "--dev", "--log-dir", str(directory), *settings]
    try:
        with spawned("Barnabas", command) as running:
            yield running
    finally:
        if not keep:
            shutil.rmtree(directory, ignore_errors=True)


@contextlib.contextmanager
def apache(directory: Path, *listeners: str, **properties: str) -> Iterator[Running]:
    """Runs Apache Kafka with the heap of its own script; ``listeners`` are added to its plain one."""
    from compat_tests.apache_kafka.apache import ApacheKafka

    began = time.perf_counter()
    kafka = ApacheKafka(directory, properties, options=HEAP)
    for name in ("listeners", "advertised.listeners"):
        kafka.properties[name] = ",".join([kafka.properties[name], *listeners])
    try:
        kafka.start()
        yield Running("Apache Kafka", kafka.process, kafka.port, time.perf_counter() - began)
    finally:
        kafka.stop(kill=True)
        shutil.rmtree(directory, ignore_errors=True)


@contextlib.contextmanager
def baseline(kind: str, path: Path, *arguments: str) -> Iterator[Running]:
    """Runs the bare sink or reader of `benchmarks.baselines`, over one file."""
    command = [sys.executable, "-m", "benchmarks.baselines", kind, str(path), *arguments]
    with spawned(kind, command) as running:
        yield running

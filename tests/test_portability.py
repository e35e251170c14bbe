"""Systems that lack what Linux has: a broker runs without it, in a process from which it was taken."""

import signal
import subprocess
import sys
import time

import pytest

MISSING = """
import asyncio, fcntl, functools, os, shutil, socket, subprocess, sys, tempfile, types

def locking(fd, mode, size):
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise PermissionError(error.errno, error.strerror) from None

def unsupported(*given):
    raise NotImplementedError

def disk_usage(path):
    return types.SimpleNamespace(total=1 << 40, free=1 << 39)

def open_no_directory(path, *given, opened=os.open, **named):
    if os.path.isdir(path):
        raise PermissionError(13, "Permission denied", path)
    return opened(path, *given, **named)

shutil.rmtree = lambda path, **named: None  # Linux's own opens directories
shutil.disk_usage = disk_usage
sys.modules["msvcrt"] = types.SimpleNamespace(locking=locking, LK_NBLCK=2)
for name in ("fcntl", "resource", "uvloop"):
    sys.modules[name] = None
for name in (
    "pread", "preadv", "pwrite", "statvfs", "sendfile", "posix_fadvise", "fork", "pidfd_open", "O_CLOEXEC",
    "O_DIRECTORY", "RWF_NOWAIT", "getuid", "sched_getaffinity",
):
    if hasattr(os, name):
        delattr(os, name)
os.open = open_no_directory
socket.socketpair = functools.partial(socket.socketpair, socket.AF_UNIX)
del socket.AF_UNIX, asyncio.start_unix_server
asyncio.SelectorEventLoop.add_signal_handler = unsupported
"""

KEEPS_RECORDS = """
from kafka import KafkaProducer
from barnabas.log.files import DiskFiles
from barnabas.testing import Broker

home = sys.argv[1]
for count in (1, 2):
    with Broker({"log.dirs": home}, on_disk=True) as broker:
        assert DiskFiles().lock(home + "/.lock") is None
        with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
            producer.send("orders", b"tea").get(20)
        assert [record.value for record in broker.records("orders")] == [b"tea"] * count
"""

SERVES = """
from barnabas.cli import main
main()
"""


def test_records_are_kept(tmp_path):
    command = [sys.executable, "-c", MISSING + KEEPS_RECORDS, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_broker_stops_at_a_signal(tmp_path, number):
    ready = tmp_path / "ready"
    where = ["--port", "0", "--log-dirs", str(tmp_path / "data"), "--ready-file", str(ready)]
    with subprocess.Popen(
        [sys.executable, "-c", MISSING + SERVES, "serve", *where], stderr=subprocess.PIPE, text=True
    ) as process:
        deadline = time.monotonic() + 30
        while not ready.exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(number)
        _, said = process.communicate(timeout=30)
    assert ready.exists(), said
    assert process.returncode == 0, said


def test_a_cluster_in_processes_says_what_is_missing(tmp_path):
    program = """
from barnabas.cli.local_cluster.supervisor import Supervisor
from pathlib import Path
try:
    asyncio.run(Supervisor(Path(sys.argv[1]), [], [], print).run(lambda: None))
except OSError as error:
    assert "Unix socket" in str(error)
else:
    raise AssertionError
"""
    command = [sys.executable, "-c", MISSING + program, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_the_end_of_a_parent_is_not_requested_by_ctrl_c(monkeypatch):
    from barnabas.server import parent

    monkeypatch.setattr(parent.sys, "platform", "win32")
    monkeypatch.setattr(parent.os, "kill", pytest.fail)
    with pytest.raises(OSError, match="Windows"):
        parent.when_it_ends(1, None, None)

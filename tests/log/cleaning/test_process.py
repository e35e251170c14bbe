"""Cleaning in another process: jobs and results over the pipes, deaths, aborts and errors."""

import errno
import json
import math
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from barnabas.clock import ManualClock
from barnabas.errors import CorruptMessage
from barnabas.log.cleaning.job import CleanedGroup, CleaningFailed, CleaningJob
from barnabas.log.cleaning.process import (
    CleanerDied,
    CleaningAborted,
    InlineCleaner,
    ProcessCleaner,
    worker_command,
    worker_environment,
)
from barnabas.log.files import DiskFiles, MemoryFiles
from tests.log.cleaning.building import NOW_MS, LogBuilder, cleaned, run

SLOW = 1.0  # byte per second: a job at this rate waits for ever after its first read


@pytest.fixture
def log(tmp_path: pathlib.Path) -> LogBuilder:
    log = LogBuilder(DiskFiles(), str(tmp_path / "orders-0"))
    for number in range(3):
        log.data((b"a", b"%d" % number, NOW_MS), (b"%d" % number, b"x", NOW_MS), producer=number)
        log.roll()
    return log


@pytest.fixture
def worker() -> Iterator[ProcessCleaner]:
    worker = ProcessCleaner()
    yield worker
    worker.close()
    assert worker.pid is None


def leftovers(log: LogBuilder) -> list[str]:
    return [name for name in log.files.sizes(log.directory) if name.endswith(".cleaned")]


def eventually(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_job_as_json(log):
    job = log.job(producers=log.producers)
    assert job.producers and job.segments and math.isinf(job.max_bytes_per_second)
    assert CleaningJob.from_json(json.loads(json.dumps(job.to_json()))) == job


def test_a_process_writes_what_an_inline_cleaner_writes(log, worker):
    job = log.job(segment_bytes=1, producers=log.producers)
    groups, result = run(log.files, job)
    here = [bytes(batch.buffer) for batch in cleaned(log.files, job, groups)]
    for _ in range(2):  # the second run uses the same process
        there: list[CleanedGroup] = []
        printed = worker.run(job, there.append)
        assert there == groups
        assert [bytes(batch.buffer) for batch in cleaned(log.files, job, there)] == here
        assert printed.next_dirty_offset == result.next_dirty_offset
        assert printed.statistics._replace(seconds=0, cpu_seconds=0) == result.statistics._replace(
            seconds=0, cpu_seconds=0
        )
        assert printed.statistics.cpu_seconds > 0
        assert worker.pid is not None


def test_the_process_starts_with_the_first_job_at_a_low_priority(log, worker):
    assert worker.pid is None
    worker.run(log.job(), lambda group: None)
    assert os.getpriority(os.PRIO_PROCESS, worker.pid) == min(os.getpriority(os.PRIO_PROCESS, 0) + 10, 19)
    os.kill(worker.pid, signal.SIGINT)
    worker.run(log.job(), lambda group: None)


def interrupted(worker: ProcessCleaner, log: LogBuilder, interrupt: Callable[[int], None]) -> BaseException:
    """Returns the error of a job that is interrupted while it waits, with an incomplete segment on the disk."""
    job = log.job(max_bytes_per_second=SLOW)
    log.files.create(f"{log.directory}/{0:020d}.log.cleaned").write(b"half")
    errors: list[BaseException] = []

    def clean() -> None:
        try:
            worker.run(job, lambda group: None)
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=clean)
    thread.start()
    eventually(lambda: worker.pid is not None)
    pid = worker.pid
    interrupt(pid)
    thread.join(60)
    assert leftovers(log) == []
    assert not is_running(pid)
    assert worker.pid is None
    (error,) = errors
    return error


def test_a_killed_process_is_reported_and_replaced(log, worker):
    error = interrupted(worker, log, lambda pid: os.kill(pid, signal.SIGKILL))
    assert isinstance(error, CleanerDied)
    assert "was killed by SIGKILL" in str(error)
    worker.run(log.job(), lambda group: None)


def test_a_job_is_aborted(log, worker):
    worker.abort()  # has no effect without a job
    assert isinstance(interrupted(worker, log, lambda pid: worker.abort()), CleaningAborted)
    worker.run(log.job(), lambda group: None)


def test_close_aborts_the_job(log, worker):
    assert isinstance(interrupted(worker, log, lambda pid: worker.close()), CleaningAborted)


def test_close_between_the_answer_and_the_end_of_the_job(log, worker, monkeypatch):
    converse = worker._converse

    def closed_meanwhile(*job):
        result = converse(*job)
        worker.close()
        return result

    monkeypatch.setattr(worker, "_converse", closed_meanwhile)
    worker.run(log.job(), lambda group: None)
    assert worker.pid is None


def test_no_jobs_after_close(log, worker):
    worker.run(log.job(), lambda group: None)
    pid = worker.pid
    worker.close()
    assert not is_running(pid)
    with pytest.raises(CleaningAborted):
        worker.run(log.job(), lambda group: None)


@pytest.mark.parametrize("when", ["idle", "at work"])
def test_the_process_ends_when_the_broker_closes_the_pipe(log, when):
    process = subprocess.Popen(
        worker_command(), env=worker_environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    rate = SLOW if when == "at work" else math.inf
    process.stdin.write(json.dumps(log.job(max_bytes_per_second=rate).to_json()).encode() + b"\n")
    process.stdin.flush()
    if when == "idle":
        assert b"group" in process.stdout.readline()
        assert b"result" in process.stdout.readline()
    process.stdin.close()
    assert process.wait(60) == 0
    assert process.stdout.read() == b""
    process.stdout.close()


def test_a_corrupt_batch_is_reported_with_its_position(log, worker):
    job = log.job()
    path = pathlib.Path(log.directory, f"{2:020d}.log")
    data = bytearray(path.read_bytes())
    data[70] ^= 1
    path.write_bytes(data)
    pid = None
    for _ in range(2):
        with pytest.raises(CorruptMessage, match=f"{path} at position 0"):
            worker.run(job, lambda group: None)
        assert pid in (None, worker.pid), "it goes on after an error"
        pid = worker.pid
    assert leftovers(log) == []


def test_a_disk_error_is_reported_with_number_and_file(log, worker):
    job = log.job()
    log.files.delete(f"{log.directory}/{2:020d}.log")
    with pytest.raises(FileNotFoundError) as raised:
        worker.run(job, lambda group: None)
    assert raised.value.filename == f"{log.directory}/{2:020d}.log"
    assert leftovers(log) == []


def test_a_full_disk_is_reported(log, tmp_path):
    """A limit on the size of files simulates it: the write fails half-way, with another errno."""
    limit = "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
    limit += "resource.setrlimit(resource.RLIMIT_FSIZE, (50, 50)); "
    main = "import barnabas.log.cleaning.worker as worker; worker.main()"
    worker = ProcessCleaner(
        [sys.executable, "-B", "-P", "-c", limit + main]
    )  # -B: bytecode files would be truncated too, and kept
    with pytest.raises(OSError) as raised:
        worker.run(log.job(), lambda group: None)
    assert raised.value.errno == errno.EFBIG
    assert raised.value.filename == f"{log.directory}/{0:020d}.log.cleaned"
    assert leftovers(log) == []
    worker.close()


def test_a_bug_is_reported_with_its_traceback(log, worker):
    job = log.job()._replace(segment_bytes="many")
    with pytest.raises(CleaningFailed, match=r"Traceback(.|\n)*TypeError"):
        worker.run(job, lambda group: None)


def test_an_error_of_on_group_ends_the_job(log, worker):
    def fail(group: CleanedGroup) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        worker.run(log.job(segment_bytes=1), fail)
    assert (worker.pid, leftovers(log)) == (None, [])


def test_a_wrong_program(log):
    worker = ProcessCleaner([sys.executable, "-c", "raise SystemExit(3)"])
    with pytest.raises(CleanerDied, match="exit code 3"):
        worker.run(log.job(), lambda group: None)
    worker.close()


def test_a_program_that_cannot_be_started_is_no_disk_failure(log):
    worker = ProcessCleaner([f"{log.directory}/missing"])
    with pytest.raises(CleanerDied, match="Cannot start a process"):
        worker.run(log.job(), lambda group: None)
    worker.close()


def test_the_inline_cleaner():
    files = MemoryFiles(ManualClock())
    log = LogBuilder(files)
    log.data((b"a", b"1", NOW_MS))
    log.roll()
    log.data((b"a", b"2", NOW_MS))
    here = InlineCleaner(files, ManualClock(), pytest.fail)
    groups: list[CleanedGroup] = []
    assert here.run(log.job(segment_bytes=1), groups.append).next_dirty_offset == 2
    assert [group.base_offset for group in groups] == [0, 1]
    with pytest.raises(CleaningAborted):
        here.run(log.job(segment_bytes=1), lambda group: here.abort())
    assert leftovers(log) == []
    here.close()
    with pytest.raises(CleaningAborted):
        here.run(log.job(), groups.append)


def test_the_worker_imports_little():
    """It must start fast and need little memory: it imports nothing of the broker but files and records."""
    code = "import barnabas.log.cleaning.worker, sys; print(*sys.modules)"
    out = subprocess.run([sys.executable, "-P", "-c", code], env=worker_environment(), capture_output=True, check=True)
    modules = out.stdout.decode().split()
    assert not {"asyncio", "uvloop", "click", "barnabas.wire", "barnabas.config", "subprocess", "email"} & set(modules)

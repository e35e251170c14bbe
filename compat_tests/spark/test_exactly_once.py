"""A query that writes exactly once is killed at critical moments, and each row is there once and in order."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from compat_tests.running import Running
from compat_tests.spark.generated import by_partition, made, renamed, send
from compat_tests.spark.mortal import PATIENCE_SECONDS, PLAN
from compat_tests.spark.processes import environment
from compat_tests.spark.topics import committed, create

pytestmark = pytest.mark.xdist_group("spark apart")

PARTITIONS = 2


class Query:
    """The query of `mortal`, run repeatedly on one checkpoint."""

    def __init__(self, broker: Running, folder: Path) -> None:
        self.broker = broker
        self.folder = folder
        self.checkpoint = folder / "checkpoint"

    def start(self, **plan: int) -> subprocess.Popen[bytes]:
        """Starts it, with the events of its batches."""
        found = json.dumps({**plan, "folder": str(self.folder)})
        return subprocess.Popen(
            [
                *(sys.executable, "-m", "compat_tests.spark.mortal"),
                *(self.broker.bootstrap, "source", "target", str(self.checkpoint)),
            ],
            env=environment(**{PLAN: found}),
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
            stderr=(self.folder / "errors").open("ab"),
        )

    def run(self, **plan: int) -> int:
        """Waits for the end; returns the exit status."""
        process = self.start(**plan)
        try:
            return process.wait(PATIENCE_SECONDS)
        finally:
            process.kill()

    def errors(self) -> str:
        """Returns the errors that Spark logged."""
        return (self.folder / "errors").read_text()

    def has_committed(self, batch: int) -> bool:
        """Returns whether Spark has committed the batch."""
        return (self.checkpoint / "commits" / str(batch)).exists()


@pytest.mark.long
@pytest.mark.timeout(900)
def test_each_row_once_whatever_is_killed(own_broker: Callable[..., Running], tmp_path: Path) -> None:
    """Kills a worker in a task, the driver between both commits, a task after its commit, the broker."""
    broker = own_broker()
    create(broker.bootstrap, "source", "target", partitions=PARTITIONS)
    records = made("source", 3_000, partitions=PARTITIONS, sizes=(0, 300))
    send(broker.bootstrap, records)
    query = Query(broker, tmp_path)

    assert query.run(worker=0, commit=1) != 0
    assert query.has_committed(0) and not query.has_committed(1)
    assert 1_500 < sum(map(len, committed(broker.bootstrap, "target"))) <= 1_600, "both batches are there"

    process = query.start(fail=2, pause=3)
    try:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not (tmp_path / "paused").exists():
            assert process.poll() is None and time.monotonic() < deadline, query.errors()
            time.sleep(0.05)
        broker.kill()
        broker.start()
        (tmp_path / "resumed").touch()
        assert process.wait(PATIENCE_SECONDS) == 0, query.errors()
    finally:
        process.kill()

    assert "this task fails once, after all is written" in query.errors()
    assert committed(broker.bootstrap, "target") == by_partition(renamed(records, "target"), PARTITIONS)

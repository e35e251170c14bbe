"""``barnabas pipeline`` in its own process: Ctrl-C ends it between two batches, it resumes there, and says why it
failed."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from compat_tests.spark.processes import started
from compat_tests.spark.test_import import put
from compat_tests.spark.topics import create, messages

pytestmark = [pytest.mark.xdist_group("spark apart"), pytest.mark.long]

FILES, ROWS = 12, 40
DEADLINE = 240


class Command:
    """Runs ``barnabas pipeline import`` of the files in a folder, one per batch."""

    def __init__(self, bootstrap: str, topic: str, folder: Path, checkpoint: Path) -> None:
        self._arguments = [
            *(sys.executable, "-m", "barnabas", "pipeline", "import", "--bootstrap-server", bootstrap),
            *("--topic", topic, "--files", str(folder), "--format", "csv", "--schema", "id INT, name STRING"),
            *("--in-order", "--key", "name", "--poll-seconds", "0.1", "--checkpoint", str(checkpoint)),
            *("--master", "local[2]", "--conf", "spark.driver.memory=768m"),
        ]

    def started(self, *more: str) -> "contextlib.AbstractContextManager[subprocess.Popen[str]]":
        return started(*self._arguments, *more, seconds=DEADLINE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def names(folder: Path) -> set[str]:
    return {each.name for each in folder.iterdir() if each.name.isdecimal()}


def test_interrupted_resumed_and_failing(bootstrap: str, topic: str, tmp_path: Path) -> None:
    create(bootstrap, topic, partitions=2)
    folder, checkpoint = tmp_path / "in", tmp_path / "checkpoint"
    folder.mkdir()
    for number in range(FILES):
        rows = [f"{row},name {row % 7}" for row in range(number * ROWS, number * ROWS + ROWS)]
        put(folder, f"{number}.csv", rows, at=1_700_000_000 + number)
    command = Command(bootstrap, topic, folder, checkpoint)

    with command.started() as ran:
        assert ran.stdout is not None
        first, second = ran.stdout.readline(), ran.stdout.readline()
        os.killpg(ran.pid, signal.SIGINT)  # as a terminal does: every process of the group gets the signal
        out, err = ran.communicate()
    assert f"batch 0: {ROWS} rows" in first, (first, err)
    assert f"batch 1: {ROWS} rows" in second
    assert ran.returncode == 0, err
    assert err.splitlines() == ["Stopping after the current batch; press Ctrl-C again to stop immediately"]
    lines = out.splitlines()
    batches = 2 + len(lines) - 1
    assert lines[-1] == f"import: {batches * ROWS} rows in {batches} batches; stopped, continues from {checkpoint}"
    assert names(checkpoint / "offsets") == names(checkpoint / "commits"), "a batch was interrupted"
    assert len(names(checkpoint / "commits")) == batches < FILES, "it was too fast to be interrupted"

    put(folder, "bad.csv", ["1,fine", "two,not"], at=1_800_000_000)
    with command.started("--once") as ran:
        out, err = ran.communicate()
    assert ran.returncode == 1, err
    said, error = err.splitlines()
    log = Path(said.removeprefix("Spark's log is in "))
    assert log.is_file()
    log.unlink()
    assert error.startswith("Error: ")
    assert "bad.csv" in error or "MALFORMED" in error
    assert len(out.splitlines()) == FILES - batches

    keys: dict[str, set[int]] = {}
    found: Counter[int] = Counter()
    for partition, its in enumerate(messages(bootstrap, topic)):
        ids = [json.loads(message.value())["id"] for message in its]
        assert ids == sorted(ids), "an order is not that of the files"
        found.update(ids)
        for message in its:
            keys.setdefault(message.key().decode(), set()).add(partition)
    assert found == Counter(range(FILES * ROWS))
    assert all(len(partitions) == 1 for partitions in keys.values())

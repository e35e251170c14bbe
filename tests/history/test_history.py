"""A minute of random clients under faults: what they saw, no broker without mistakes could not have shown them.

``make history`` takes half an hour for the same. What goes wrong here can be looked at: the report names the history.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.history.checker import judge
from tests.history.records import OK, read

ROOT = Path(__file__).parent.parent.parent
SEED = 7


def carried_out(request, tmp_path, *options):
    """The exit code, the report and the history of a run in a process of its own: clients may outlive their use."""
    command = [sys.executable, "-m", "tests.history", "--seed", str(SEED), "--directory", str(tmp_path), *options]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    said = ended.stdout + ended.stderr
    request.node.add_report_section("call", "history", said)
    assert ended.returncode in (0, 1) and ended.stdout, said
    return ended.returncode, said, read(tmp_path / "history.jsonl")


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("level", "seconds"), [("2", "35"), ("1", "15")])
def test_clients_under_faults_see_nothing_that_is_wrong(request, tmp_path, level, seconds):
    code, said, history = carried_out(request, tmp_path, "--level", level, "--seconds", seconds)
    assert code == 0, said
    assert any(event["kind"] == "kill over" for event in history.events)
    assert any(operation.is_transaction and operation.outcome == OK for operation in history.operations)
    assert any(sum(transform.committed.values()) for transform in history.transforms)


@pytest.mark.timeout(900)
def test_a_mistake_is_found(request, tmp_path):
    """A broker that does not tell what was aborted."""
    code, said, history = carried_out(request, tmp_path, "--seconds", "5", "--plant", "aborted_is_read")
    assert code == 1, said
    assert judge(history).counts()["aborted-read"], said

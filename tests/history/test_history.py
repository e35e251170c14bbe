"""A minute of random clients under faults: their history has no anomaly.

``make history`` takes half an hour for the same. After a failure, the report has the path of the history.
"""

import pytest

from compat_tests import network
from tests.history.checker import judge
from tests.history.pieces import piece, was_ended_by_a_client
from tests.history.plan import OF_NETWORKS
from tests.history.records import OK, read

SEED = 7
ATTEMPTS = 3  #: librdkafka may fail an assertion of its own, and end the process: then another seed is used
LIMIT_S = 280.0  #: of one attempt, within the time-out of a test with all of them


def carried_out(request, tmp_path, *options):
    """Returns the exit code, the report and the history of a run in its own process."""
    for seed in range(SEED, SEED + ATTEMPTS):
        home = tmp_path / str(seed)
        ended = piece(seed, home, list(options), LIMIT_S)
        said = ended.stdout + ended.stderr
        request.node.add_report_section("call", "history", said)
        if not was_ended_by_a_client(ended):
            break
    assert ended.returncode in (0, 1) and ended.stdout, said
    return ended.returncode, said, read(home / "history.jsonl")


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "options",
    [
        pytest.param(each, id=" ".join(each), marks=marks)
        for each, marks in (
            (("2", "25"), []),
            (("2", "20", "--consumer-protocol"), [pytest.mark.long]),
            (("1", "15"), [pytest.mark.long]),
        )
    ],
)
def test_clients_under_faults_see_nothing_that_is_wrong(request, tmp_path, options):
    level, seconds, *more = options
    code, said, history = carried_out(request, tmp_path, "--level", level, "--seconds", seconds, *more)
    assert code == 0, said
    assert any(event["kind"] == "kill over" for event in history.events)
    assert any(operation.is_transaction and operation.outcome == OK for operation in history.operations)
    assert any(sum(transform.committed.values()) for transform in history.transforms)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_clients_of_three_brokers_under_faults_see_nothing_that_is_wrong(request, tmp_path):
    code, said, history = carried_out(request, tmp_path, "--broker", "cluster", "--seconds", "30")
    assert code == 0, said
    assert any(event["kind"] == "kill over" for event in history.events)
    assert any(operation.is_transaction and operation.outcome == OK for operation in history.operations)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_clients_of_nodes_that_lose_each_other_see_nothing_that_is_wrong(request, tmp_path):
    if not network.is_possible():
        pytest.skip("network namespaces cannot be made here")
    code, said, history = carried_out(request, tmp_path, "--broker", "network", "--seconds", "75")
    assert code == 0, said
    assert set(OF_NETWORKS) <= {event["kind"] for event in history.events}


@pytest.mark.timeout(900)
def test_a_mistake_is_found(request, tmp_path):
    """A broker that does not return aborted transactions."""
    code, said, history = carried_out(request, tmp_path, "--seconds", "5", "--plant", "aborted_is_read")
    assert code == 1, said
    assert judge(history).counts()["aborted-read"], said

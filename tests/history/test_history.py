"""A minute of random clients under faults: what they saw, no broker without mistakes could not have shown them.

``make history`` takes half an hour for the same. What goes wrong here can be looked at: the report names the history.
"""

import pytest

from tests.history.plan import plan
from tests.history.records import OK
from tests.history.report import report
from tests.history.run import run

SEED = 7


def carried_out(request, tmp_path, seconds, level, mistake=None):
    outcome = run(plan(SEED, seconds, level), tmp_path, mistake=mistake)
    request.node.add_report_section("call", "history", report(outcome))
    return outcome


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("level", "seconds"), [(2, 40), (1, 20)])
def test_clients_under_faults_see_nothing_that_is_wrong(request, tmp_path, level, seconds):
    outcome = carried_out(request, tmp_path, seconds, level)
    assert outcome.verdict.clean, report(outcome)
    assert not outcome.complaints
    assert outcome.faults["kill"]
    assert any(operation.is_transaction and operation.outcome == OK for operation in outcome.history.operations)
    assert any(sum(transform.committed.values()) for transform in outcome.history.transforms)


@pytest.mark.timeout(900)
def test_a_mistake_is_found(request, tmp_path):
    """As long as nobody aborts a transaction, this one does not show."""
    outcome = carried_out(request, tmp_path, 6, 2, "aborted_is_read")
    assert outcome.verdict.counts()["aborted-read"], report(outcome)

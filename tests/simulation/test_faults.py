"""Seeds under faults: nothing goes wrong, unless a mistake is planted."""

import pytest

from tests.simulation.mistakes import MISTAKES
from tests.simulation.run import run

ENOUGH_SEEDS = 30
AT_ONCE = ("count_the_leader_only", "append_retries")  #: the first seed finds them: these are in the gate


@pytest.mark.parametrize("seed", range(1, 5))
def test_nothing_goes_wrong_under_faults(seed):
    outcome = run(seed, seconds=10, faulty=True)
    assert outcome.problems == [], f"python -m tests.simulation {seed} --seconds 10 --trace trace.txt"
    assert outcome.faults
    assert list(outcome.history.sends())


@pytest.mark.parametrize(
    "mistake", [pytest.param(name, marks=() if name in AT_ONCE else pytest.mark.long) for name in MISTAKES]
)
def test_a_planted_mistake_is_found(mistake, monkeypatch):
    MISTAKES[mistake](monkeypatch)
    assert any(run(seed, seconds=20, faulty=True).problems for seed in range(1, ENOUGH_SEEDS + 1))

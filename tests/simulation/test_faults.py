"""Seeds under faults: no invariant is violated, unless a mistake is planted."""

import pytest

from tests.simulation.cluster import BROKER, CONTROLLER
from tests.simulation.mistakes import MISTAKES
from tests.simulation.network import LATENCIES_S, latency_of
from tests.simulation.run import run
from tests.simulation.storage import COMPACTION, EXPIRY

SECONDS = 8
ENOUGH_SEEDS = 500
IN_THE_GATE = 40
APART = (CONTROLLER,) * 3 + (BROKER,) * 3
DIRECTED = {
    "answer_before_commit": {"kinds": ("kill", "isolation"), "latency_s": LATENCIES_S[0]},
    "accept_late_markers": {"kinds": ("late requests",), "latency_s": LATENCIES_S[0]},
    "clean_what_is_not_committed": {
        "kinds": ("kill", "isolation", "old incarnation", "pause"),
        "stored": {**COMPACTION, "log.roll.ms": "300"},
        "latency_s": LATENCIES_S[0],
    },
    "begin_anew_at_the_end": {"stored": EXPIRY},
    "count_removed_voters": {"is_dynamic": True},
    "delete_alone": {"stored": EXPIRY},
    "ignore_connections": {"kinds": ("late requests",)},
    "prune_to_the_newest": {
        "kinds": ("kill", "isolation", "stop"),
        "stored": {**EXPIRY, "share.coordinator.snapshot.update.records.per.snapshot": "20"},
    },
    "vote_for_a_shorter_log": {"kinds": ("isolation", "old end", "blackout", "kill"), "roles": APART},
    "promote_without_the_tail": {"several": 1.0},
    "forget_an_fsync": {"kinds": ("slow disk", "blackout", "power cut"), "roles": APART},
}
"""What the runs have that look for mistakes which few seeds find."""
AT_ONCE = ("count_the_leader_only", "append_retries")  #: the first seeds find them, so they are in the default run


@pytest.mark.parametrize(
    "seed", [pytest.param(each, marks=[pytest.mark.long] if each > IN_THE_GATE else []) for each in range(1, 101)]
)
def test_nothing_goes_wrong_under_faults(seed):
    outcome = run(seed, seconds=SECONDS, faulty=True)
    assert outcome.problems == [], f"python -m tests.simulation {seed} --seconds {SECONDS} --trace trace.txt"
    assert outcome.faults
    assert list(outcome.history.sends())


def test_the_seeds_in_the_gate_have_near_and_far_networks():
    assert {latency_of(seed) for seed in range(1, IN_THE_GATE + 1)} == set(LATENCIES_S)


@pytest.mark.parametrize(
    "mistake",
    [pytest.param(name, marks=() if name in AT_ONCE else pytest.mark.long) for name in MISTAKES],
)
def test_a_planted_mistake_is_found(mistake, monkeypatch):
    MISTAKES[mistake](monkeypatch)
    given = DIRECTED.get(mistake, {})
    assert any(run(seed, seconds=20, faulty=True, **given).problems for seed in range(1, ENOUGH_SEEDS + 1))

"""Whole clusters under a virtual clock."""

import pytest

from tests.simulation.cluster import BROKER, COMBINED, CONTROLLER
from tests.simulation.run import SHAPES, run


@pytest.mark.parametrize("roles", [(COMBINED,) * 3, (CONTROLLER, BROKER, BROKER, BROKER)], ids=["combined", "apart"])
def test_the_same_seed_gives_the_same_run_to_the_byte(roles):
    first, second, other = (run(seed, seconds=5, roles=roles) for seed in (1, 1, 2))
    assert first.problems == second.problems == other.problems == []
    assert first.messages == second.messages
    assert first.digest == second.digest
    assert first.digest != other.digest
    assert len(list(first.history.sends())) > 50


@pytest.mark.parametrize("seed", [3, 13])
def test_controllers_join_the_quorum_again_with_an_empty_disk(seed):
    lines = []
    outcome = run(seed, trace=lines.append, seconds=8.0, roles=SHAPES[2], is_dynamic=True)
    assert outcome.problems == []
    assert any("gets an empty disk" in line for line in lines)

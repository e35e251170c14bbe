"""Whole clusters under a virtual clock."""

import re

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


@pytest.mark.parametrize("seed", [5, 13])
def test_controllers_join_the_quorum_again_with_an_empty_disk(seed):
    lines = []
    outcome = run(seed, trace=lines.append, seconds=8.0, roles=SHAPES[2], is_dynamic=True)
    assert outcome.problems == []
    assert any("gets an empty disk" in line for line in lines)


def test_transactional_clients_of_both_generations_follow_transaction_version():
    """Seeds 1 to 6 have clients of both, and clusters whose level changes (KIP-890, KIP-1022)."""
    answered = set()
    for seed in range(1, 7):
        lines = []
        assert run(seed, trace=lines.append, seconds=8.0).problems == []
        answered |= {found[1] for line in lines if (found := re.search(" -> \\S+ (.+) answered", line))}
    of_both = {"EndTxn v4", "EndTxn v5", "Produce v11", "Produce v13", "AddPartitionsToTxn v3", "AddPartitionsToTxn v5"}
    assert of_both | {"UpdateFeatures v2"} <= answered

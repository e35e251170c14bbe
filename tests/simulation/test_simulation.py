"""Whole clusters under a virtual clock."""

from tests.simulation.run import run


def test_the_same_seed_gives_the_same_run_to_the_byte():
    first, second, other = run(1, seconds=5), run(1, seconds=5), run(2, seconds=5)
    assert first.problems == second.problems == other.problems == []
    assert first.messages == second.messages
    assert first.digest == second.digest
    assert first.digest != other.digest

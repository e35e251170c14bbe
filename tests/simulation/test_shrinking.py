"""What is left of a failing run."""

from tests.simulation.faults import Fault
from tests.simulation.run import Outcome
from tests.simulation.shrinking import shrink


def outcome_of(left_out: frozenset[int], until: float, guilty: set[int], needed_s: float) -> Outcome:
    faults = {number: Fault(float(number), "kill", 1, 1.0, 0) for number in range(8) if number not in left_out}
    problems = ["lost"] if guilty <= set(faults) and until >= needed_s else []
    return Outcome(7, problems=problems, faults=faults, virtual_s=5.0)


def shrunk(guilty: set[int], needed_s: float = 0.0):
    tried = []

    def again(seed, *, seconds, left_out, until):
        tried.append(left_out)
        return outcome_of(left_out, until, guilty, needed_s)

    return shrink(7, outcome_of(frozenset(), 20.0, guilty, needed_s), seconds=20.0, again=again), tried


def test_only_the_faults_that_it_needs_are_left():
    found, _ = shrunk({1, 4})
    assert set(found.outcome.faults) == {1, 4}
    assert found.left_out == {0, 2, 3, 5, 6, 7}


def test_faults_after_the_failure_go_first():
    _, tried = shrunk({1, 4})
    assert tried[0] == {6, 7}


def test_a_failure_without_a_fault_needs_none():
    found, _ = shrunk(set())
    assert found.outcome.faults == {}


def test_the_time_is_as_short_as_it_can_be():
    found, _ = shrunk({1}, needed_s=6.0)
    assert found.until == 10.0
    assert shrunk({1})[0].until == 1.25

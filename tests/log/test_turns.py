"""Visits of many items over several turns of the loop."""

import pytest

from barnabas.clock import ManualClock
from barnabas.log.turns import TURN_ITEMS, TURN_S, visit_in_turns


@pytest.fixture
def clock():
    return ManualClock()


def test_few_items_are_visited_at_once(clock):
    visited = []
    visit_in_turns(range(3), visited.append, clock, clock, lambda: visited.append("done"))
    assert visited == [0, 1, 2, "done"]


def test_no_items(clock):
    visited = []
    visit_in_turns([], visited.append, clock, clock, lambda: visited.append("done"))
    assert visited == ["done"]


def test_many_items_are_visited_in_several_turns(clock):
    visited = []
    visit_in_turns(range(2 * TURN_ITEMS + 1), visited.append, clock, clock, lambda: visited.append("done"))
    assert len(visited) == TURN_ITEMS
    clock.call_later(0, visited.append, "something else")
    clock.advance(0)
    assert visited.index("something else") == 2 * TURN_ITEMS
    assert visited[-2:] == [2 * TURN_ITEMS, "done"]


def test_slow_items_are_visited_in_several_turns(clock):
    """A turn ends when its time is over."""
    times = iter(range(100))
    clock.monotonic = lambda: next(times) * TURN_S
    visited = []
    visit_in_turns(range(5), visited.append, clock, clock)
    assert len(visited) == 2
    clock._due[0][2].callback()
    assert len(visited) == 4


def test_without_a_scheduler_all_items_are_visited_at_once(clock):
    visited = []
    visit_in_turns(range(1000), visited.append, clock, None, lambda: visited.append("done"))
    assert visited == [*range(1000), "done"]


def test_an_error_does_not_end_the_visits(clock):
    visited = []

    def visit(item):
        if item == 1:
            raise ValueError("of a test")
        visited.append(item)

    with pytest.raises(ValueError, match="of a test"):
        visit_in_turns(range(4), visit, clock, clock, lambda: visited.append("done"))
    clock.advance(0)
    assert visited == [0, 2, 3, "done"]

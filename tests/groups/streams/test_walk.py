"""A streams group under random members, topics, configs, restarts, and a failing log."""

from hypothesis import given
from hypothesis import strategies as st

from tests.groups.streams.machine import World
from tests.groups.streams.walker import Walker

MEMBERS = 5

anybody = st.integers(0, MEMBERS - 1)
OFTEN = ("join", "beat", "ack", "ack")
SELDOM = ("leave", "lose", "wait", "restart", "trouble", "grow", "copy")
steps = st.tuples(st.sampled_from(OFTEN + OFTEN + SELDOM), anybody)


@given(st.lists(steps, min_size=10, max_size=60), st.sets(anybody, min_size=1))
def test_no_task_is_run_twice_and_all_settles(walk, living):
    walker = Walker(World(), MEMBERS)
    for verb, index in walk:
        walker.do(verb, index)
    walker.settle(living)

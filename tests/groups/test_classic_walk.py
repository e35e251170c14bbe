"""A classic group under random clients, time, restarts, and a slow or failing log."""

from hypothesis import given
from hypothesis import strategies as st

from tests.groups.classic_walker import Walker

CLIENTS = 6

anybody = st.integers(0, CLIENTS - 1)
steps = st.one_of(
    st.tuples(st.just("gather"), anybody),
    st.tuples(st.just("gather"), anybody),
    st.tuples(st.sampled_from(("join", "sync", "sync", "heartbeat", "commit")), anybody),
    st.tuples(st.just("proceed"), anybody),
    st.tuples(st.just("proceed"), anybody),
    st.tuples(st.sampled_from(("leave", "forget", "change")), anybody),
    st.tuples(st.just("advance"), st.sampled_from((0, 0, 1, 5, 11, 31))),
    st.tuples(st.sampled_from(("hold", "release", "refuse", "restart")), st.just(0)),
)


@given(st.lists(steps, min_size=10, max_size=60), st.sets(anybody, min_size=1))
def test_it_settles_whatever_was_done(new_world, walk, living):
    walker = Walker(new_world())
    for verb, index in walk:
        walker.do(verb, index)
    walker.settle([walker.clients[index] for index in sorted(living)])

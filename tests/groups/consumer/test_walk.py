"""A consumer group under anything that members, topics, clocks, restarts and a slow or failing log may do to it."""

from hypothesis import given
from hypothesis import strategies as st

from tests.groups.consumer.walker import Walker

CONSUMERS = 4

anybody = st.integers(0, CONSUMERS - 1)
steps = st.one_of(
    st.tuples(st.sampled_from(("talk", "talk", "run")), anybody),
    st.tuples(st.sampled_from(("talk", "talk", "finish")), anybody),
    st.tuples(st.sampled_from(("talk", "send", "hear", "lose")), anybody),
    st.tuples(st.sampled_from(("revoke", "finish", "change")), anybody),
    st.tuples(st.sampled_from(("die", "leave", "away")), anybody),
    st.tuples(st.just("advance"), st.sampled_from((1, 1, 2, 5, 11, 31))),
    st.tuples(st.just("topic"), st.integers(0, 3)),
    st.tuples(st.sampled_from(("hold", "release", "refuse", "restart")), st.integers(0, 1)),
)


@given(st.lists(steps, min_size=20, max_size=80), st.sets(anybody, min_size=1), st.sampled_from((0, 0, 1000)))
def test_it_settles_whatever_was_done(walk, living, interval_ms):
    walker = Walker(interval_ms)
    for verb, index in walk:
        walker.do(verb, index)
    walker.settle([walker.consumers[index] for index in sorted(living)])

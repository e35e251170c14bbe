"""A group with members of both protocols under random members, topics, time, restarts, and a slow or failing log."""

from random import Random

from hypothesis import given, note, settings
from hypothesis import strategies as st

from tests.groups.migration.walker import COOPERATIVE, EAGER, Walker

MEMBERS = 5

QUIET = {"talk": 4, "run": 10, "finish": 3, "send": 2, "hear": 3, "lose": 1, "revoke": 1}
DISRUPTIVE = {
    "die": 2,
    "leave": 4,
    "away": 1,
    "change": 1,
    "advance": 3,
    "topic": 1,
    "hold": 1,
    "release": 2,
    "refuse": 1,
}
DISRUPTIVE |= {"restart": 1}
"""The weight of each step. Those that disrupt the group are rare."""


@settings(max_examples=150)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from((0.05, 0.15, 0.3)),
    st.sampled_from((EAGER, COOPERATIVE)),
    st.sampled_from(("bidirectional", "bidirectional", "bidirectional", "upgrade")),
    st.sampled_from((0, 0, 1000)),
    st.integers(10, 150),
)
def test_it_settles_whatever_was_done(seed, loudness, protocol, policy, interval_ms, length):
    random, walker = Random(seed), Walker(protocol, policy, interval_ms)
    for _ in range(length):
        verbs = DISRUPTIVE if random.random() < loudness else QUIET
        (verb,) = random.choices(list(verbs), list(verbs.values()))
        index = random.choice((1, 1, 2, 5, 11, 31)) if verb == "advance" else random.randrange(MEMBERS)
        note(f"{verb} {index}")
        walker.do(verb, index)
    living = random.sample(walker.consumers, random.randint(1, MEMBERS))
    note(f"settle {[consumer.name for consumer in living]}")
    walker.settle(living)

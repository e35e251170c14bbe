"""A consumer group under random members, topics, time, restarts, and a slow or failing log.

Steps are drawn from a seed. Hypothesis alone repeats one step so often that little happens between members.
"""

from random import Random

from hypothesis import given, note
from hypothesis import strategies as st

from tests.groups.consumer.walker import Walker

CONSUMERS = 4

QUIET = {"talk": 8, "run": 3, "finish": 4, "send": 2, "hear": 2, "lose": 1, "revoke": 2}
DISRUPTIVE = {
    "die": 1,
    "leave": 1,
    "away": 2,
    "change": 2,
    "advance": 3,
    "topic": 2,
    "hold": 1,
    "release": 2,
    "refuse": 1,
}
DISRUPTIVE |= {"restart": 1}
"""The weight of each step. Those that disrupt the group are rare."""


@given(st.integers(0, 2**32 - 1), st.sampled_from((0.02, 0.1, 0.3)), st.sampled_from((0, 0, 1000)))
def test_it_settles_whatever_was_done(seed, loudness, interval_ms):
    for walk in range(3):
        note(f"walk {walk}")
        walk_at_random(Random(f"{seed} {walk}"), loudness, Walker(interval_ms))


def walk_at_random(random: Random, loudness: float, walker: Walker) -> None:
    for _ in range(random.randint(10, 120)):
        verbs = DISRUPTIVE if random.random() < loudness else QUIET
        (verb,) = random.choices(list(verbs), list(verbs.values()))
        index = random.choice((1, 1, 2, 5, 11, 31)) if verb == "advance" else random.randrange(CONSUMERS)
        note(f"{verb} {index}")
        walker.do(verb, index)
    living = random.sample(walker.consumers, random.randint(1, CONSUMERS))
    note(f"settle {[consumer.name for consumer in living]}")
    walker.settle(living)
    for consumer in living:
        walker.run(consumer)
    walker.topic(random.randrange(4))
    walker.settle(living)

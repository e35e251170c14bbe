"""A line that repeats is logged once a minute."""

import pytest

from barnabas.clock import ManualClock
from barnabas.log_limit import LogLimit


@pytest.fixture
def clock():
    return ManualClock()


def test_a_line_that_repeats_every_second_is_logged_once_a_minute(clock):
    limit = LogLimit(clock)
    logged = 0
    for _ in range(180):
        logged += limit.is_due("3 replicas, 1 broker")
        clock.advance(1)
    assert logged == 3


def test_another_text_is_logged_at_once(clock):
    limit = LogLimit(clock)
    assert [limit.is_due(text) for text in ("a", "a", "b", "b", "a")] == [True, False, True, False, True]

"""The throttle, with a clock that only waiting moves."""

import math

import pytest

from barnabas.clock import ManualClock
from barnabas.log.cleaning.throttle import Throttle


def test_the_throttle_waits_above_the_rate():
    clock = ManualClock()
    throttle = Throttle(1000, clock, clock.advance)
    for _ in range(100):
        throttle.add(100)
    assert clock.monotonic() == pytest.approx(10, rel=0.05)
    throttle.add(5000)
    assert clock.monotonic() == pytest.approx(15, rel=0.05)


def test_no_wait_below_the_rate():
    clock = ManualClock()
    throttle = Throttle(1000, clock, pytest.fail)
    for _ in range(20):
        clock.advance(0.11)
        throttle.add(100)


def test_an_idle_time_is_not_made_up_for():
    clock = ManualClock()
    throttle = Throttle(1000, clock, clock.advance)
    clock.advance(100)
    throttle.add(10)
    before = clock.monotonic()
    for _ in range(10):
        throttle.add(1000)
    assert clock.monotonic() - before == pytest.approx(10, rel=0.05)


def test_no_limit():
    clock = ManualClock()
    for rate in (math.inf, 1.7976931348623157e308):
        throttle = Throttle(rate, clock, pytest.fail)
        throttle.add(1 << 40)
        clock.advance(1)
        throttle.add(1 << 40)

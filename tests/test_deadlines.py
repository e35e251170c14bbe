"""Many deadlines on one timer."""

import pytest

from barnabas.clock import ManualClock
from barnabas.deadlines import Deadline, Deadlines


class CountingClock(ManualClock):
    """Counts the timers."""

    timers = 0

    def call_later(self, delay, callback, *args):
        self.timers += 1
        return super().call_later(delay, callback, *args)


@pytest.fixture
def clock():
    return CountingClock()


@pytest.fixture
def deadlines(clock):
    return Deadlines(clock, clock)


@pytest.fixture
def struck():
    return []


def test_each_at_its_moment(clock, deadlines, struck):
    for name, delay in (("late", 3), ("early", 1), ("middle", 2)):
        deadlines.set(Deadline(lambda name=name: struck.append((name, clock.monotonic()))), delay)
    clock.advance(10)
    assert struck == [("early", 1), ("middle", 2), ("late", 3)]


def test_one_that_is_moved_again_and_again_takes_no_timer(clock, deadlines, struck):
    session = Deadline(struck.append, "gone")
    deadlines.set(session, 10)
    for _ in range(1000):
        clock.advance(1)
        deadlines.set(session, 10)
    assert not struck
    assert clock.timers <= 1 + 1000 / 9
    clock.advance(10)
    assert struck == ["gone"]


def test_one_that_is_moved_forward_strikes_once(clock, deadlines, struck):
    deadline = Deadline(struck.append, "now")
    deadlines.set(deadline, 300)
    deadlines.set(deadline, 10)
    clock.advance(10)
    assert struck == ["now"]
    clock.advance(300)
    assert struck == ["now"]


def test_one_that_is_cancelled_does_not_strike(clock, deadlines, struck):
    deadline = Deadline(struck.append, "never")
    deadlines.set(deadline, 1)
    deadline.cancel()
    assert not deadline.is_set
    clock.advance(2)
    assert struck == []
    deadlines.set(deadline, 1)
    clock.advance(1)
    assert struck == ["never"]


def test_one_may_be_set_again_from_its_own_strike(clock, deadlines, struck):
    def strike():
        struck.append(clock.monotonic())
        deadlines.set(deadline, 2)

    deadline = Deadline(strike)
    deadlines.set(deadline, 2)
    clock.advance(7)
    assert struck == [2, 4, 6]


def test_one_that_another_cancels_at_the_same_moment(clock, deadlines, struck):
    second = Deadline(struck.append, "second")
    deadlines.set(Deadline(second.cancel), 1)
    deadlines.set(second, 1)
    clock.advance(2)
    assert struck == []


def test_one_that_fails_does_not_take_the_others_with_it(clock, deadlines, struck):
    def fail():
        raise RuntimeError("a bug")

    deadlines.set(Deadline(fail), 1)
    deadlines.set(Deadline(struck.append, "same moment"), 1)
    deadlines.set(Deadline(struck.append, "later"), 2)
    with pytest.raises(RuntimeError):
        clock.advance(1)
    clock.advance(2)
    assert struck == ["same moment", "later"]


def test_none_strikes_after_the_end(clock, deadlines, struck):
    deadlines.set(Deadline(struck.append, "never"), 1)
    deadlines.close()
    clock.advance(2)
    assert struck == []


def test_what_is_due_can_be_run_before_the_loop_turns(clock, deadlines, struck):
    deadlines.set(Deadline(struck.append, "due"), 1)
    deadlines.set(Deadline(struck.append, "not due"), 2)
    deadlines.run_due()
    assert struck == []
    clock.skip(1)
    deadlines.run_due()
    deadlines.run_due()
    assert struck == ["due"]
    clock.advance(1)
    assert struck == ["due", "not due"]


def test_a_delay_of_nothing_is_due_in_the_next_turn(clock, deadlines, struck):
    """Requests that are ready now come first."""
    deadlines.set(Deadline(struck.append, "soon"), 0)
    cancelled = Deadline(struck.append, "never")
    deadlines.set(cancelled, 0)
    moved = Deadline(struck.append, "moved")
    deadlines.set(moved, 0)
    deadlines.run_due()
    assert struck == []
    cancelled.cancel()
    deadlines.set(moved, 3)
    clock.advance(0)
    assert struck == ["soon"]
    clock.advance(3)
    assert struck == ["soon", "moved"]


def test_a_strike_may_bring_a_request_that_wants_the_rest_done(clock, deadlines, struck):
    def strike():
        deadlines.run_due()
        struck.append("first")

    deadlines.set(Deadline(strike), 1)
    deadlines.set(Deadline(struck.append, "second"), 1)
    clock.advance(1)
    assert struck == ["second", "first"]


def test_one_that_fails_in_a_request_does_not_take_the_others_with_it(clock, deadlines, struck):
    def fail():
        raise RuntimeError("a bug")

    cancelled = Deadline(struck.append, "never")
    for deadline in (Deadline(fail), Deadline(struck.append, "same moment"), cancelled):
        deadlines.set(deadline, 1)
    clock.skip(1)
    with pytest.raises(RuntimeError):
        deadlines.run_due()
    cancelled.cancel()
    clock.advance(0)
    assert struck == ["same moment"]


def test_none_can_be_set_after_the_end(clock, deadlines, struck):
    deadlines.set(Deadline(struck.append, "never"), 0)
    deadlines.close()
    for delay in (0, 1):
        deadlines.set(Deadline(struck.append, "never"), delay)
    clock.advance(2)
    assert struck == []


def test_one_may_end_them_all(clock, deadlines, struck):
    deadlines.set(Deadline(deadlines.close), 1)
    deadlines.set(Deadline(struck.append, "same moment"), 1)
    clock.advance(2)
    assert struck == []

"""A broker with a clock that a test advances."""

import asyncio
from datetime import UTC, datetime

import pytest

from barnabas.testing import Broker
from barnabas.testing.turning import TurnedClock


def advanced(clock, seconds, begin):
    """Returns the calls of an advance, with the clock's seconds since the beginning."""
    called = []

    async def run():
        clock.loop = asyncio.get_running_loop()
        start = clock.monotonic()
        begin(called, lambda: round(clock.monotonic() - start))

        async def settled():
            pass

        await clock.advance(seconds, settled)

    asyncio.run(run())
    return called


def test_calls_are_made_in_their_order_at_their_times():
    clock = TurnedClock()

    def begin(called, now):
        for delay in (30, 10, 20, 50):
            clock.call_later(delay, lambda delay=delay: called.append((delay, now())))
        clock.call_later(15, called.append, "never").cancel()

    assert advanced(clock, 40, begin) == [(10, 10), (20, 20), (30, 30)]
    assert [timer.at > clock.monotonic() for timer in clock.timers] == [True]


def test_what_a_call_sets_falls_due_too():
    clock = TurnedClock()

    def begin(called, now):
        def again():
            called.append(now())
            clock.call_later(10, again)

        clock.call_later(10, again)

    assert advanced(clock, 35, begin) == [10, 20, 30]


def test_a_long_time_passes_in_few_leaps():
    clock = TurnedClock()

    def begin(called, now):
        def again():
            called.append(now())
            clock.call_later(1, again)

        clock.call_later(1, again)

    assert 50 <= len(advanced(clock, 8 * 86400, begin)) <= 101


def test_dates():
    with Broker() as broker:
        clock = broker.clock
        clock.at("2035-01-01")
        begin = datetime(2035, 1, 1, tzinfo=UTC).timestamp() * 1000
        assert 0 <= clock.time_ms - begin < 60_000
        clock.freeze()
        frozen = clock.time_ms
        clock.advance(hours=2)
        assert clock.time_ms == frozen + 7_200_000
        clock.at("2020-06-01T12:00+02:00")
        assert clock.time_ms == datetime(2020, 6, 1, 10, tzinfo=UTC).timestamp() * 1000
        clock.go_on()
        with pytest.raises(ValueError, match="the clock cannot go back"):
            clock.advance(seconds=-1)
        broker.reset()
        assert abs(clock.time_ms - datetime.now(UTC).timestamp() * 1000) < 60_000

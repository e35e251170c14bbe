"""The connection creation rate (KIP-612), with a manual clock."""

import pytest

from barnabas.clock import ManualClock
from barnabas.security.quotas import connections
from barnabas.security.quotas.connections import UNLIMITED, ConnectionRates
from barnabas.security.quotas.rates import Windows


def rates(clock, of_broker=UNLIMITED, addresses=None, protected=None, **of_listeners):
    return ConnectionRates(
        clock.monotonic,
        Windows(),
        of_broker=of_broker,
        of_listeners=of_listeners,
        addresses={(("ip", address is not None, address or ""),): rate for address, rate in (addresses or {}).items()},
        protected=protected,
    )


@pytest.fixture
def clock():
    return ManualClock()


def test_a_listener_waits_when_its_ten_seconds_worth_is_used_up(clock):
    found = rates(clock, OUTSIDE=5)
    assert [found.arrives("OUTSIDE") for _ in range(51)] == [0] * 50 + [200]
    assert [found.arrives("INSIDE") for _ in range(100)] == [0] * 100


def test_a_wait_is_no_longer_than_a_sample(clock):
    found = rates(clock, of_broker=1)
    assert [found.arrives("OUTSIDE") for _ in range(30)][-1] == 1000


def test_the_brokers_limit_holds_for_all_but_the_listener_of_brokers(clock):
    found = rates(clock, of_broker=1, protected="INSIDE")
    for _ in range(20):
        assert found.arrives("INSIDE") == 0
    assert [found.arrives("OUTSIDE") for _ in range(11)] == [0] * 10 + [1000]


def test_the_rate_holds_within_a_tenth(clock):
    found, let_in = rates(clock, of_broker=20), 0
    start = clock.monotonic()
    while (now := clock.monotonic() - start) < 60:
        clock.advance(found.arrives("OUTSIDE") / 1000 + 0.001)
        let_in += now >= 30
    assert let_in == pytest.approx(600, rel=0.1)


def test_who_is_refused_does_not_count(clock):
    found = rates(clock, of_broker=100, addresses={"10.0.0.1": 1, None: 2})
    refused = []
    for _ in range(13):
        assert found.arrives("OUTSIDE") == 0
        refused.append(found.refuses("OUTSIDE", "10.0.0.1"))
    assert refused == [0] * 10 + [1000] * 3
    assert [found.refuses("OUTSIDE", "10.0.0.2") for _ in range(21)] == [0] * 20 + [500]
    clock.advance(12)
    assert found.refuses("OUTSIDE", "10.0.0.1") == 0


def test_a_new_limit_knows_what_came_before(clock):
    before = rates(clock, OUTSIDE=5, addresses={None: 5})
    for _ in range(50):
        before.arrives("OUTSIDE")
        before.refuses("OUTSIDE", "10.0.0.1")
    after = rates(clock, OUTSIDE=5, addresses={"10.0.0.1": 4}).taking_over(before)
    assert after.arrives("OUTSIDE") > 0
    assert after.refuses("OUTSIDE", "10.0.0.1") > 0


def test_addresses_that_are_idle_are_forgotten(clock, monkeypatch):
    monkeypatch.setattr(connections, "MOST_ADDRESSES", 10)
    found = rates(clock, addresses={None: 1})
    for number in range(50):
        found.refuses("OUTSIDE", f"10.0.0.{number}")
        clock.advance(3)
    assert len(found._by_address) <= 11

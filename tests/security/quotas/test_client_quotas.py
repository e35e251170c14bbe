"""The quota usage of requests, and the throttle times of responses."""

import pytest

from barnabas.clock import ManualClock
from barnabas.errors import ThrottlingQuotaExceeded
from barnabas.security.quotas import client_quotas
from barnabas.security.quotas.client_quotas import ClientQuotas
from barnabas.security.quotas.rates import Windows

ALICE, APP, ANY_APP = (("user", True, "alice"),), (("client-id", True, "app"),), (("client-id", False, ""),)


class Node:
    """Quotas, and a clock that only the test advances."""

    def __init__(self, *quotas):
        self.clock = ManualClock()
        self.quotas = ClientQuotas(self.clock.monotonic)
        self.quotas.change(quotas)

    def meter(self, size=0, user="alice", client_id="app"):
        return self.quotas.meter(user, client_id, size)

    def produce(self, size, **client):
        meter = self.meter(size, **client)
        if meter is None:
            return 0
        meter.count_produced()
        return meter.throttle_ms

    def take(self, seconds, **client):
        meter = self.meter(**client)
        if meter is None:
            return 0
        self.clock.advance(seconds)
        meter.count_time()
        return meter.throttle_ms


def test_bytes_of_produce_requests_count_for_their_user():
    node = Node((ALICE, "producer_byte_rate", 1000.0))
    assert node.produce(10_000) == 0
    assert node.produce(500) == 500
    assert node.produce(500, client_id="other") == 1000
    assert node.produce(10**9, user="bob") == 0


def test_each_client_id_has_the_default_for_itself():
    node = Node((ANY_APP, "producer_byte_rate", 1000.0))
    assert node.produce(20_000) == 10_000
    assert node.produce(20_000, client_id="other") == 10_000
    assert node.produce(1, user="bob") > 10_000
    assert node.produce(20_000, client_id=None) == 10_000


def test_a_response_over_the_quota_is_refused_and_does_not_count():
    node = Node((ALICE, "consumer_byte_rate", 1000.0))
    for _ in range(3):
        meter = node.meter()
        assert meter.most_fetched() == 10_000
        assert meter.refuses_fetched(11_000)
        assert meter.throttle_ms == 1000
    assert not node.meter().refuses_fetched(10_000)


@pytest.mark.parametrize("bound", [float("nan"), float("inf"), 1e12])
def test_a_quota_that_bounds_nothing_bounds_no_fetch(bound):
    assert Node((ALICE, "consumer_byte_rate", bound)).meter().most_fetched() is None
    assert Node((ALICE, "producer_byte_rate", 1.0)).meter().most_fetched() is None


def test_time_counts_in_percent_of_the_loop():
    node = Node((ALICE, "request_percentage", 1.0))
    assert node.take(0.1) == 0
    assert node.take(0.001) > 0
    assert node.take(5) == 1000, "no more than a sample"
    assert node.take(5, user="bob") == 0


def test_time_that_a_request_waits_does_not_count():
    node = Node((ALICE, "request_percentage", 1.0))
    meter = node.meter()
    node.clock.advance(0.05)
    meter.stop()
    node.clock.advance(3)
    meter.go_on()
    node.clock.advance(0.049)
    meter.count_time()
    assert meter.throttle_ms == 0
    node.clock.advance(0.001)
    meter.count_time()
    assert meter.throttle_ms == 0, "the client has been told"
    assert node.take(0.002) > 0


def test_a_fetch_over_the_quota_for_time_is_refused_too():
    node = Node((ALICE, "request_percentage", 1.0), (ALICE, "consumer_byte_rate", 1000.0))
    node.take(0.2)
    assert node.meter().refuses_fetched(100)
    node.clock.advance(60)
    assert not node.meter().refuses_fetched(10_000)


def test_another_brokers_request_costs_nothing():
    node = Node((ALICE, "request_percentage", 1.0))
    meter = node.meter()
    meter.is_exempt = True
    node.clock.advance(10)
    meter.count_time()
    assert meter.throttle_ms == 0


def test_a_change_holds_at_once_and_forgets_nothing():
    node = Node((ALICE, "producer_byte_rate", 1000.0))
    node.produce(10_000)
    node.quotas.change([(ALICE, "producer_byte_rate", 500.0)])
    assert node.produce(0) == 10_000
    node.quotas.change([])
    assert node.produce(10**9) == 0


# ---------------------------------------------------------------- changes of the cluster


def test_a_strict_quota_goes_below_zero_once_then_refuses():
    node = Node((ALICE, "controller_mutation_rate", 1.0))
    meter = node.meter()
    mutations = meter.mutations(is_strict=True)
    mutations.begin()
    mutations.count(15)
    assert mutations.throttle_ms == 0
    with pytest.raises(ThrottlingQuotaExceeded):
        mutations.count(1)
    assert mutations.throttle_ms == 4000
    node.clock.advance(1)
    assert mutations.throttle_ms == 3000
    meter.count_mutations()
    assert meter.throttle_ms == 3000
    node.clock.advance(3)
    again = node.meter().mutations(is_strict=True)
    again.count(1)
    assert again.throttle_ms == 0


def test_a_permissive_quota_refuses_nothing_and_throttles():
    node = Node((ALICE, "controller_mutation_rate", 1.0))
    mutations = node.meter().mutations(is_strict=False)
    mutations.count(15)
    mutations.count(1)
    assert mutations.throttle_ms == 5000


def test_what_is_decided_again_counts_once():
    node = Node((ALICE, "controller_mutation_rate", 1.0))
    mutations = node.meter().mutations(is_strict=True)
    for _ in range(2):
        mutations.begin()
        mutations.count(11)
    node.meter().mutations(is_strict=True).count(1)
    last = node.meter().mutations(is_strict=True)
    with pytest.raises(ThrottlingQuotaExceeded):
        last.count(1)
    assert last.throttle_ms == 1000


def test_there_is_no_quota_where_none_is_set():
    assert Node().meter() is None
    meter = Node((ALICE, "request_percentage", 100.0)).meter()
    assert meter.mutations(is_strict=True) is None
    meter.count_mutations()
    meter.count_produced()
    assert not meter.refuses_fetched(10**9)


# ---------------------------------------------------------------- memory


def test_names_that_a_client_makes_up_are_forgotten(monkeypatch):
    monkeypatch.setattr(client_quotas, "MOST_CLIENTS", 10)
    node = Node((ANY_APP, "producer_byte_rate", 1000.0), (ANY_APP, "controller_mutation_rate", 1.0))
    for number in range(100):
        node.produce(1, client_id=f"made-up-{number}")
        node.clock.advance(2)
    node.produce(20_000)
    assert len(node.quotas._rates) <= 20
    assert len(node.quotas._buckets) <= 20
    node.quotas._forget_idle()
    assert node.produce(1) > 0, "what still counts is kept"


def test_windows_are_configurable():
    clock = ManualClock()
    quotas = ClientQuotas(clock.monotonic, Windows(3, 2000))
    quotas.change([(ALICE, "producer_byte_rate", 1000.0)])
    meter = quotas.meter("alice", None, 4500)
    meter.count_produced()
    assert meter.throttle_ms == 500

"""When client instances may request subscriptions and push metrics, as in Apache Kafka 4.3.1 with a telemetry receiver.

The subscription ids are those of Apache Kafka for the same instance.
"""

from random import Random
from types import SimpleNamespace

import pytest

from barnabas.broker import telemetry as module
from barnabas.broker.telemetry import Telemetry
from barnabas.clock import ManualClock
from barnabas.config.dynamic import CLIENT_METRICS_RESOURCE, TOPIC_RESOURCE
from barnabas.deadlines import Deadlines
from barnabas.errors import (
    InvalidRecord,
    InvalidRequest,
    TelemetryTooLarge,
    ThrottlingQuotaExceeded,
    UnknownSubscriptionId,
    UnsupportedCompressionType,
)
from barnabas.records.batch import Compression
from barnabas.records.compression import compress

ID = bytes(range(16))
NOTHING_SUBSCRIBED = -725132322
PRODUCERS_EACH_SECOND = 690914681
ALL_EACH_HALF_SECOND = -1421846341
CLIENT = {
    "client_id": "raw",
    "client_software_name": "rawsoft",
    "client_software_version": "1.2",
    "client_source_address": "127.0.0.1",
    "client_source_port": "4711",
}


class Bench(SimpleNamespace):
    def __init__(self):
        self.clock = ManualClock()
        self.configs = {}
        self.taken = []
        self.telemetry = Telemetry(
            lambda: self.configs, 2000, Deadlines(self.clock, self.clock), Random(1).randbytes, self.receive
        )

    def receive(self, pushed):
        if pushed.data == b"garbage":
            raise ValueError("no metrics")
        self.taken.append((pushed.instance.instance_id, pushed.data))

    def subscribe(self, name, **configs):
        mine = {key.replace("_", "."): value for key, value in configs.items()}
        self.configs = {**self.configs, (CLIENT_METRICS_RESOURCE, name): mine}
        if not mine:
            del self.configs[CLIENT_METRICS_RESOURCE, name]

    def ask(self, instance_id=ID, connection=1, **client):
        return self.telemetry.ask(instance_id, {**CLIENT, **client}, connection, self.clock.time_ms())

    def push(self, data=b"metrics", subscription=None, *, instance_id=ID, connection=1, codec=0, terminating=False):
        if subscription is None:
            subscription = self.telemetry.instances[instance_id].subscription_id
        self.telemetry.push(
            instance_id, CLIENT, connection, self.clock.time_ms(),
            subscription=subscription, terminating=terminating, codec=codec, metrics=data,
        )  # fmt: skip


@pytest.fixture
def bench():
    return Bench()


def subscription_of(instance):
    return instance.subscription_id, instance.interval_ms, list(instance.metrics)


def test_a_client_without_an_id_gets_one(bench):
    first, second = bench.ask(bytes(16)), bench.ask(bytes(16))
    assert first.instance_id != second.instance_id
    assert subscription_of(first)[1:] == (300_000, [])
    assert subscription_of(bench.ask()) == (NOTHING_SUBSCRIBED, 300_000, [])


def test_what_matching_subscriptions_say_together(bench):
    bench.subscribe(
        "a",
        metrics="org.apache.kafka.producer.",
        interval_ms="1000",
        match="client_id=ra.*,client_software_name=rawsoft",
    )
    assert subscription_of(bench.ask()) == (PRODUCERS_EACH_SECOND, 1000, ["org.apache.kafka.producer."])
    bench.subscribe("b", metrics="org.apache.kafka.consumer.", interval_ms="500")
    assert subscription_of(bench.ask())[1:] == (500, ["org.apache.kafka.consumer.", "org.apache.kafka.producer."])
    bench.subscribe("c", metrics="*", match="client_source_address=127.*,client_source_port=[0-9]+")
    assert subscription_of(bench.ask()) == (ALL_EACH_HALF_SECOND, 500, ["*"])
    for name in "abc":
        bench.subscribe(name)
    assert subscription_of(bench.ask()) == (NOTHING_SUBSCRIBED, 300_000, [])


@pytest.mark.parametrize(
    ("match", "matches"),
    [
        ("client_id=ra", False),  # a pattern matches the whole text
        ("client_id=raw", True),
        ("client_id=(?=r)raw", True),  # RE2 refuses it, java.util.regex does not
        ("client_software_version=1\\..*", True),
        ("client_id=raw,client_source_port=1", False),
        ("client_instance_id=AAEC.*", True),
        ("client_id=raw , client_software_name = rawsoft", True),
    ],
)
def test_patterns(bench, match, matches):
    bench.subscribe("a", metrics="x", match=match)
    assert bench.ask().metrics == (("x",) if matches else ())


def test_an_unknown_attribute_matches_no_pattern(bench):
    bench.subscribe("a", metrics="x", match="client_source_port=.*")
    assert bench.ask(client_source_port=None).metrics == ()


def test_another_resource_changes_no_subscription(bench):
    bench.ask()
    bench.configs = {**bench.configs, (TOPIC_RESOURCE, "orders"): {"retention.ms": "1"}}
    with pytest.raises(ThrottlingQuotaExceeded):
        bench.ask()


def test_a_client_that_asks_too_early_is_throttled(bench):
    bench.subscribe("a", metrics="x", interval_ms="1000")
    bench.ask()
    bench.clock.advance(0.9)
    with pytest.raises(ThrottlingQuotaExceeded):
        bench.ask(connection=2)
    bench.clock.advance(0.1)
    bench.ask()
    assert bench.telemetry.throttled == 1


def test_a_client_pushes_after_its_first_request_and_then_once_an_interval(bench):
    bench.subscribe("a", metrics="x", interval_ms="1000")
    bench.ask()
    bench.clock.advance(0.001)
    bench.push(b"1")
    with pytest.raises(ThrottlingQuotaExceeded):
        bench.push(b"2")
    bench.clock.advance(1)
    bench.push(b"3")
    assert bench.taken == [(ID, b"1"), (ID, b"3")]
    assert (bench.telemetry.received, bench.telemetry.throttled) == (2, 1)


def test_a_client_pushes_for_the_last_time_at_any_time(bench):
    bench.ask()
    bench.push(b"1")
    bench.push(b"2", terminating=True)
    with pytest.raises(InvalidRequest):
        bench.push(b"3")
    assert [data for _, data in bench.taken] == [b"1", b"2"]


def test_after_a_change_the_client_has_to_ask_and_may_at_once(bench):
    bench.subscribe("a", metrics="x", interval_ms="1000")
    old = bench.ask().subscription_id
    bench.subscribe("a", metrics="y", interval_ms="1000")
    with pytest.raises(UnknownSubscriptionId):
        bench.push(subscription=old)
    assert bench.ask().metrics == ("y",)
    assert bench.telemetry.unknown_subscriptions == 1
    with pytest.raises(ThrottlingQuotaExceeded):  # the push counts, although it failed
        bench.push()


def test_a_push_to_another_broker_makes_an_instance_that_has_to_ask(bench):
    with pytest.raises(UnknownSubscriptionId):
        bench.push(subscription=1)
    assert bench.ask().last_error == 0


@pytest.mark.parametrize("instance_id", [bytes(16), bytes(15) + b"\1"])
def test_reserved_ids_push_nothing(bench, instance_id):
    with pytest.raises(InvalidRequest):
        bench.push(subscription=1, instance_id=instance_id)
    assert not bench.telemetry.instances


@pytest.mark.parametrize("codec", list(Compression))
def test_every_codec_is_unpacked(bench, codec):
    bench.ask()
    bench.push(compress(codec, b"metrics" * 50), codec=codec)
    assert bench.taken == [(ID, b"metrics" * 50)]


@pytest.mark.parametrize(
    ("codec", "data", "error", "may_ask"),
    [
        (5, b"", UnsupportedCompressionType, True),
        (-1, b"", UnsupportedCompressionType, True),
        (0, bytes(2001), TelemetryTooLarge, False),
        (4, compress(Compression.ZSTD, bytes(2001)), TelemetryTooLarge, False),
        (1, b"abc", InvalidRecord, False),
        (0, b"garbage", InvalidRecord, False),
    ],
)
def test_what_is_refused(bench, codec, data, error, may_ask):
    bench.ask()
    with pytest.raises(error):
        bench.push(data, codec=codec)
    assert bench.taken == []
    if may_ask:
        bench.ask()
    else:
        with pytest.raises(ThrottlingQuotaExceeded):
            bench.ask()


def test_an_empty_push_is_taken_and_goes_nowhere(bench):
    bench.ask()
    bench.push(b"")
    assert bench.taken == []
    assert bench.telemetry.received == 0


def test_an_instance_ends_with_its_connection(bench):
    bench.ask(connection=7)
    bench.telemetry.disconnected(8)
    assert list(bench.telemetry.instances) == [ID]
    bench.telemetry.disconnected(7)
    assert not bench.telemetry.instances
    bench.clock.advance(3600)
    bench.ask(connection=7)


@pytest.mark.parametrize(("interval_ms", "expiry_s"), [(1000, 60), (30_000, 90)])
def test_a_silent_instance_is_forgotten(bench, interval_ms, expiry_s):
    bench.subscribe("a", metrics="x", interval_ms=str(interval_ms))
    bench.ask()
    bench.clock.advance(expiry_s - 1)
    bench.push()
    bench.clock.advance(expiry_s - 1)
    assert list(bench.telemetry.instances) == [ID]
    bench.clock.advance(1)
    assert not bench.telemetry.instances


def test_of_too_many_instances_the_longest_silent_is_forgotten(bench, monkeypatch):
    monkeypatch.setattr(module, "MOST_INSTANCES", 2)
    first, second = (bench.ask(bytes(16), connection).instance_id for connection in (1, 2))
    bench.push(instance_id=first)
    third = bench.ask(bytes(16), 3).instance_id
    assert list(bench.telemetry.instances) == [first, third]
    assert second not in bench.telemetry.instances

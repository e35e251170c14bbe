"""Configs of groups in effect, and the bounds that the broker sets them and keeps itself."""

import pytest

from barnabas.config import BrokerConfig
from barnabas.config.bounds import BOUNDS
from barnabas.config.definitions import BROKER, of_groups
from barnabas.config.group import GroupSettings
from barnabas.config.validators import ConfigError

KINDS = ("consumer", "share", "streams")


def settings(own, **broker):
    properties = {name.replace("_", "."): value for name, value in broker.items()}
    return GroupSettings(BrokerConfig.from_properties(properties), own)


def test_what_is_not_set_is_the_brokers():
    assert settings({}, group_consumer_session_timeout_ms="50000")["consumer.session.timeout.ms"] == 50_000
    assert settings({})["share.auto.offset.reset"] == "latest"
    assert settings({}, group_streams_num_standby_replicas="1")["streams.num.standby.replicas"] == 1


def test_what_is_set_goes_before_it():
    own = {"consumer.session.timeout.ms": "46000", "share.renew.acknowledge.enable": "false"}
    assert settings(own)["consumer.session.timeout.ms"] == 46_000
    assert settings(own)["share.renew.acknowledge.enable"] is False


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("consumer.session.timeout.ms", "1", 45_000),
        ("consumer.session.timeout.ms", "99999999", 60_000),
        ("consumer.heartbeat.interval.ms", "16000", 15_000),
        ("consumer.assignment.interval.ms", "20000", 15_000),
        ("share.delivery.count.limit", "11", 10),
        ("share.record.lock.duration.ms", "1000", 15_000),
        ("streams.num.standby.replicas", "9", 2),
    ],
)
def test_what_is_set_beyond_the_brokers_bounds_counts_as_the_bound(name, text, value):
    assert settings({name: text})[name] == value


def test_all_bounds_are_configs():
    assert of_groups().keys() >= BOUNDS.keys()
    for least, most in BOUNDS.values():
        assert most in BROKER
        assert least is None or least in BROKER


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *((f"group.{kind}.session.timeout.ms", "44999") for kind in KINDS),
        *((f"group.{kind}.session.timeout.ms", "60001") for kind in KINDS),
        *((f"group.{kind}.max.session.timeout.ms", "44999") for kind in KINDS),
        *((f"group.{kind}.heartbeat.interval.ms", "4999") for kind in KINDS),
        *((f"group.{kind}.assignment.interval.ms", "15001") for kind in KINDS),
        ("group.share.min.delivery.count.limit", "6"),
        ("group.share.max.share.sessions", "199"),
        ("group.share.assignors", "other"),
        ("group.consumer.assignors", "uniform,org.example.MyAssignor"),
        ("group.streams.num.standby.replicas", "3"),
    ],
)
def test_the_broker_keeps_its_own_bounds(name, text):
    with pytest.raises(ConfigError, match=r"group\."):
        BrokerConfig.from_properties({name: text})


@pytest.mark.parametrize("kind", KINDS)
def test_members_send_heartbeats_before_they_are_missed(kind):
    slow = {f"group.{kind}.heartbeat.interval.ms": "45000", f"group.{kind}.max.heartbeat.interval.ms": "50000"}
    with pytest.raises(ConfigError, match=r"less than group\..*session"):
        BrokerConfig.from_properties(slow)


@pytest.mark.parametrize("kind", KINDS)
def test_in_development_groups_settle_at_once(kind):
    config = BrokerConfig.from_properties({}, dev=True)
    found = GroupSettings(config, {f"{kind}.session.timeout.ms": "6000"})
    assert found[f"{kind}.heartbeat.interval.ms"] == 200
    assert found[f"{kind}.assignment.interval.ms"] == 0
    assert found[f"{kind}.session.timeout.ms"] == 6000


def test_assignors_may_be_named_as_kafka_3_named_them():
    names = [f"org.apache.kafka.coordinator.group.assignor.{each}Assignor" for each in ("Uniform", "Range", "Simple")]
    BrokerConfig.from_properties({"group.consumer.assignors": ",".join(names[:2]), "group.share.assignors": names[2]})
    with pytest.raises(ConfigError, match="one assignor"):
        BrokerConfig.from_properties({"group.share.assignors": f"simple,{names[2]}"})

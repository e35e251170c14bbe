"""What may be set while the broker runs; codes as seen of Apache Kafka 4.3.1."""

import re

import pytest

from barnabas.config import BrokerConfig
from barnabas.config.dynamic import ConfigRules, validate_topic_configs
from barnabas.config.listener_configs import declaration_of
from barnabas.errors import InvalidConfig, InvalidRequest

CONFIG = BrokerConfig.from_properties({"log.retention.hours": "5"})
RULES = ConfigRules(lambda: CONFIG)
TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = (2, "t"), (4, "1"), (8, "1"), (16, "s"), (32, "g")
ALL_BROKERS = (4, "")


@pytest.mark.parametrize(
    ("resource", "configs"),
    [
        (TOPIC, {}),
        (TOPIC, {"retention.ms": " 5 ", "cleanup.policy": ""}),
        (TOPIC, {"cleanup.policy": " compact,delete,compact"}),
        (TOPIC, {"internal.segment.bytes": "100"}),
        (TOPIC, {"local.retention.ms": "999999999999"}),
        (TOPIC, {"retention.bytes": "-5"}),
        (BROKER, {"log.retention.ms": " 7000 "}),
        (BROKER, {"log.retention.ms": "-2"}),
        (BROKER, {"nope.nope": "5"}),
        (BROKER, {"retention.ms": "5"}),
        (BROKER, {"listener.name.plaintext.max.connections": "7"}),
        (BROKER, {"listener.name.plaintext.ssl.keystore.type": "PEM"}),
        (BROKER, {"listener.name.plaintext.num.partitions": "5"}),
        (BROKER, {"leader.replication.throttled.rate": "100"}),
        (BROKER, {"num.io.threads": "16"}),
        (BROKER, {"num.io.threads": "4"}),
        (BROKER, {"log.cleaner.min.compaction.lag.ms": "100", "log.cleaner.max.compaction.lag.ms": "10"}),
        (BROKER, {"sasl.enabled.mechanisms": "x"}),
        (ALL_BROKERS, {"log.retention.ms": "7000"}),
        (ALL_BROKERS, {"listener.name.plaintext.max.connections": "7"}),
        (GROUP, {"consumer.session.timeout.ms": "50000", "share.auto.offset.reset": "earliest"}),
        (GROUP, {"share.isolation.level": "read_committed"}),
        (CLIENT_METRICS, {"interval.ms": "5000", "metrics": "*", "match": "client_id=a,client_source_port=1"}),
        (CLIENT_METRICS, {"metrics": "a,a"}),
    ],
)
def test_what_may_be_set(resource, configs):
    RULES.check(resource, configs)


@pytest.mark.parametrize(
    ("resource", "configs"),
    [
        (TOPIC, {"retention.ms": "x"}),
        (TOPIC, {"retention.ms": "-5"}),
        (TOPIC, {"nope": "x"}),
        (TOPIC, {"": "x"}),
        (TOPIC, {"log.retention.ms": "5"}),
        (TOPIC, {"cleanup.policy": "delete,"}),
        (TOPIC, {"cleanup.policy": ","}),
        (TOPIC, {"segment.bytes": ""}),
        (TOPIC, {"segment.bytes": "100"}),
        (TOPIC, {"remote.storage.enable": "true"}),
        (TOPIC, {"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"}),
        (TOPIC, {"message.timestamp.type": "createtime"}),
        (TOPIC, {"compression.zstd.level": "99"}),
        (TOPIC, {"leader.replication.throttled.replicas": "x"}),
        (GROUP, {"consumer.session.timeout.ms": "1"}),
        (GROUP, {"consumer.session.timeout.ms": "100000"}),
        (GROUP, {"consumer.heartbeat.interval.ms": "50"}),
        (GROUP, {"streams.num.standby.replicas": "3"}),
        (GROUP, {"share.delivery.count.limit": "11"}),
        (GROUP, {"share.record.lock.duration.ms": "1000"}),
        (GROUP, {"share.partition.max.record.locks": "100000"}),
        (GROUP, {"consumer.assignment.interval.ms": "20000"}),
        (GROUP, {"share.renew.acknowledge.enable": "maybe"}),
        (GROUP, {"nope": "1"}),
        (CLIENT_METRICS, {"interval.ms": "x"}),
        (CLIENT_METRICS, {"match": "nope=a"}),
        (CLIENT_METRICS, {"match": "client_id"}),
        (CLIENT_METRICS, {"match": "client_id=["}),
    ],
)
def test_what_is_an_invalid_config(resource, configs):
    with pytest.raises(InvalidConfig):
        RULES.check(resource, configs)


@pytest.mark.parametrize(
    ("resource", "configs"),
    [
        (BROKER, {"num.partitions": "5"}),
        (BROKER, {"node.id": "1"}),
        (BROKER, {"log.retention.hours": "9"}),
        (BROKER, {"max.connections": "5", "num.partitions": "5"}),
        (BROKER, {"log.retention.ms": "x"}),
        (BROKER, {"log.retention.ms": "0"}),
        (BROKER, {"log.roll.ms": "0"}),
        (BROKER, {"ssl.keystore.password": "q"}),
        (BROKER, {"leader.replication.throttled.rate": "-1"}),
        (BROKER, {"listener.name.plaintext.max.connections": "x"}),
        (BROKER, {"listener.security.protocol.map": "x"}),
        (BROKER, {"num.io.threads": "17"}),
        (BROKER, {"num.io.threads": "3"}),
        (BROKER, {"log.cleaner.threads": "0"}),
        (BROKER, {"group.consumer.assignment.interval.ms": "99999999"}),
        (BROKER, {"log.local.retention.ms": "99999999999"}),
        (BROKER, {"cordoned.log.dirs": "/nope"}),
        (BROKER, {"max.connections.per.ip.overrides": "x"}),
        (ALL_BROKERS, {"listener.security.protocol.map": "A:SSL"}),
        (ALL_BROKERS, {"listener.name.plaintext.ssl.keystore.type": "PEM"}),
        (ALL_BROKERS, {"listener.name.plaintext.num.partitions": "5"}),
        (ALL_BROKERS, {"sasl.jaas.config": "x"}),
        (CLIENT_METRICS, {"interval.ms": "50"}),
        (CLIENT_METRICS, {"interval.ms": "3600001"}),
        (CLIENT_METRICS, {"nope": "a"}),
        (LOGGER, {"root": "INFO"}),
        ((3, "x"), {}),
    ],
)
def test_what_is_an_invalid_request(resource, configs):
    with pytest.raises(InvalidRequest):
        RULES.check(resource, configs)


def test_a_list_is_what_kafka_has_where_nothing_is_set():
    assert RULES.list_of(TOPIC, "cleanup.policy") == ["delete"]
    assert RULES.list_of(TOPIC, "leader.replication.throttled.replicas") == []
    assert RULES.list_of(BROKER, "log.cleanup.policy") == ["delete"]
    for resource, name in ((TOPIC, "retention.ms"), (TOPIC, "nope"), (CLIENT_METRICS, "metrics"), (GROUP, "nope")):
        assert RULES.list_of(resource, name) is None


def test_an_error_says_name_value_and_what_would_be_right():
    text = "Invalid value -5 for configuration retention.ms: Value must be at least -1"
    with pytest.raises(InvalidConfig, match=f"^{re.escape(text)}$"):
        validate_topic_configs({"retention.ms": "-5"})


@pytest.mark.parametrize(
    ("name", "declared"),
    [
        ("num.partitions", "num.partitions"),
        ("listener.name.plaintext.max.connections", "max.connections"),
        ("listener.name.x.plain.sasl.jaas.config", "sasl.jaas.config"),
        ("listener.name.x.sasl.enabled.mechanisms", "sasl.enabled.mechanisms"),
        ("listener.name.x.nope", None),
        ("listener.name.x", None),
        ("nope", None),
    ],
)
def test_a_listeners_prefix_is_looked_through(name, declared):
    found = declaration_of(name)
    assert (found.name if found else None) == declared

"""What DescribeConfigs tells, as seen of Apache Kafka 4.3.1 with the same properties and the same changes."""

import pytest

from barnabas.config import BrokerConfig
from barnabas.config.describe import (
    ConfigSource,
    describe_broker,
    describe_client_metrics,
    describe_cluster_default,
    describe_created_topic,
    describe_group,
    describe_topic,
)

START = BrokerConfig.from_properties({
    "log.retention.hours": "5",
    "log.roll.ms": "70000000",
    "num.partitions": "3",
    "foo.bar": "x",
    "listener.name.plaintext.ssl.keystore.password": "secret",
    "listener.name.plaintext.max.connections": "50",
    "log.cleanup.policy": "delete, compact",
    "ssl.keystore.password": "pw",
    "compression.zstd.level": "5",
})  # fmt: skip
CHANGED = START.with_dynamic(
    {"compression.zstd.level": "6", "log.retention.ms": " 8 ", "nope.nope": "5"},
    {"compression.zstd.level": "7", "listener.name.plaintext.max.connections": "7", "log.cleanup.policy": ""},
)


def one(described):
    (config,) = described
    synonyms = [(synonym.name, synonym.value, int(synonym.source)) for synonym in config.synonyms]
    return config.value, int(config.source), config.read_only, config.sensitive, int(config.type), synonyms


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("log.retention.hours", ("5", 4, True, False, 3,
            [("log.retention.hours", "5", 4), ("log.retention.hours", "168", 5)])),
        ("log.retention.ms", (None, 5, False, False, 5, [])),
        ("log.retention.minutes", (None, 5, True, False, 3, [])),
        ("log.roll.ms", ("70000000", 4, False, False, 5,
            [("log.roll.ms", "70000000", 4), ("log.roll.hours", "168", 5)])),
        ("log.roll.hours", ("168", 5, True, False, 3, [("log.roll.hours", "168", 5)])),
        ("num.partitions", ("3", 4, True, False, 3, [("num.partitions", "3", 4), ("num.partitions", "1", 5)])),
        ("foo.bar", (None, 4, True, True, 0, [("foo.bar", None, 4)])),
        ("ssl.keystore.password", (None, 4, False, True, 9, [("ssl.keystore.password", None, 4)])),
        ("node.id", ("1", 4, True, False, 3, [("node.id", "1", 4)])),
        ("broker.id", ("1", 4, True, False, 3, [("broker.id", "1", 4), ("broker.id", "-1", 5)])),
        ("log.flush.interval.ms", (None, 5, False, False, 5, [])),
        ("log.cleaner.io.max.bytes.per.second", ("1.7976931348623157E308", 5, False, False, 6,
            [("log.cleaner.io.max.bytes.per.second", "1.7976931348623157E308", 5)])),
        ("log.cleanup.policy", ("delete,compact", 4, False, False, 7,
            [("log.cleanup.policy", "delete, compact", 4), ("log.cleanup.policy", "delete", 5)])),
        ("listener.name.plaintext.max.connections", ("50", 4, True, False, 3,
            [("listener.name.plaintext.max.connections", "50", 4), ("max.connections", "2147483647", 5)])),
        ("listener.name.plaintext.ssl.keystore.password", (None, 4, True, True, 9,
            [("listener.name.plaintext.ssl.keystore.password", None, 4), ("ssl.keystore.password", None, 4)])),
    ],
)  # fmt: skip
def test_a_brokers_config(name, expected):
    assert one(describe_broker(START, [name])) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("compression.zstd.level", ("7", 2, False, False, 3,
            [("compression.zstd.level", text, source) for text, source in (("7", 2), ("6", 3), ("5", 4), ("3", 5))])),
        ("listener.name.plaintext.max.connections", ("7", 2, True, False, 3,
            [("listener.name.plaintext.max.connections", "7", 2),
             ("listener.name.plaintext.max.connections", "50", 4), ("max.connections", "2147483647", 5)])),
        ("nope.nope", (None, 3, True, True, 0, [("nope.nope", None, 3)])),
        ("log.cleanup.policy", ("", 2, False, False, 7,
            [("log.cleanup.policy", "", 2), ("log.cleanup.policy", "delete, compact", 4),
             ("log.cleanup.policy", "delete", 5)])),
        ("log.retention.ms", ("8", 3, False, False, 5,
            [("log.retention.ms", " 8 ", 3), ("log.retention.hours", "5", 4), ("log.retention.hours", "168", 5)])),
    ],
)  # fmt: skip
def test_a_brokers_config_that_was_changed(name, expected):
    assert one(describe_broker(CHANGED, [name])) == expected


def test_all_of_a_broker_is_what_kafka_shows_and_what_was_set_beside():
    names = [config.name for config in describe_broker(START)]
    assert len(names) == len(set(names)) == 343
    assert {"foo.bar", "listener.name.plaintext.max.connections"} < set(names)
    assert not {"unstable.api.versions.enable", "leader.replication.throttled.rate"} & set(names)
    assert "leader.replication.throttled.rate" in [
        config.name for config in describe_broker(START.with_dynamic({}, {"leader.replication.throttled.rate": "5"}))
    ]


def test_for_all_brokers_at_once_there_is_what_was_set_and_nothing_else():
    described = describe_cluster_default(CHANGED)
    assert [(config.name, config.value, int(config.source)) for config in described] == [
        ("compression.zstd.level", "6", 3),
        ("log.retention.ms", " 8 ", 3),
        ("nope.nope", None, 3),
    ]
    assert all(
        {synonym.source for synonym in config.synonyms} == {ConfigSource.DYNAMIC_DEFAULT_BROKER} for config in described
    )


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("remote.storage.enable", ("false", 5, False, False, 1, [])),
        ("flush.ms", ("9223372036854775807", 5, False, False, 5, [])),
        ("segment.bytes", ("1073741824", 5, False, False, 3, [("log.segment.bytes", "1073741824", 5)])),
        ("retention.ms", ("5000", 1, False, False, 5, [("retention.ms", "5000", 1)])),
        ("segment.ms", ("70000000", 4, False, False, 5,
            [("log.roll.ms", "70000000", 4), ("log.roll.hours", "168", 5)])),
        ("cleanup.policy", ("compact,delete", 1, False, False, 7,
            [("cleanup.policy", "compact,delete", 1), ("log.cleanup.policy", "delete, compact", 4),
             ("log.cleanup.policy", "delete", 5)])),
        ("compression.zstd.level", ("5", 4, False, False, 3,
            [("compression.zstd.level", "5", 4), ("compression.zstd.level", "3", 5)])),
        ("internal.segment.bytes", ("100", 1, False, False, 3, [("internal.segment.bytes", "100", 1)])),
    ],
)  # fmt: skip
def test_a_topics_config(name, expected):
    own = {"retention.ms": " 5000 ", "cleanup.policy": "compact, delete", "internal.segment.bytes": "100"}
    assert one(describe_topic(START, own, [name])) == expected


def test_a_topic_of_the_name_of_its_brokers_config():
    described = one(describe_topic(CHANGED, {}, ["compression.zstd.level"]))
    assert described[:2] == ("7", 2)
    assert [source for _, _, source in described[-1]] == [2, 3, 4, 5]
    own = one(describe_topic(CHANGED, {"compression.zstd.level": "1"}, ["compression.zstd.level"]))
    assert own[:2] == ("1", 1)


def test_hours_count_but_are_not_told_as_a_source():
    assert one(describe_topic(START, {}, ["retention.ms"])) == ("18000000", 5, False, False, 5, [])


def test_all_of_a_topic():
    assert len(describe_topic(START, {})) == len(describe_topic(START, {}, [])) == 33


def test_the_response_has_the_configs_of_a_created_topic_as_given():
    described = {config.name: config for config in describe_created_topic(START, {"retention.ms": " 5000 "})}
    assert list(described) == sorted(described)
    assert len(described) == 33
    assert [
        (described[name].value, int(described[name].source)) for name in ("retention.ms", "segment.ms", "flush.ms")
    ] == [
        (" 5000 ", 1),
        ("70000000", 4),
        ("9223372036854775807", 5),
    ]
    assert (described["retention.bytes"].read_only, described["retention.bytes"].sensitive) == (False, False)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("consumer.session.timeout.ms", ("45000", 5, False, False, 3,
            [("group.consumer.session.timeout.ms", "45000", 5)])),
        ("share.isolation.level", ("read_committed", 8, False, False, 2,
            [("share.isolation.level", "read_committed", 8), ("share.isolation.level", "read_uncommitted", 5)])),
        ("share.auto.offset.reset", ("latest", 5, False, False, 2, [("share.auto.offset.reset", "latest", 5)])),
        ("streams.num.standby.replicas", ("1", 8, False, False, 3,
            [("streams.num.standby.replicas", "1", 8), ("group.streams.num.standby.replicas", "0", 5)])),
    ],
)  # fmt: skip
def test_a_groups_config(name, expected):
    own = {"share.isolation.level": "read_committed", "streams.num.standby.replicas": "1"}
    assert one(describe_group(START, own, [name])) == expected


def test_all_of_a_group():
    assert len(describe_group(START, {})) == 17


def test_a_subscription_to_metrics():
    described = {
        config.name: (config.value, int(config.source), len(config.synonyms)) for config in describe_client_metrics({})
    }
    assert described == {"interval.ms": ("300000", 5, 0), "match": ("", 5, 0), "metrics": ("", 5, 0)}
    assert one(describe_client_metrics({"metrics": "a,b"}, ["metrics"])) == (
        "a,b",
        7,
        False,
        False,
        7,
        [("metrics", "a,b", 7)],
    )


def test_repeated_items_are_told_once():
    assert describe_topic(START, {"cleanup.policy": "delete,delete"}, ["cleanup.policy"])[0].value == "delete"
    assert describe_client_metrics({"metrics": "a,a"}, ["metrics"])[0].value == "a"


def test_what_cannot_be_read_is_told_as_it_is():
    described = one(describe_topic(START, {"retention.ms": "x"}, ["retention.ms"]))
    assert described == ("x", 1, False, False, 5, [("retention.ms", "x", 1)])


def test_a_created_topic_tells_what_its_broker_was_given_as_it_was_given():
    described = {config.name: (config.value, int(config.source)) for config in describe_created_topic(START, {})}
    assert described["cleanup.policy"] == ("delete, compact", 4)
    assert described["retention.ms"] == ("18000000", 4)


def test_a_rate_without_a_default_is_described_without_one():
    config = START.with_dynamic({}, {"leader.replication.throttled.rate": "100"})
    assert one(describe_broker(config, ["leader.replication.throttled.rate"]))[-1] == [
        ("leader.replication.throttled.rate", "100", 2)
    ]


def test_documentation_is_there_for_what_is_known():
    assert describe_broker(START, ["num.partitions"])[0].documentation
    assert describe_broker(START, ["foo.bar"])[0].documentation is None
    assert describe_topic(START, {}, ["retention.ms"])[0].documentation


def test_the_default_of_a_cluster_of_one_node():
    name = "offsets.topic.replication.factor"
    alone = BrokerConfig({}).with_single_node(True)
    assert one(describe_broker(alone, [name])) == ("1", 5, True, False, 4, [(name, "1", 5)])
    assert one(describe_broker(alone.with_single_node(False), [name]))[0] == "3"


def test_a_value_that_is_set_on_a_cluster_of_one_node():
    name = "offsets.topic.replication.factor"
    alone = BrokerConfig.from_properties({name: "2"}).with_single_node(True)
    assert one(describe_broker(alone, [name])) == ("2", 4, True, False, 4, [(name, "2", 4), (name, "3", 5)])

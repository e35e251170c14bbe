import logging

import pytest

from barnabas.config import BrokerConfig, ConfigError, Endpoint, TopicConfig
from barnabas.config.definitions import BROKER


def config(**properties):
    return BrokerConfig.from_properties({name.replace("_", "."): value for name, value in properties.items()})


def test_without_properties_it_is_kafkas_defaults():
    bare = config()
    for name, definition in BROKER.items():
        if name not in ("node.id", "broker.id", "process.roles", "controller.listener.names"):
            assert bare[name] == definition.default, name
    assert bare.topic() == TopicConfig()
    assert (bare.node_id, bare.log_dirs) == (1, ["/tmp/kafka-logs"])
    assert bare.listeners == bare.advertised_listeners == (Endpoint("PLAINTEXT", "", 9092, "PLAINTEXT"),)
    with pytest.raises(KeyError):
        bare["no.such.config"]


def test_a_value_is_parsed_and_the_text_kept():
    given = config(num_partitions=" 3 ")
    assert given["num.partitions"] == 3
    assert given.originals["num.partitions"] == " 3 "


def test_a_wrong_value_says_what_would_be_right():
    with pytest.raises(
        ConfigError, match=r"^Invalid value many for configuration num\.partitions: Not a number of type"
    ):
        config(num_partitions="many")


@pytest.mark.parametrize(
    ("properties", "node_id"),
    [({"node.id": "0"}, 0), ({"broker.id": "7"}, 7), ({"broker.id": "-1"}, 1), ({"node.id": "3", "broker.id": "3"}, 3)],
)
def test_node_id_and_broker_id_are_one(properties, node_id):
    given = BrokerConfig.from_properties(properties)
    assert given.node_id == given["node.id"] == node_id
    assert given["broker.id"] in (node_id, -1)


@pytest.mark.parametrize(
    ("properties", "culprit"),
    [
        ({"node.id": "1", "broker.id": "2"}, "broker.id"),
        ({"log.retention.hours": "0"}, "log.retention.hours"),
        ({"log.cleaner.threads": "0"}, "log.cleaner.threads"),
        ({"log.cleaner.dedupe.buffer.size": "1048576"}, "log.cleaner.dedupe.buffer.size"),
        ({"log.cleaner.threads": "128"}, "log.cleaner.dedupe.buffer.size"),
        ({"log.roll.ms": "0"}, "log.roll.ms"),
        ({"listeners": "PLAINTEXT://:9092,SSL://:9092"}, "listeners"),
        ({"listeners": "CONTROLLER://:9093"}, "listeners"),
        ({"listeners": "OTHER://:9093"}, "listeners"),
        ({"listeners": "PLAINTEXT://0.0.0.0:9092"}, "advertised.listeners"),
        ({"advertised.listeners": "SSL://a:1"}, "advertised.listeners"),
        ({"inter.broker.listener.name": "INTERNAL"}, "inter.broker.listener.name"),
        ({"early.start.listeners": "PLAINTEXT,NOPE"}, "early.start.listeners"),
        (
            {"inter.broker.listener.name": "PLAINTEXT", "security.inter.broker.protocol": "PLAINTEXT"},
            "inter.broker.listener.name",
        ),
        ({"controller.quorum.voters": "1@a:9093,2@b:9093"}, "controller.listener.names"),
    ],
)
def test_what_stops_the_start(properties, culprit):
    with pytest.raises(ConfigError) as caught:
        BrokerConfig.from_properties(properties)
    assert caught.value.name == culprit
    assert culprit in str(caught.value)


def test_a_file_of_a_combined_node_is_taken():
    given = config(
        process_roles="broker,controller",
        node_id="1",
        controller_quorum_voters="1@localhost:9093",
        listeners="PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
        advertised_listeners="PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
        inter_broker_listener_name="PLAINTEXT",
        controller_listener_names="CONTROLLER",
    )
    assert given.listeners == (Endpoint("PLAINTEXT", "127.0.0.1", 9092, "PLAINTEXT"),)
    assert given.advertised_listeners == (Endpoint("PLAINTEXT", "localhost", 9092, "PLAINTEXT"),)
    assert given.controller_listeners == (Endpoint("CONTROLLER", "127.0.0.1", 9093, "PLAINTEXT"),)
    assert given.advertised_controller_listeners == (Endpoint("CONTROLLER", "localhost", 9093, "PLAINTEXT"),)
    assert given.inter_broker_listener_name == "PLAINTEXT"


def test_listeners_by_other_names():
    given = BrokerConfig.from_properties({
        "listeners": "INSIDE://:9092,OUTSIDE://[::]:9094",
        "advertised.listeners": "INSIDE://kafka:9092,OUTSIDE://localhost:9094",
        "listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
        "inter.broker.listener.name": "INSIDE",
    })  # fmt: skip
    assert [str(endpoint) for endpoint in given.listeners] == ["INSIDE://:9092", "OUTSIDE://[::]:9094"]
    assert [endpoint.host for endpoint in given.advertised_listeners] == ["kafka", "localhost"]


@pytest.mark.parametrize(
    ("properties", "field", "value"),
    [
        ({"log.retention.hours": "2"}, "retention_ms", 7_200_000),
        ({"log.retention.hours": "2", "log.retention.minutes": "3"}, "retention_ms", 180_000),
        ({"log.retention.hours": "2", "log.retention.minutes": "3", "log.retention.ms": "4"}, "retention_ms", 4),
        ({"log.retention.hours": "-1"}, "retention_ms", -1),
        ({"log.roll.hours": "1"}, "segment_ms", 3_600_000),
        ({"log.roll.hours": "1", "log.roll.ms": "5"}, "segment_ms", 5),
        ({"log.roll.jitter.hours": "1"}, "segment_jitter_ms", 3_600_000),
        ({"log.flush.scheduler.interval.ms": "9"}, "flush_ms", 9),
        ({"log.flush.scheduler.interval.ms": "9", "log.flush.interval.ms": "8"}, "flush_ms", 8),
        ({"message.max.bytes": "10"}, "max_message_bytes", 10),
        ({"log.cleanup.policy": "compact,delete"}, "cleanup_policy", frozenset({"compact", "delete"})),
        ({"log.cleaner.min.cleanable.ratio": "0.25"}, "min_cleanable_dirty_ratio", 0.25),
        ({"log.preallocate": "true"}, "preallocate", True),
        ({"compression.type": "lz4"}, "compression_type", "lz4"),
    ],
)
def test_a_topic_falls_back_to_the_brokers_configs(properties, field, value):
    got = getattr(BrokerConfig.from_properties(properties).topic(), field)
    assert got == value
    assert type(got) is type(value)


def test_a_topics_own_configs_go_before_the_brokers():
    topic = config(log_retention_ms="5").topic({"retention.ms": " 6 ", "cleanup.policy": "", "no.such.config": "x"})
    assert topic == TopicConfig()._replace(retention_ms=6, cleanup_policy=frozenset())


def test_a_segment_size_for_tests_goes_before_the_other():
    assert config().topic({"segment.bytes": "2000000", "internal.segment.bytes": "100"}).segment_bytes == 100


def test_what_was_set_since_goes_before_the_properties():
    start = config(log_retention_ms="1", num_io_threads="4")
    changed = start.with_dynamic({"log.retention.ms": "2", "log.segment.bytes": "2000000"}, {"log.retention.ms": "3"})
    assert (changed["log.retention.ms"], changed["log.segment.bytes"], changed["num.io.threads"]) == (3, 2_000_000, 4)
    assert changed.topic().retention_ms == 3
    assert changed.with_dynamic({}, {})["log.retention.ms"] == start["log.retention.ms"] == 1
    assert changed.static("log.retention.ms") == 1


def test_what_is_set_since_goes_before_the_whole_family():
    changed = config(log_retention_hours="5", log_retention_minutes="7").with_dynamic({"log.retention.ms": "2"}, {})
    assert (changed["log.retention.ms"], changed["log.retention.minutes"], changed["log.retention.hours"]) == (
        2,
        None,
        168,
    )


def test_a_repeated_item_that_was_set_counts_once():
    assert config().topic({"cleanup.policy": "delete, delete"}).cleanup_policy == {"delete"}


def test_a_change_that_cannot_be_read_does_not_count(caplog):
    changed = config().with_dynamic({"log.retention.ms": "x", "a.plug.in": "y"}, {})
    assert changed["log.retention.ms"] is None
    assert "Ignored a config of this broker: Invalid value x for configuration log.retention.ms" in caplog.text


def test_a_topics_config_that_cannot_be_read_does_not_count(caplog):
    assert config().topic({"retention.ms": "x", "flush.ms": "5"}) == TopicConfig()._replace(flush_ms=5)
    assert "Ignored a config of a topic: Invalid value x for configuration retention.ms" in caplog.text


def test_the_development_profile_lies_below_the_properties():
    dev = BrokerConfig.from_properties({"offsets.topic.replication.factor": "2"}, dev=True)
    assert dev.dev
    assert dev["group.initial.rebalance.delay.ms"] == 0
    assert dev["offsets.topic.replication.factor"] == 2
    assert dev["offsets.topic.num.partitions"] == 50
    assert dev.with_dynamic({}, {}).dev
    assert not config().dev


class TestNotices:
    @pytest.fixture(autouse=True)
    def heard(self, caplog):
        caplog.set_level(logging.WARNING)
        self.caplog = caplog

    def said(self, **properties):
        config(**properties)
        return [record.getMessage() for record in self.caplog.records]

    def test_an_unknown_name_is_a_warning_with_a_suggestion(self):
        assert self.said(num_partition="3") == [
            "num.partition is not a config of Apache Kafka 4.3, and has no effect; did you mean num.partitions?"
        ]

    def test_a_name_like_no_other_is_a_warning(self):
        assert self.said(zookeeper_connect="localhost:2181") == [
            "zookeeper.connect is not a config of Apache Kafka 4.3, and has no effect"
        ]

    def test_a_config_without_effect_is_said_so(self):
        assert self.said(sasl_login_class="a.B") == [
            "sasl.login.class is set, but has no effect in this version of Barnabas"
        ]

    def test_a_config_without_effect_that_has_its_default_is_no_news(self):
        assert self.said(sasl_kerberos_kinit_cmd="/usr/bin/kinit") == []

    def test_a_listeners_prefix_is_known(self):
        assert not any("not a config" in text for text in self.said(listener_name_plaintext_max_connections="5"))

    def test_what_is_gone_by_is_no_news(self):
        assert self.said(num_partitions="3", log_retention_ms="5", auto_create_topics_enable="false") == []

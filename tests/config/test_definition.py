"""Text to value and back, as Kafka's ConfigDef has it; outcomes are those seen of Apache Kafka 4.3.1."""

import pytest

from barnabas.config.definition import BOOLEAN, DOUBLE, LIST, LONG, PASSWORD, ConfigDef, ConfigError, text_of
from barnabas.config.definitions import BROKER, TOPIC, of_groups


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("num.partitions", " 5 ", 5),
        ("num.partitions", "+1", 1),
        ("num.partitions", "٣", 3),
        ("auto.create.topics.enable", " TRUE", True),
        ("auto.create.topics.enable", "False", False),
        ("log.cleanup.policy", " delete , compact ", ["delete", "compact"]),
        ("log.cleanup.policy", "", []),
        ("log.cleaner.min.cleanable.ratio", "+.5", 0.5),
        ("log.cleaner.min.cleanable.ratio", "1e-3", 0.001),
        ("log.cleaner.min.cleanable.ratio", "0.5d", 0.5),
        ("group.consumer.migration.policy", "Upgrade", "Upgrade"),
        ("controller.quorum.voters", "1@localhost:9093,2@[::1]:9094", ["1@localhost:9093", "2@[::1]:9094"]),
        ("authorizer.class.name", "", ""),
        ("compression.gzip.level", "-1", -1),
        ("compression.zstd.level", "-131072", -131072),
        ("ssl.keystore.password", " secret ", "secret"),
    ],
)
def test_what_is_taken(name, text, value):
    parsed = BROKER[name].parse(text)
    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.parametrize(
    ("name", "text", "rule"),
    [
        ("num.partitions", "0", "at least 1"),
        ("num.partitions", "", "a whole number from -2147483648 to 2147483647"),
        ("num.partitions", "1_0", "a whole number from -2147483648 to 2147483647"),
        ("num.partitions", "0x10", "a whole number from -2147483648 to 2147483647"),
        ("num.partitions", "1.0", "a whole number from -2147483648 to 2147483647"),
        ("num.partitions", "+-1", "a whole number from -2147483648 to 2147483647"),
        ("num.partitions", "2147483648", "a whole number from -2147483648 to 2147483647"),
        ("offsets.topic.replication.factor", "40000", "a whole number from -32768 to 32767"),
        ("auto.create.topics.enable", "yes", "true or false"),
        ("log.cleanup.policy", "DELETE", "a list without empty or repeated items, each one of compact, delete"),
        ("log.cleanup.policy", "delete,", "a list without empty or repeated items, each one of compact, delete"),
        ("log.cleanup.policy", "delete,delete", "a list without empty or repeated items, each one of compact, delete"),
        ("log.cleaner.min.cleanable.ratio", "2", "between 0 and 1"),
        ("log.cleaner.min.cleanable.ratio", ".", "a number"),
        ("log.cleaner.min.cleanable.ratio", "inf", "a number"),
        ("compression.gzip.level", "0", "between 1 and 9, or -1"),
        ("compression.type", "GZIP", "one of uncompressed, zstd, lz4, snappy, gzip, producer"),
        ("sasl.oauthbearer.assertion.algorithm", "x", "one of ES256, RS256 (in either case)"),
        ("controller.quorum.voters", "1@a", "a list of id@host:port"),
        ("controller.quorum.bootstrap.servers", "a:-1", "a list of host:port"),
        ("remote.log.storage.manager.class.name", " ", "a text that is not empty"),
        ("listeners", "", "a list of at least one item without empty or repeated items"),
    ],
)
def test_what_is_refused_and_what_would_be_right(name, text, rule):
    with pytest.raises(ConfigError) as caught:
        BROKER[name].parse(text)
    assert str(caught.value) == f"{name} is {text!r}, but must be {rule}"


def test_a_password_is_not_shown_in_the_error():
    definition = ConfigDef("a.password", PASSWORD, None, BROKER["compression.type"].validator, "low", "")
    with pytest.raises(ConfigError) as caught:
        definition.parse("hunter2")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("text", ["*", "1:2,3:4", "1:2,", "", " 1:2 , 3:4"])
def test_replica_lists(text):
    TOPIC["leader.replication.throttled.replicas"].parse(text)


@pytest.mark.parametrize("text", ["x", "1:2:3", "*,1:2", "1:"])
def test_what_is_no_replica_list(text):
    with pytest.raises(ConfigError):
        TOPIC["leader.replication.throttled.replicas"].parse(text)


@pytest.mark.parametrize(
    "text",
    ["latest", "earliest", "by_duration:PT1H", "by_duration:PT0S", "by_duration:P1DT2H3M4.5S", "by_duration:pt1h"],
)
def test_where_share_groups_may_start(text):
    assert of_groups()["share.auto.offset.reset"].parse(text) == text


@pytest.mark.parametrize(
    "text",
    ["Earliest", "foo", "by_duration:-PT1H", "by_duration:P1M", "BY_DURATION:PT1H", "by_duration:P", "by_duration"],
)
def test_where_share_groups_may_not_start(text):
    with pytest.raises(ConfigError):
        of_groups()["share.auto.offset.reset"].parse(text)


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (BOOLEAN, True, "true"),
        (LIST, ["a", "b"], "a,b"),
        (LONG, -1, "-1"),
        (DOUBLE, 1e7, "1.0E7"),
        (DOUBLE, 0.001, "0.001"),
        (DOUBLE, 9.99e-4, "9.99E-4"),
        (DOUBLE, 123456.5, "123456.5"),
        (DOUBLE, 1e21, "1.0E21"),
        (DOUBLE, 5, "5.0"),
        (DOUBLE, -2.5e-10, "-2.5E-10"),
        (DOUBLE, 1.7976931348623157e308, "1.7976931348623157E308"),
        (DOUBLE, float("nan"), "NaN"),
        (DOUBLE, float("-inf"), "-Infinity"),
        (LONG, None, None),
    ],
)
def test_values_are_written_as_java_writes_them(kind, value, text):
    assert text_of(kind, value) == text

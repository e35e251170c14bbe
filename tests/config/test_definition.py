"""Text to value and back, as Kafka's ConfigDef has it; outcomes are those seen of Apache Kafka 4.3.1."""

import pytest

from barnabas.config.definition import BOOLEAN, DOUBLE, LIST, LONG, PASSWORD, ConfigDef, text_of
from barnabas.config.definitions import BROKER, TOPIC, of_groups
from barnabas.config.validators import ConfigError


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
    ("name", "text", "complaint"),
    [
        ("num.partitions", "0", "Value must be at least 1"),
        ("num.partitions", "", "Not a number of type INT"),
        ("num.partitions", "1_0", "Not a number of type INT"),
        ("num.partitions", "0x10", "Not a number of type INT"),
        ("num.partitions", "1.0", "Not a number of type INT"),
        ("num.partitions", "+-1", "Not a number of type INT"),
        ("num.partitions", "2147483648", "Not a number of type INT"),
        ("num.partitions", "1" * 5000, "Not a number of type INT"),
        ("offsets.topic.replication.factor", "40000", "Not a number of type SHORT"),
        ("auto.create.topics.enable", "yes", "Expected value to be either true or false"),
        ("log.cleanup.policy", "DELETE", "String must be one of: compact, delete"),
        ("log.cleaner.min.cleanable.ratio", ".", "Not a number of type DOUBLE"),
        ("log.cleaner.min.cleanable.ratio", "inf", "Not a number of type DOUBLE"),
        ("compression.gzip.level", "0", "Value must be between 1 and 9 or equal to -1"),
        (
            "compression.type",
            "GZIP",
            "String must be one of: uncompressed, zstd, lz4, snappy, gzip, producer",
        ),
        (
            "sasl.oauthbearer.assertion.algorithm",
            "x",
            "String must be one of (case insensitive): ES256, RS256",
        ),
    ],
)
def test_what_is_wrong_with_a_value(name, text, complaint):
    with pytest.raises(ConfigError) as caught:
        BROKER[name].parse(text)
    assert str(caught.value) == f"Invalid value {text} for configuration {name}: {complaint}"


@pytest.mark.parametrize(
    ("name", "text", "error"),
    [
        ("log.cleanup.policy", "delete,", "Configuration 'log.cleanup.policy' values must not be empty."),
        ("log.cleanup.policy", "delete,delete", "Configuration 'log.cleanup.policy' values must not be duplicated."),
        (
            "log.cleanup.policy",
            "delete,burn",
            "Invalid value burn for configuration log.cleanup.policy: String must be one of: compact, delete",
        ),
        (
            "log.cleaner.min.cleanable.ratio",
            "2",
            "Invalid value 2.0 for configuration log.cleaner.min.cleanable.ratio: Value must be no more than 1",
        ),
        (
            "controller.quorum.voters",
            "1@a",
            "Invalid value [1@a] for configuration controller.quorum.voters: Value must be a list of id@host:port",
        ),
        (
            "remote.log.storage.manager.class.name",
            " ",
            "Invalid value  for configuration remote.log.storage.manager.class.name: String must be non-empty",
        ),
        (
            "listeners",
            "",
            "Configuration 'listeners' must not be empty. Valid values include: any non-empty value",
        ),
    ],
)
def test_what_is_wrong_with_a_value_of_several_parts(name, text, error):
    with pytest.raises(ConfigError) as caught:
        BROKER[name].parse(text)
    assert str(caught.value) == error


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

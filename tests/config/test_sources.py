import logging

import pytest

from barnabas.config.sources import from_environment, merged, parse_overrides, parse_properties
from barnabas.config.validators import ConfigError


@pytest.mark.parametrize(
    ("text", "properties"),
    [
        ("a=b", {"a": "b"}),
        ("a:b", {"a": "b"}),
        ("a b", {"a": "b"}),
        ("  a  =  b  ", {"a": "b  "}),
        ("a = = b", {"a": "= b"}),
        ("a", {"a": ""}),
        ("a=", {"a": ""}),
        ("# a=b\n! c=d\n\n   \ne=f", {"e": "f"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=b\\\n    c\\\n  d", {"a": "bcd"}),
        ("a=b\\\\\nc=d", {"a": "b\\", "c": "d"}),
        ("a=b\\\n# no comment here", {"a": "b# no comment here"}),
        ("# a comment does not go on \\\na=b", {"a": "b"}),
        ("a\\=b=c\\:d", {"a=b": "c:d"}),
        ("a\\ b=c", {"a b": "c"}),
        ("a=\\t\\n\\x\\u0041\\u00e9", {"a": "\t\nxAé"}),
        ("a=\\ud83d\\ude00", {"a": "\U0001f600"}),
        ("a=C:\\\\kafka\\\\logs", {"a": "C:\\kafka\\logs"}),
        ("a=b\r\nc=d\re=f", {"a": "b", "c": "d", "e": "f"}),
        ("a=b\\", {"a": "b"}),
        ("listeners=PLAINTEXT://:9092,CONTROLLER://:9093", {"listeners": "PLAINTEXT://:9092,CONTROLLER://:9093"}),
    ],
)
def test_properties_are_read_as_java_reads_them(text, properties):
    assert parse_properties(text) == properties


def test_half_an_escape_is_refused():
    with pytest.raises(ConfigError, match="four hexadecimal digits"):
        parse_properties("a=\\u12")


def test_variables_of_the_official_image():
    environment = {
        "KAFKA_LOG_RETENTION_MS": "5",
        "KAFKA_LISTENER_NAME_INTERNAL_SASL_ENABLED_MECHANISMS": "PLAIN",
        "KAFKA_HEAP_OPTS": "-Xmx1G",
        "KAFKA_LOG4J_ROOT_LOGLEVEL": "WARN",
        "HOME": "/",
    }
    assert from_environment(environment) == {
        "log.retention.ms": "5",
        "listener.name.internal.sasl.enabled.mechanisms": "PLAIN",
    }


def test_underscores_and_dashes_in_variables():
    environment = {"KAFKA_LISTENER_NAME_MY__LISTENER___1_MAX_CONNECTIONS": "7"}
    assert from_environment(environment) == {"listener.name.my_listener-1.max.connections": "7"}


def test_a_variable_that_is_no_config_is_left_out_and_said_so(caplog):
    with caplog.at_level(logging.WARNING):
        assert from_environment({"KAFKA_HOME": "/opt/kafka"}) == {}
    assert "KAFKA_HOME is ignored: home is not a config of Apache Kafka 4.3" in caplog.text


def test_overrides():
    assert parse_overrides(["a=b", " c = d=e ", "a=f"]) == {"a": "f", "c": "d=e"}
    for wrong in ("a", "=b"):
        with pytest.raises(ConfigError, match="--override"):
            parse_overrides([wrong])


def test_an_override_goes_before_the_environment_and_that_before_the_file():
    settings = merged(
        file={"a": "file", "b": "file", "c": "file"}, environment={"a": "env", "b": "env"}, overrides={"a": "override"}
    )
    assert settings == {"a": "override", "b": "env", "c": "file"}

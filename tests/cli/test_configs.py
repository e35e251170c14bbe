import click
import pytest

from barnabas.cli.configs import config_pairs


def rows(outcome):
    ((described),) = outcome.json
    return {row["name"]: (row["value"], row["source"]) for row in described["configs"]}


def test_a_topics_configs_are_set_described_and_unset(barnabas, broker):
    broker.create_topic("t")
    altered = barnabas(
        "configs", "--alter", "--topic", "t", "--add-config", "retention.ms=5,cleanup.policy=[compact,delete]"
    )
    assert altered == (0, "Altered topic t\n", "")
    found = barnabas("configs", "--describe", "--entity-type", "topics", "--entity-name", "t", "--json")
    assert rows(found) == {
        "cleanup.policy": ("compact,delete", "DYNAMIC_TOPIC_CONFIG"),
        "retention.ms": ("5", "DYNAMIC_TOPIC_CONFIG"),
    }
    barnabas("configs", "--alter", "--topic", "t", "--delete-config", "cleanup.policy")
    table = barnabas("configs", "--describe", "--topic", "t").lines
    assert table[0].strip() == "Configs of topic t"
    assert [line.split() for line in table[3:]] == [["retention.ms", "5", "DYNAMIC_TOPIC_CONFIG", "no"]]


def test_all_of_them(barnabas, broker):
    broker.create_topic("t")
    assert len(rows(barnabas("configs", "--describe", "--topic", "t", "--all", "--json"))) == 33
    assert len(rows(barnabas("configs", "--describe", "--broker", "1", "--all", "--json"))) == 340


def test_a_broker_and_all_brokers(barnabas):
    assert barnabas("configs", "--alter", "--broker-defaults", "--add-config", "log.retention.ms=8").code == 0
    assert barnabas("configs", "--alter", "--broker", "1", "--add-config", "log.retention.ms=9").code == 0
    defaults = barnabas("configs", "--describe", "--entity-type", "brokers", "--entity-default", "--json")
    assert rows(defaults)["log.retention.ms"] == ("8", "DYNAMIC_DEFAULT_BROKER_CONFIG")
    assert rows(barnabas("configs", "--describe", "--broker", "1", "--json"))["log.retention.ms"] == (
        "9",
        "DYNAMIC_BROKER_CONFIG",
    )


def test_groups_and_metrics(barnabas):
    for option, config in (
        ("--group", "share.isolation.level=read_committed"),
        ("--client-metrics", "interval.ms=5000"),
    ):
        assert barnabas("configs", "--alter", option, "one", "--add-config", config).code == 0
        assert list(rows(barnabas("configs", "--describe", option, "one", "--json"))) == [config.partition("=")[0]]
    assert barnabas("configs", "--describe", "--entity-type", "groups", "--json").json[0]["name"] == "one"


def test_loggers(barnabas):
    found = rows(barnabas("configs", "--describe", "--broker-logger", "1", "--json"))
    assert found["root"][1] == "DYNAMIC_BROKER_LOGGER_CONFIG"


def test_a_file_of_configs(barnabas, broker, tmp_path):
    broker.create_topic("t")
    file = tmp_path / "t.properties"
    file.write_text("retention.ms = 5\nflush.ms : 7\n")
    assert barnabas("configs", "--alter", "--topic", "t", "--add-config-file", str(file)).code == 0
    assert set(rows(barnabas("configs", "--describe", "--topic", "t", "--json"))) == {"retention.ms", "flush.ms"}
    missing = barnabas("configs", "--alter", "--topic", "t", "--add-config-file", str(tmp_path / "no"))
    assert (missing.code, missing.err.count("\n")) == (1, 1)


def test_an_error_is_one_line_in_the_brokers_words(barnabas, broker):
    broker.create_topic("t")
    outcome = barnabas("configs", "--alter", "--topic", "t", "--add-config", "retention.ms=x")
    assert (outcome.code, outcome.out, outcome.err.count("\n")) == (1, "", 1)
    assert "Invalid value x for configuration retention.ms: Not a number of type LONG" in outcome.err


@pytest.mark.parametrize(
    "arguments",
    [
        ["--alter", "--topic", "t"],
        ["--alter", "--entity-type", "topics", "--add-config", "retention.ms=5"],
        ["--alter", "--topic", "t", "--add-config", "retention.ms"],
        ["--describe", "--entity-type", "topics", "--entity-default"],
        ["--describe", "--topic", "t", "--broker", "1"],
    ],
)
def test_mistakes(barnabas, arguments):
    outcome = barnabas("configs", *arguments)
    assert (outcome.code, outcome.err.startswith("Error: ")) == (2, True)


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("a=b", [("a", "b")]),
        ("a=b,c=d", [("a", "b"), ("c", "d")]),
        ("a=[b,c],d=e", [("a", "b,c"), ("d", "e")]),
        ("a=", [("a", "")]),
        ("a=b=c", [("a", "b=c")]),
        ("", []),
    ],
)
def test_what_add_config_means(text, pairs):
    assert list(config_pairs(text)) == pairs


def test_what_add_config_cannot_mean():
    with pytest.raises(click.UsageError):
        list(config_pairs("a=b,c"))

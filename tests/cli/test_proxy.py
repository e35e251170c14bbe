"""``barnabas proxy`` as a process."""

import base64
import json
import re

import pytest

from barnabas.cli import main
from tests.cli.proxying import Proxying, send


def test_it_stands_in_front_of_a_cluster_until_a_signal(broker):
    with Proxying(f"127.0.0.1:1,{broker.bootstrap_servers}") as proxying:
        send(proxying, b"tea")
        found = proxying.stop()
    assert "Cannot reach 127.0.0.1:1" in proxying.logged
    assert re.fullmatch(rf"{broker.bootstrap_servers} is reached at port \d+\n", found)
    assert [record.value for record in broker.records("orders")] == [b"tea"]


def test_rules_of_a_file(broker, tmp_path):
    rules = tmp_path / "rules.txt"
    rules.write_text("Produce nth=2 error=NOT_LEADER_OR_FOLLOWER topic=orders  # once\n")
    with Proxying(broker.bootstrap_servers, "--faults", str(rules), "--log-level", "INFO") as proxying:
        send(proxying, b"1", b"2", b"3", retry_backoff_ms=10)
        proxying.stop()
    assert proxying.logged.count("hit 1 of the rule [api=Produce topic=orders nth=2 error=NOT_LEADER_OR_FOLLOWER") == 1
    assert [record.value for record in broker.records("orders")] == [b"1", b"2", b"3"]


@pytest.mark.parametrize(
    ("text", "words"), [("Produce error=NOT_LEADER", "did you mean"), ("Produce nth", "line 1"), ("* tls=cut", "clear")]
)
def test_rules_that_can_never_match(capsys, tmp_path, text, words):
    rules = tmp_path / "rules.txt"
    rules.write_text(text)
    assert main(["proxy", "--listen", ":0", "--to", "127.0.0.1:1", "--faults", str(rules)]) == 1
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--listen", "9092"), "--listen is '9092', but must be HOST:PORT or :PORT"),
        (("--listen", "192.0.2.1:0"), "cannot listen on 192.0.2.1:0"),
        (("--command-config", "/there/is/none"), "/there/is/none"),
    ],
)
def test_what_it_cannot_do_is_said_in_one_line(capsys, arguments, words):
    assert main(["proxy", "--to", "127.0.0.1:1", *arguments]) != 0
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("properties", "words"),
    [
        ("security.protocol=TLS", "security.protocol"),
        ("security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN", "sasl.jaas.config"),
        ("security.protocol=SSL\nssl.truststore.location=/there/is/none", "/there/is/none"),
    ],
)
def test_properties_that_are_not_valid(capsys, tmp_path, properties, words):
    file = tmp_path / "client.properties"
    file.write_text(properties)
    assert main(["proxy", "--listen", ":0", "--to", "127.0.0.1:1", "--command-config", str(file)]) == 1
    assert words in capsys.readouterr().err


def test_what_passes_is_printed_and_recorded(broker, tmp_path):
    file = tmp_path / "traffic.jsonl"
    options = ("--json", "--filter", "api=Produce", "--record", str(file), "--records", "hash")
    with Proxying(broker.bootstrap_servers, *options) as proxying:
        send(proxying, b"tea")
        printed = [json.loads(line) for line in proxying.stop().splitlines() if line.startswith("{")]
    assert [(each["api"], each["error"]) for each in printed] == [("Produce", None)]
    assert "tea" in str(printed)
    head, *events = map(json.loads, file.read_text().splitlines())
    assert (head["records"], head["to"]) == ("hash", [broker.bootstrap_servers])
    requests = [each for each in events if each["event"] == "request"]
    assert [each["api"] for each in requests] == ["Produce"]
    assert b"tea" not in base64.b64decode(requests[0]["frame"])
    assert {each["event"] for each in events} == {"open", "request", "answer", "close"}


def test_lines_for_people(broker):
    with Proxying(broker.bootstrap_servers, "--print", "--filter", "topic=orders") as proxying:
        send(proxying, b"tea", client_id="waiter")
        *_, last = proxying.stop().splitlines()
    assert re.fullmatch(
        r"\d\d:\d\d:\d\d\.\d{3} #\d waiter to .+: Produce \d+ orders\[0\] \d+ B, \d+ B in \d+\.\d ms", last
    )


def test_an_invalid_filter(capsys):
    assert main(["proxy", "--to", "127.0.0.1:1", "--listen", ":0", "--print", "--filter", "orders"]) == 2
    assert "--filter: 'orders' is none of" in capsys.readouterr().err

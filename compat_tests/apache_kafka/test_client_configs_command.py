"""``barnabas configs`` for users, clients and IPs beside kafka-configs.sh: each tool describes the other's changes."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from click.testing import CliRunner, Result

from barnabas.cli import commands

from .load import until as wait_until
from .test_console_tools import Tools, tools_and_broker

Entities = dict[str, dict[str, str]]


@pytest.fixture(scope="module", params=["apache", "barnabas"])
def tools(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tools]:
    with tools_and_broker(request.param, tmp_path_factory.mktemp("configs")) as tools:
        yield tools


def run(tools: Tools, *arguments: str) -> Result:
    return CliRunner().invoke(commands.barnabas, ["configs", "--bootstrap-server", tools.bootstrap, *arguments])


def ours(tools: Tools, *arguments: str) -> Entities:
    """Returns the configs by entity, as kafka-configs names it."""
    ran = run(tools, "--describe", *arguments, "--json")
    assert ran.exit_code == 0, ran.output
    return {
        named(row["entity"]): {key: str(value) for key, value in row["configs"].items()}
        for row in json.loads(ran.stdout)
    }


def until(tools: Tools, *arguments: str, shown: Entities) -> None:
    """Waits until these are the configs: Apache Kafka answers before its broker has applied a change."""
    wait_until(lambda: ours(tools, *arguments) == shown, f"{arguments} are {shown}")


def named(entity: dict[str, Any]) -> str:
    names = {"user": "user-principal", "client-id": "client-id", "ip": "ip"}
    results = []
    for kind, name in entity.items():
        results.append(f"the default {names[kind]}" if name is None else f"{names[kind]} '{name}'")
    return ", ".join(results)


def theirs(tools: Tools, *arguments: str) -> Entities:
    found: Entities = {}
    for line in tools.configs("--describe", *arguments).splitlines():
        shown = re.fullmatch(r"(?:Quota|SCRAM credential) configs for (.*) are (.*)", line)
        assert shown, line
        pairs: Iterator[list[str]] = (each.split("=", 1) for each in shown[2].split(", "))
        found.setdefault(shown[1], {}).update((key, value) for key, value in pairs)
    return found


SELECTIONS = {
    "a user": ["--entity-type", "users", "--entity-name", "alice"],
    "users' default": ["--entity-type", "users", "--entity-default"],
    "a client": ["--entity-type", "clients", "--entity-name", "c"],
    "clients' default": ["--entity-type", "clients", "--entity-default"],
    "a client of a user": ["--entity-type", "users", "--entity-name", "alice", "--entity-type", "clients",
                           "--entity-name", "c"],
    "a client of users' default": ["--entity-type", "users", "--entity-default", "--entity-type", "clients",
                                   "--entity-name", "c"],
    "an address": ["--entity-type", "ips", "--entity-name", "10.0.0.1"],
    "addresses' default": ["--entity-type", "ips", "--entity-default"],
}  # fmt: skip
ALL = [["--entity-type", "users"], ["--entity-type", "clients"], ["--entity-type", "ips"],
       ["--entity-type", "users", "--entity-type", "clients"]]  # fmt: skip


def test_quotas(tools: Tools) -> None:
    for number, (kind, words) in enumerate(SELECTIONS.items()):
        quotas = "connection_creation_rate=5" if "ips" in words else f"producer_byte_rate={1000 + number}"
        if "ips" not in words:
            quotas += ",request_percentage=12.5"
        altered = run(tools, "--alter", *words, "--add-config", quotas)
        assert altered.exit_code == 0, (kind, altered.output)
        wait_until(lambda words=words: ours(tools, *words) != {}, kind)
        assert ours(tools, *words) == theirs(tools, *words), kind
    for words in ALL:
        assert ours(tools, *words) == theirs(tools, *words) != {}
    for words in SELECTIONS.values():
        deleted = "connection_creation_rate" if "ips" in words else "producer_byte_rate,request_percentage"
        assert run(tools, "--alter", *words, "--delete-config", deleted).exit_code == 0
    for words in ALL:
        until(tools, *words, shown={})


def test_credentials(tools: Tools) -> None:
    alice = SELECTIONS["a user"]
    credentials = "SCRAM-SHA-256=[iterations=8192,password=a,b=c],SCRAM-SHA-512=[password=secret]"
    altered = run(tools, "--alter", *alice, "--add-config", f"{credentials},producer_byte_rate=7")
    assert altered.output == "Altered user alice\n"
    tools.configs(
        "--alter", "--entity-type", "users", "--entity-name", "bob", "--add-config", "SCRAM-SHA-256=[password=b]"
    )
    bob = {"user-principal 'bob'": {"SCRAM-SHA-256": "iterations=4096"}}
    found = {
        "user-principal 'alice'": {
            "SCRAM-SHA-256": "iterations=8192", "SCRAM-SHA-512": "iterations=4096", "producer_byte_rate": "7.0",
        },
        **bob,
    }  # fmt: skip
    until(tools, "--entity-type", "users", shown=found)
    assert theirs(tools, "--entity-type", "users") == found
    assert ours(tools, *alice) == theirs(tools, *alice)
    run(tools, "--alter", "--user", "alice", "--delete-config", "SCRAM-SHA-256,SCRAM-SHA-512,producer_byte_rate")
    until(tools, "--entity-type", "users", shown=bob)
    run(tools, "--alter", "--user", "bob", "--delete-config", "SCRAM-SHA-256")
    until(tools, "--entity-type", "users", shown={})


def test_what_is_refused(tools: Tools) -> None:
    for words, found in (
        (["--user", "alice", "--add-config", "SCRAM-SHA-256=[password=]"], "SCRAM-SHA-256 must be [iterations=N,"),
        (["--user", "alice", "--add-config", "SCRAM-SHA-256=[iterations=1,password=secret]"], "Too few iterations"),
        (["--user-defaults", "--add-config", "SCRAM-SHA-256=[password=secret]"], "--entity-type users and a name only"),
        (["--user", "alice", "--add-config", "producer_byte_rate=secret"], "A quota must be a number"),
        (["--user", "alice", "--add-config", "no_such_quota=5"], "no_such_quota"),
        (["--user", "alice", "--topic", "t", "--add-config", "a=5"], "Only users and clients can be combined"),
        (["--entity-type", "users", "--add-config", "producer_byte_rate=5"], "--alter needs the name"),
        (["--ip", "no address", "--add-config", "connection_creation_rate=5"], "no address"),
    ):  # fmt: skip
        refused = run(tools, "--alter", *words)
        assert refused.exit_code and found in refused.output, (words, refused.output)
        assert "=secret" not in refused.output
    assert run(tools, "--alter", "--user", "alice", "--delete-config", "SCRAM-SHA-256").exit_code == 1

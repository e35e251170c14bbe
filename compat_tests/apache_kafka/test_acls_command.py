"""``barnabas acls`` beside kafka-acls.sh: each tool lists the other's changes."""

import itertools
import json
import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from click.testing import CliRunner

from barnabas.cli import commands
from barnabas.cli.acl_options import title
from barnabas.security.acls import Operation, ResourceType

from .test_console_tools import Tools, tools_and_broker

AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
numbers = itertools.count(1)
WITHIN = 10.0


@pytest.fixture(scope="module", params=["apache", "barnabas"])
def tools(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tools]:
    with tools_and_broker(request.param, tmp_path_factory.mktemp("acls"), AUTHORIZER) as tools:
        yield tools


def ours(tools: Tools, *arguments: str) -> Any:
    ran = CliRunner().invoke(commands.barnabas, ["acls", "--bootstrap-server", tools.bootstrap, *arguments, "--json"])
    assert ran.exit_code == 0, ran.output
    return json.loads(ran.stdout)


def theirs(tools: Tools, *arguments: str) -> list[tuple[str, ...]]:
    """Returns the ACLs listed by kafka-acls, in the order of our columns."""
    found = []
    for line in tools("org.apache.kafka.tools.AclCommand", "--list", *arguments).splitlines():
        resource = re.search(r"ResourcePattern\(resourceType=(\w+), name=(.*), patternType=(\w+)\)", line)
        if resource:
            pattern = resource.groups()
        entry = re.search(r"\(principal=(.*), host=(.*), operation=(\w+), permissionType=(\w+)\)", line)
        if entry:
            found.append((*pattern, *entry.groups()))
    return sorted(found)


def values(rows: list[dict[str, str]]) -> list[tuple[str, ...]]:
    return sorted(tuple(row.values()) for row in rows)


CASES = [
    ["--allow-principal", "User:a", "--topic", "NAME"],
    ["--allow-principal", "User:a", "--allow-principal", "User:b", "--operation", "Read", "--operation", "describe",
     "--topic", "NAME", "--group", "NAME", "--allow-host", "10.0.0.1", "--allow-host", "10.0.0.2"],
    ["--deny-principal", "User:a", "--deny-host", "10.0.0.1", "--operation", "AlterConfigs", "--topic", "NAME"],
    ["--allow-principal", "User:a", "--producer", "--topic", "NAME", "--transactional-id", "NAME", "--idempotent"],
    ["--allow-principal", "User:a", "--consumer", "--topic", "NAME", "--group", "NAME",
     "--resource-pattern-type", "prefixed"],
    ["--allow-principal", "User:a", "--consumer", "--producer", "--topic", "NAME", "--group", "NAME"],
    ["--allow-principal", "User:a", "--operation", "ClusterAction", "--cluster"],
    ["--allow-principal", "User:a", "--operation", "CreateTokens", "--user-principal", "User:NAME"],
    ["--allow-principal", "User:a", "--operation", "Describe", "--delegation-token", "NAME"],
]  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_each_tool_lists_and_removes_acls_of_the_other(tools: Tools, case: list[str]) -> None:
    name = f"n{next(numbers)}"
    case = [word.replace("NAME", name) for word in case]
    added = values(ours(tools, "--add", *case))
    assert becomes(added, lambda: theirs(tools)) == added == values(ours(tools, "--list"))
    tools("org.apache.kafka.tools.AclCommand", "--remove", "--force", *case)
    assert becomes([], lambda: ours(tools, "--list")) == []
    tools("org.apache.kafka.tools.AclCommand", "--add", *case)
    assert becomes(added, lambda: values(ours(tools, "--list"))) == added
    assert values(ours(tools, "--remove", "--force", *case)) == added
    assert becomes([], lambda: theirs(tools)) == []


def becomes(wanted: list[Any], listed: Callable[[], list[Any]]) -> list[Any]:
    """Returns the first listing that is as wanted, or the last one within some seconds.

    Apache Kafka answers a change when its controller has committed it, and its broker may list the old state until it
    has caught up.
    """
    end = time.monotonic() + WITHIN
    while (found := listed()) != wanted and time.monotonic() < end:
        time.sleep(0.1)
    return found


LISTINGS = [
    ["--topic", "orders"],
    ["--topic", "orders", "--resource-pattern-type", "match"],
    ["--topic", "ord", "--resource-pattern-type", "prefixed"],
    ["--topic", "*"],
    ["--topic", "orders", "--resource-pattern-type", "any"],
    ["--principal", "User:b"],
    ["--topic", "orders", "--group", "orders"],
]


@pytest.fixture
def some(tools: Tools) -> Iterator[None]:
    for words in (
        "User:a --topic orders --operation read",
        "User:b --topic ord --operation write --resource-pattern-type prefixed",
        "User:b --topic *",
        "User:c --group orders --operation read",
    ):
        ours(tools, "--add", "--allow-principal", *words.split())
    end = time.monotonic() + WITHIN
    while len(theirs(tools)) < 4 and time.monotonic() < end:
        time.sleep(0.1)
    yield
    for words in ("--topic orders", "--topic ord --resource-pattern-type any", "--topic *", "--group orders"):
        ours(tools, "--remove", "--force", *words.split())
    assert becomes([], lambda: theirs(tools)) == []


def test_lists(tools: Tools, some: None) -> None:
    for words in LISTINGS:
        assert values(ours(tools, "--list", *words)) == theirs(tools, *words), words


def test_the_same_is_refused(tools: Tools) -> None:
    for words in (
        ["--add", "--topic", "t"],
        ["--add", "--allow-principal", "User:a"],
        ["--add", "--allow-principal", "User:a", "--topic", "t", "--operation", "ClusterAction"],
        ["--add", "--allow-principal", "User:a", "--topic", "t", "--resource-pattern-type", "match"],
        ["--add", "--allow-principal", "User:a", "--topic", "t", "--consumer"],
        ["--add", "--allow-principal", "User:a", "--topic", "t", "--idempotent"],
        ["--add", "--allow-principal", "User:a", "--topic", "t", "--producer", "--deny-principal", "User:b"],
        ["--add", "--allow-principal", "alice", "--topic", "t"],
        ["--remove", "--force"],
    ):
        ran = CliRunner().invoke(commands.barnabas, ["acls", "--bootstrap-server", tools.bootstrap, *words])
        status, *_ = tools.run("org.apache.kafka.tools.AclCommand", "--bootstrap-server", tools.bootstrap, *words)
        assert ran.exit_code and status, words
    assert theirs(tools) == []


def test_names_are_kafkas() -> None:
    assert title(Operation.DESCRIBE_CONFIGS) == "DescribeConfigs"
    assert title(ResourceType.TRANSACTIONAL_ID) == "TransactionalId"

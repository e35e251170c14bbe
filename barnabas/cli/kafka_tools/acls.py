"""``kafka-acls`` over ``barnabas acls``.

Knows nothing of the broker. Apache Kafka's ``AclCommand``.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import click

from barnabas.cli.kafka_tools.options import (
    CONNECTION,
    FLAG,
    OWN_FLAG,
    VALUE,
    Given,
    Option,
    Takes,
    UsageProblem,
    require_one,
)
from barnabas.cli.kafka_tools.tool import Failed, Tool, answer_of, call, connection
from barnabas.security.acls import CLUSTER_NAME

ACTIONS = ("list", "add", "remove")
OPTIONS = {
    **CONNECTION,
    **dict.fromkeys((*ACTIONS, "cluster", "consumer", "idempotent", "producer"), FLAG),
    **dict.fromkeys(
        ("allow-host", "allow-principal", "delegation-token", "deny-host", "deny-principal", "group", "operation",
         "resource-pattern-type", "topic", "transactional-id", "user-principal"), VALUE,
    ),
    "command-config": Option(Takes.MAYBE),
    "principal": Option(Takes.MAYBE),
    "force": OWN_FLAG,
}  # fmt: skip
#: The type of resource that each option names, in the order of Kafka's prompts before it removes ACLs.
RESOURCES = {
    "topic": "TOPIC",
    "cluster": "CLUSTER",
    "group": "GROUP",
    "transactional-id": "TRANSACTIONAL_ID",
    "delegation-token": "DELEGATION_TOKEN",
    "user-principal": "USER",
}
NO_ADDRESS = "One of --bootstrap-server or --bootstrap-controller must be specified"
NO_RESOURCE = (
    "You must provide at least one resource: --topic <topic> or --cluster or --group <group> or --delegation-token "
    "<Delegation Token ID>"
)
NO_PRINCIPAL = "You must specify one of: --allow-principal, --deny-principal when trying to add ACLs."

Row = Mapping[str, Any]


def acls(arguments: Sequence[str]) -> int:
    """``kafka-acls``: adds, removes and lists ACLs."""
    return call(TOOL, arguments)


def _run(given: Given) -> int:
    if "bootstrap-server" not in given:
        raise UsageProblem(NO_ADDRESS)
    connection(given)
    action = require_one(given, ACTIONS, "Command must include exactly one action: --list, --add, --remove. ")
    if action == "add" and not {"allow-principal", "deny-principal"} & given.values.keys():
        raise UsageProblem(NO_PRINCIPAL)
    if action != "list" and not given.values.keys() & RESOURCES.keys() and "idempotent" not in given:
        raise UsageProblem(NO_RESOURCE)
    if action == "remove" and "force" not in given and not _is_sure(given):
        return 0
    try:
        rows = answer_of(given, "acls", *(["--force"] if action == "remove" else []))
    except Failed as error:
        click.echo(f"Error while executing ACL command: {error.message}")
        click.echo(error.java)
        return 1
    for line in _listed(rows, given.all("principal")) if action == "list" else _added(rows) if action == "add" else ():
        click.echo(line)
    return 0


def _is_sure(given: Given) -> bool:
    """Asks for confirmation before ACLs are removed."""
    pattern = given.one("resource-pattern-type", "literal").upper()
    for option, kind in RESOURCES.items():
        for name in given.all(option):
            what = f"ResourcePattern(resourceType={kind}, name={name or CLUSTER_NAME}, patternType={pattern})"
            click.echo(f"Are you sure you want to delete all ACLs for resource filter `{what}`? (y/n)")
            if sys.stdin.readline().strip().lower() != "y":
                return False
    return True


def _added(rows: Iterable[Row]) -> Iterator[str]:
    for resource, entries in _by_resource(rows):
        yield f"Adding ACLs for resource `{resource}`: "
        yield " \t" + "\n\t".join(map(_entry, entries)) + "\n"


def _listed(rows: Sequence[Row], principals: Sequence[str]) -> Iterator[str]:
    for principal in principals or [""]:
        if principal:
            yield f"ACLs for principal `{principal}`"
        for resource, entries in _by_resource(row for row in rows if principal in ("", row["principal"])):
            yield f"Current ACLs for resource `{resource}`:"
            yield from (f"\t{_entry(each)}" for each in entries)
            yield ""


def _by_resource(rows: Iterable[Row]) -> Iterator[tuple[str, list[Row]]]:
    def resource(row: Row) -> tuple[str, str, str]:
        return row["resource_type"], row["resource_name"], row["pattern_type"]

    for (kind, name, pattern), entries in groupby(sorted(rows, key=resource), resource):
        yield f"ResourcePattern(resourceType={kind}, name={name}, patternType={pattern})", list(entries)


def _entry(row: Row) -> str:
    return (
        f"(principal={row['principal']}, host={row['host']}, operation={row['operation']}, "
        f"permissionType={row['permission']})"
    )


TOOL = Tool("This tool helps to manage acls on kafka.", OPTIONS, _run)

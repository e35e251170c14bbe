"""``kafka-groups`` over ``barnabas groups``.

Knows nothing of the broker. Apache Kafka's ``GroupsCommand`` (KIP-1043).
"""

import sys
from collections.abc import Sequence

import click

from barnabas.cli.kafka_tools.options import CONNECTION, FLAG, OWN, OWN_FLAG, Given, UsageProblem, refuse, require_one
from barnabas.cli.kafka_tools.tool import Failed, Tool, answer_of, call

KINDS = ("consumer", "share", "streams")
FILTERS = ("group-type", "protocol")
TYPES = ("classic", "consumer", "share", "streams")
OPTIONS = {
    **CONNECTION,
    "list": OWN_FLAG,
    **dict.fromkeys(KINDS, FLAG),
    **dict.fromkeys(FILTERS, OWN),
}

MIN_WIDTH = 20
"""Of each column; all are as wide as the longest group id, as ``GroupsCommand`` has them."""


def groups(arguments: Sequence[str]) -> int:
    """``kafka-groups``: lists the groups of all types."""
    return call(TOOL, arguments)


def _run(given: Given) -> int:
    if "bootstrap-server" not in given:
        raise UsageProblem("Missing required option(s) [bootstrap-server]")
    require_one(given, ("list",), "Command must include exactly one action: --list.")
    for kind in KINDS:
        refuse(given, kind, *FILTERS, *(each for each in KINDS if each != kind))
    wanted = {"type": given.one("group-type").lower(), "protocol": given.one("protocol")}
    if "group-type" in given and wanted["type"] not in TYPES:
        raise UsageProblem("--group-type must be a valid group type.")
    try:
        rows = answer_of(given, "groups", "--list")
    except Failed as error:
        click.echo(f"Error while executing groups command : {error.message}")
        sys.stderr.write(f"{error.java}\n")
        return 1
    found = [row for row in rows if all(value in ("", row[name]) for name, value in wanted.items())]
    width = max([MIN_WIDTH, *(len(row["group"]) for row in found)])
    click.echo(f"{'GROUP':{width}} {'TYPE':{width}} {'PROTOCOL':{width}}")
    for row in found:
        click.echo(f"{row['group']:{width}} {row['type'].capitalize():{width}} {row['protocol']:{width}} ")
    return 0


TOOL = Tool("This tool helps to list groups of all types.", OPTIONS, _run)

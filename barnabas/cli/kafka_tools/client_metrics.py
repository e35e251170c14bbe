"""``kafka-client-metrics`` over ``barnabas configs``.

Knows nothing of the broker. Apache Kafka's ``ClientMetricsCommand`` (KIP-714, KIP-1000).
"""

import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any

import click

from barnabas.cli.kafka_tools.options import CONNECTION, OWN, OWN_FLAG, Given, UsageProblem, refuse, require_one
from barnabas.cli.kafka_tools.tool import Failed, Tool, call, connection, json_of
from barnabas.uuids import random_uuid, uuid_text

ACTIONS = ("alter", "delete", "describe", "list")
CHANGES = {"interval": "interval.ms", "match": "match", "metrics": "metrics"}
"""By option, the config that it sets; without a value the config is removed."""

OPTIONS = {
    **CONNECTION,
    **dict.fromkeys((*ACTIONS, "generate-name"), OWN_FLAG),
    **dict.fromkeys(("name", *CHANGES), OWN),
}
ONE_ACTION = "Command must include exactly one action: --alter, --delete, --describe or --list."
UNUSED: Mapping[str, Sequence[str]] = {
    "alter": (),
    "delete": ("generate-name", *CHANGES),
    "describe": ("generate-name", *CHANGES),
    "list": ("name", "generate-name", *CHANGES),
}
"""By action, the options that it refuses."""

SET = "DYNAMIC_CLIENT_METRICS_CONFIG"
"""The source of configs that are set."""


def client_metrics(arguments: Sequence[str]) -> int:
    """``kafka-client-metrics``: lists, describes, alters and deletes subscriptions to the metrics of clients."""
    return call(TOOL, arguments)


def _run(given: Given) -> int:
    if "bootstrap-server" not in given:
        raise UsageProblem("--bootstrap-server must be specified.")
    action = require_one(given, ACTIONS, ONE_ACTION)
    _check(given, action)
    try:
        _ACTIONS[action](given)
    except Failed as error:
        click.echo(f"Error while executing client metrics command : {error.message}")
        sys.stderr.write(f"java.util.concurrent.ExecutionException: {error.java}\n")
        return 1
    return 0


def _check(given: Given, action: str) -> None:
    """Checks options as ``ClientMetricsCommandOptions.checkArgs`` does.

    :raises UsageProblem: they cannot be combined
    """
    refuse(given, action, *UNUSED[action])
    if action == "alter":
        if ("name" in given) == ("generate-name" in given):
            raise UsageProblem("One of --name or --generate-name must be specified with --alter.")
        if given.one("interval") and not re.fullmatch(r"[+-]?\d+", given.one("interval")):
            raise UsageProblem("Invalid interval value. Enter an integer, or leave empty to reset.")
    if action == "delete" and "name" not in given:
        raise UsageProblem("A client metrics resource name must be specified with --delete.")


def _alter(given: Given) -> None:
    name = given.one("name") or uuid_text(random_uuid(os.urandom))
    changes = {config: given.one(option) for option, config in CHANGES.items() if option in given}
    _change(given, name, changes)
    click.echo(f"Altered client metrics config for {name}.")


def _delete(given: Given) -> None:
    name = given.one("name")
    set_configs = [each["name"] for each in _described(given, name) if each["source"] == SET]
    _change(given, name, dict.fromkeys(set_configs, ""))
    click.echo(f"Deleted client metrics config for {name}.")


def _change(given: Given, name: str, changes: Mapping[str, str]) -> None:
    """Sets the configs that have a value, and removes the others."""
    added = ",".join(f"{config}=[{value}]" for config, value in changes.items() if value)
    removed = ",".join(config for config, value in changes.items() if not value)
    words = [f"--add-config={added}"] * bool(added) + [f"--delete-config={removed}"] * bool(removed)
    if words:
        json_of([*_configs(given), "--alter", f"--entity-name={name}", *words, "--json"])


def _describe(given: Given) -> None:
    names = _names(given)
    if "name" in given:
        if given.one("name") not in names:
            click.echo(f"The client metric resource {given.one('name')} doesn't exist and doesn't have dynamic config.")
            return
        names = [given.one("name")]
    for name in names:
        click.echo(f"Client metrics configs for {name} are:")
        for each in _described(given, name):
            click.echo(f"  {each['name']}={each['value']}")


def _described(given: Given, name: str) -> list[dict[str, Any]]:
    (found,) = json_of([*_configs(given), "--describe", "--all", f"--entity-name={name}", "--json"])
    return sorted(found["configs"], key=itemgetter("name"))


def _list(given: Given) -> None:
    click.echo("\n".join(_names(given)))


def _names(given: Given) -> list[str]:
    return sorted(each["name"] for each in json_of([*_configs(given), "--describe", "--json"]))


def _configs(given: Given) -> list[str]:
    return ["configs", *connection(given), *given.words(), "--entity-type=client-metrics"]


_ACTIONS: Mapping[str, Callable[[Given], None]] = {
    "alter": _alter,
    "delete": _delete,
    "describe": _describe,
    "list": _list,
}
TOOL = Tool("This tool helps to manipulate and describe client metrics configurations.", OPTIONS, _run)

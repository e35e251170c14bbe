"""``kafka-configs`` over ``barnabas configs``.

Knows nothing of the broker. Apache Kafka's ``ConfigCommand``.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from barnabas.cli.configs import SHORT, SHORT_DEFAULTS
from barnabas.cli.kafka_tools.options import CONNECTION, FLAG, VALUE, Given, UsageProblem, require_one
from barnabas.cli.kafka_tools.tool import Failed, Tool, answer_of, call, connection, json_of
from barnabas.security.sasl.scram import CODES

OPTIONS = {
    **CONNECTION,
    **dict.fromkeys(("alter", "describe", "all", "entity-default"), FLAG),
    **dict.fromkeys(("entity-type", "entity-name", "add-config", "add-config-file", "delete-config"), VALUE),
    **{name.replace("_", "-"): VALUE for name in SHORT},
    **{name.replace("_", "-"): FLAG for name in SHORT_DEFAULTS},
}
ONE_ACTION = "Command must include exactly one action: --describe, --alter"
NO_TYPE = "At least one entity type must be specified"
NO_CHANGE = "At least one of --add-config, --add-config-file, or --delete-config must be specified with --alter"
NO_ADDRESS = "Either --bootstrap-server or --bootstrap-controller must be specified."

#: The only source that is shown without --all, by the type of entity; for brokers it depends on the name.
_SOURCES = {
    "topics": "DYNAMIC_TOPIC_CONFIG",
    "brokers": "DYNAMIC_BROKER_CONFIG",
    "broker-loggers": None,
    "client-metrics": "DYNAMIC_CLIENT_METRICS_CONFIG",
    "groups": "DYNAMIC_GROUP_CONFIG",
}
_PARTS = {"user": "user-principal", "client-id": "client-id", "ip": "ip"}

Entity = tuple[str, str | None]
"""A type and a name; None stands for all entities of the type, an empty name for the default."""


def configs(arguments: Sequence[str]) -> int:
    """``kafka-configs``: describes and alters configs, quotas and SCRAM credentials."""
    return call(TOOL, arguments)


def _run(given: Given) -> int:
    if "bootstrap-server" not in given:
        raise UsageProblem(NO_ADDRESS)
    connection(given)
    action = require_one(given, ("describe", "alter"), ONE_ACTION)
    entities = _entities(given)
    if not entities:
        raise UsageProblem(NO_TYPE)
    if action == "alter" and not {"add-config", "add-config-file", "delete-config"} & given.values.keys():
        raise UsageProblem(NO_CHANGE)
    try:
        lines = _altered(given, entities) if action == "alter" else _described(given, entities)
        for line in lines:
            click.echo(line)
    except Failed as error:
        words = [word for name, value in given.order for word in (f"--{name}", value) if word]
        click.echo(f"Error while executing config command with args '{' '.join(words)}'", err=True)
        click.echo(f"java.util.concurrent.ExecutionException: {error.java}", err=True)
        return 1
    return 0


def _entities(given: Given) -> list[Entity]:
    types = given.all("entity-type")
    names = [value for name, value in given.order if name in ("entity-name", "entity-default")]
    found: list[Entity] = [(kind, names[at] if at < len(names) else None) for at, kind in enumerate(types)]
    for name, value in given.order:
        key = name.replace("-", "_")
        if key in SHORT:
            found.append((SHORT[key], value))
        elif key in SHORT_DEFAULTS:
            found.append((SHORT_DEFAULTS[key], ""))
    return found


def _altered(given: Given, entities: Sequence[Entity]) -> Iterator[str]:
    answer_of(given, "configs")
    kind, name = entities[0]
    if name:
        yield f"Completed updating config for {kind.removesuffix('s')} {name}."
    else:
        yield f"Completed updating default config for {kind} in the cluster."


def _described(given: Given, entities: Sequence[Entity]) -> Iterator[str]:
    kind, name = entities[0]
    if kind not in _SOURCES:
        for row in answer_of(given, "configs"):
            yield from _quotas(row)
        return
    found = answer_of(given, "configs")
    if kind in ("topics", "groups") and name and not found[0]["configs"] and not _exists(given, kind, name):
        yield f"The {kind.removesuffix('s')} '{name}' doesn't exist and doesn't have dynamic config."
        return
    for each in found:
        yield from _entity(given, kind, each)
    if kind == "brokers" and name is None:
        for each in json_of(["configs", *connection(given), "--describe", "--broker-defaults", "--json"]):
            yield from _entity(given, kind, each)


def _exists(given: Given, kind: str, name: str) -> bool:
    found = json_of([kind, *connection(given), "--list", "--json"])
    return name in (each["group"] if kind == "groups" else each for each in found)


def _entity(given: Given, kind: str, entity: Mapping[str, Any]) -> Iterator[str]:
    is_default = kind == "brokers" and not entity["name"]
    if is_default:
        yield "Default configs for brokers in the cluster are:"
    else:
        yield f"{'All' if 'all' in given else 'Dynamic'} configs for {kind.removesuffix('s')} {entity['name']} are:"
    source = "DYNAMIC_DEFAULT_BROKER_CONFIG" if is_default else _SOURCES[kind]
    for each in entity["configs"]:
        if "all" in given or source in (None, each["source"]):
            synonyms = ", ".join(f"{it['source']}:{it['name']}={_text(it['value'])}" for it in each["synonyms"])
            yield (
                f"  {each['name']}={_text(each['value'])} sensitive={str(each['sensitive']).lower()} "
                f"synonyms={{{synonyms}}}"
            )


def _text(value: str | None) -> str:
    return "null" if value is None else value


def _quotas(row: Mapping[str, Any]) -> Iterator[str]:
    entity = ", ".join(
        f"the default {_PARTS[kind]}" if name is None else f"{_PARTS[kind]} '{name}'"
        for kind, name in row["entity"].items()
    )
    quotas = {name: value for name, value in row["configs"].items() if name not in CODES}
    credentials = {name: value for name, value in row["configs"].items() if name in CODES}
    for what, configs in (("Quota", quotas), ("SCRAM credential", credentials)):
        if configs:
            yield f"{what} configs for {entity} are {', '.join(f'{name}={value}' for name, value in configs.items())}"


TOOL = Tool(
    "This tool helps to manipulate and describe entity config for a topic, client, user, broker, ip, client-metrics or "
    "group",
    OPTIONS,
    _run,
)

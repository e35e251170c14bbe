"""``barnabas configs``, with the options of kafka-configs.

Knows nothing of what a config means; types, defaults and values come from the broker.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import click

from barnabas.cli.client import Cluster, cluster_options, error_text, read_properties
from barnabas.cli.output import json_option, show_json, show_table


class Kind(NamedTuple):
    """An entity type: its name in kafka-configs and in the client, and the sources of values that are set on it."""

    entity_type: str
    resource: str
    own_sources: tuple[str, ...]


KINDS = {
    kind.entity_type: kind
    for kind in (
        Kind("topics", "TOPIC", ("DYNAMIC_TOPIC_CONFIG",)),
        Kind("brokers", "BROKER", ("DYNAMIC_BROKER_CONFIG", "DYNAMIC_DEFAULT_BROKER_CONFIG")),
        Kind("broker-loggers", "BROKER_LOGGER", ("DYNAMIC_BROKER_LOGGER_CONFIG",)),
        Kind("client-metrics", "CLIENT_METRICS", ("DYNAMIC_CLIENT_METRICS_CONFIG",)),
        Kind("groups", "GROUP", ("DYNAMIC_GROUP_CONFIG",)),
    )
}
#: ``--topic t`` is short for ``--entity-type topics --entity-name t``.
SHORT = {
    "topic": "topics",
    "broker": "brokers",
    "broker_logger": "broker-loggers",
    "client_metrics": "client-metrics",
    "group": "groups",
}


class AllBrokers(str):
    """The empty name, which means all brokers. The client converts it to the id of a broker to send the request to."""

    __slots__ = ()
    node_id = 0

    def __int__(self) -> int:
        return type(self).node_id


@click.command()
@click.option("--describe", "action", flag_value="describe", help="Describe configs.")
@click.option("--alter", "action", flag_value="alter", help="Change configs.")
@click.option("--entity-type", type=click.Choice(list(KINDS)), help="The type of the entity.")
@click.option("--entity-name", help="The name of the entity: a topic's or group's name, a broker's id.")
@click.option("--entity-default", is_flag=True, help="All brokers.")
@click.option("--topic", help="Short for --entity-type topics --entity-name.")
@click.option("--broker", help="Short for --entity-type brokers --entity-name.")
@click.option("--broker-defaults", is_flag=True, help="Short for --entity-type brokers --entity-default.")
@click.option("--broker-logger", help="Short for --entity-type broker-loggers --entity-name.")
@click.option("--client-metrics", help="Short for --entity-type client-metrics --entity-name.")
@click.option("--group", help="Short for --entity-type groups --entity-name.")
@click.option("--all", "show_all", is_flag=True, help="Describe all configs, including defaults.")
@click.option("--add-config", help="Configs to set: key=value,key=[value,value].")
@click.option("--add-config-file", type=click.Path(path_type=Path), help="A properties file with configs to set.")
@click.option("--delete-config", help="Configs to remove: key,key.")
@json_option
@cluster_options
def configs(cluster: Cluster, action: str | None, as_json: bool, show_all: bool, **given: Any) -> None:
    """Describe and alter configs.

    \b
    barnabas configs --describe --topic orders --all
    barnabas configs --alter --topic orders --add-config retention.ms=60000
    """
    if action is None:
        raise click.UsageError("One of --describe and --alter must be given")
    kind, name = entity(**given)
    with cluster.admin() as admin:
        if isinstance(name, AllBrokers):
            AllBrokers.node_id = admin.describe_cluster()["brokers"][0]["broker_id"]
        if action == "alter":
            _alter(admin, kind, name, given)
            if not as_json:
                click.echo(f"Altered {_display_name(kind, name)}")
            return
        names = (
            [name] if name is not None else admin.list_config_resources([kind.resource]).get(kind.resource.lower(), [])
        )
        described = {each: _described(admin, kind, each, show_all=show_all) for each in sorted(names)}
    if as_json:
        show_json(
            [{"entity_type": kind.entity_type, "name": each, "configs": rows} for each, rows in described.items()]
        )
        return
    for each, rows in described.items():
        show_table(rows, ["name", "value", "source", "read_only"], title=f"Configs of {_display_name(kind, each)}")


def entity(**given: Any) -> tuple[Kind, str | None]:
    """Returns the entity type and the entity name that the options select; a name of None selects all entities.

    :raises click.UsageError: the options select none, or more than one
    """
    found: list[tuple[str, str | None]] = [
        (entity_type, given[option]) for option, entity_type in SHORT.items() if given[option] is not None
    ]
    if given["broker_defaults"]:
        found.append(("brokers", AllBrokers()))
    if given["entity_type"]:
        found.append((given["entity_type"], AllBrokers() if given["entity_default"] else given["entity_name"]))
    if len(found) != 1:
        raise click.UsageError("One of --entity-type, --topic, --broker, --group and the like must be given")
    ((entity_type, name),) = found
    if isinstance(name, AllBrokers) and entity_type != "brokers":
        raise click.UsageError("--entity-default can only be used with brokers")
    return KINDS[entity_type], name


def _alter(admin: Any, kind: Kind, name: str | None, given: dict[str, Any]) -> None:
    from kafka.admin import ConfigResource

    if name is None:
        raise click.UsageError("--alter needs the name of the entity")
    changes: dict[str, tuple[str, str | None]] = {}
    if given["add_config_file"]:
        changes.update({key: ("SET", value) for key, value in read_properties(str(given["add_config_file"])).items()})
    changes.update({key: ("SET", value) for key, value in config_pairs(given["add_config"] or "")})
    changes.update({key.strip(): ("DELETE", None) for key in (given["delete_config"] or "").split(",") if key.strip()})
    if not changes:
        raise click.UsageError("--alter needs --add-config, --add-config-file or --delete-config")
    resource = ConfigResource(kind.resource, name, changes)
    response = admin.alter_configs([resource], raise_on_unknown=False, incremental=True)
    result = response[kind.resource.lower()][str(name)]
    if result != "OK":
        raise click.ClickException(error_text(result))


def config_pairs(text: str) -> Iterator[tuple[str, str]]:
    """Parses ``key=value`` pairs between commas; a value in brackets may contain commas.

    :raises click.UsageError: the text is something else
    """
    rest = text.strip()
    while rest:
        key, equals, rest = rest.partition("=")
        if not equals or not key.strip():
            raise click.UsageError(f"--add-config is {text!r}, but must be key=value,key=[value,value]")
        if rest.startswith("["):
            value, _, rest = rest[1:].partition("]")
            rest = rest.partition(",")[2]
        else:
            value, _, rest = rest.partition(",")
        yield key.strip(), value.strip()


def _described(admin: Any, kind: Kind, name: str, *, show_all: bool) -> list[dict[str, Any]]:
    from kafka.admin import ConfigResource

    response = admin.describe_configs([ConfigResource(kind.resource, name)], config_filter="all")
    found = response[kind.resource.lower()][str(name)]
    return [
        {
            "name": key,
            "value": found[key]["value"],
            "source": found[key]["config_source"],
            "read_only": found[key]["read_only"],
            "sensitive": found[key]["is_sensitive"],
        }
        for key in sorted(found)
        if show_all or found[key]["config_source"] in kind.own_sources
    ]


def _display_name(kind: Kind, name: str | None) -> str:
    return f"{kind.entity_type.removesuffix('s')} {name}" if name else "all brokers"

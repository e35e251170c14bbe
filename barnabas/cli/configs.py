"""``barnabas configs``, with the options of kafka-configs.

Knows nothing of what a config means; types, defaults and values come from the broker.
"""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import click

from barnabas.cli import client_entities
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
    "user": "users",
    "client": "clients",
    "ip": "ips",
}
#: ``--user-defaults`` is short for ``--entity-type users --entity-default``.
SHORT_DEFAULTS = {
    "broker_defaults": "brokers",
    "user_defaults": "users",
    "client_defaults": "clients",
    "ip_defaults": "ips",
}


class AllBrokers(str):
    """The empty name, which means all brokers. The client converts it to the id of a broker to send the request to."""

    __slots__ = ()
    node_id = 0

    def __int__(self) -> int:
        return type(self).node_id


class ConfigsCommand(click.Command):
    """Reads ``--entity-default`` as an empty ``--entity-name``: kafka-configs gives names to types in their order."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(context, ["--entity-name=" if each == "--entity-default" else each for each in args])


@click.command(cls=ConfigsCommand)
@click.option("--describe", "action", flag_value="describe", help="Describe configs.")
@click.option("--alter", "action", flag_value="alter", help="Change configs.")
@click.option("--entity-type", multiple=True, type=click.Choice([*KINDS, *client_entities.TYPES]),
              help="The type of the entity; users and clients may be combined.")  # fmt: skip
@click.option("--entity-name", multiple=True, help="The name of the entity: a topic's or user's name, a broker's id.")
@click.option(
    "--entity-default", is_flag=True, help="All brokers; all users, clients or IPs without configs of their own."
)
@click.option("--topic", help="Short for --entity-type topics --entity-name.")
@click.option("--broker", help="Short for --entity-type brokers --entity-name.")
@click.option("--broker-defaults", is_flag=True, help="Short for --entity-type brokers --entity-default.")
@click.option("--broker-logger", help="Short for --entity-type broker-loggers --entity-name.")
@click.option("--client-metrics", help="Short for --entity-type client-metrics --entity-name.")
@click.option("--group", help="Short for --entity-type groups --entity-name.")
@click.option("--user", help="Short for --entity-type users --entity-name.")
@click.option("--user-defaults", is_flag=True, help="Short for --entity-type users --entity-default.")
@click.option("--client", help="Short for --entity-type clients --entity-name.")
@click.option("--client-defaults", is_flag=True, help="Short for --entity-type clients --entity-default.")
@click.option("--ip", help="Short for --entity-type ips --entity-name.")
@click.option("--ip-defaults", is_flag=True, help="Short for --entity-type ips --entity-default.")
@click.option("--all", "show_all", is_flag=True, help="Describe all configs, including defaults.")
@click.option("--add-config", help="Configs to set: key=value,key=[value,value].")
@click.option("--add-config-file", type=click.Path(path_type=Path), help="A properties file with configs to set.")
@click.option("--delete-config", help="Configs to remove: key,key.")
@json_option
@cluster_options
def configs(cluster: Cluster, action: str | None, as_json: bool, show_all: bool, **given: Any) -> None:
    """Describe and alter configs, quotas of users, clients and IPs, and SCRAM credentials of users.

    \b
    barnabas configs --describe --topic orders --all
    barnabas configs --alter --topic orders --add-config retention.ms=60000
    barnabas configs --alter --user alice --add-config 'SCRAM-SHA-512=[password=secret]'
    barnabas configs --alter --client-defaults --add-config producer_byte_rate=1048576
    """
    if action is None:
        raise click.UsageError("One of --describe and --alter must be given")
    selected = entities(**given)
    if all(entity_type in client_entities.TYPES for entity_type, _ in selected):
        _client_entity(cluster, action, selected, given, as_json=as_json)
        return
    kind, name = entity(selected)
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


def entities(**given: Any) -> list[tuple[str, str | None]]:
    """Returns the entity types and names that the options select. None selects all entities, an empty name the default.

    :raises click.UsageError: the options select none, or there are more names than types
    """
    types, names = given["entity_type"], given["entity_name"]
    if len(names) > len(types):
        raise click.UsageError("--entity-name and --entity-default need --entity-type before them")
    found = list(itertools.zip_longest(types, names))
    found += [(entity_type, given[option]) for option, entity_type in SHORT.items() if given[option] is not None]
    found += [(entity_type, "") for option, entity_type in SHORT_DEFAULTS.items() if given[option]]
    if not found:
        raise click.UsageError("One of --entity-type, --topic, --broker, --group and the like must be given")
    return found


def entity(selected: list[tuple[str, str | None]]) -> tuple[Kind, str | None]:
    """Returns the only entity's type and name, where the type has configs.

    :raises click.UsageError: there are several entities, or the type has no default
    """
    if len(selected) != 1:
        raise click.UsageError("Only users and clients can be combined")
    ((entity_type, name),) = selected
    if name == "" and entity_type != "brokers":
        raise click.UsageError(f"{entity_type} have no default")
    return KINDS[entity_type], AllBrokers() if name == "" else name


def _client_entity(
    cluster: Cluster, action: str, selected: list[tuple[str, str | None]], given: dict[str, Any], *, as_json: bool
) -> None:
    if action == "alter":
        added, deleted = _changes(given)
        changes = client_entities.changes_of(added, deleted)
        with cluster.admin() as admin:
            client_entities.alter(admin, selected, changes)
        if not as_json:
            named = {client_entities.TYPES[kind]: name or None for kind, name in selected}
            click.echo(f"Altered {client_entities.display_name(named)}")
        return
    with cluster.admin() as admin:
        rows = client_entities.describe(admin, selected)
    if as_json:
        show_json(rows)
        return
    for row in rows:
        configs = [{"name": name, "value": value} for name, value in row["configs"].items()]
        show_table(configs, ["name", "value"], title=f"Configs of {client_entities.display_name(row['entity'])}")
    if not rows:
        click.echo("No configs")


def _alter(admin: Any, kind: Kind, name: str | None, given: dict[str, Any]) -> None:
    from kafka.admin import ConfigResource

    if name is None:
        raise click.UsageError("--alter needs the name of the entity")
    added, deleted = _changes(given)
    changes: dict[str, tuple[str, str | None]] = {
        **{key: ("SET", value) for key, value in added.items()},
        **dict.fromkeys(deleted, ("DELETE", None)),
    }
    resource = ConfigResource(kind.resource, name, changes)
    response = admin.alter_configs([resource], raise_on_unknown=False, incremental=True)
    result = response[kind.resource.lower()][str(name)]
    if result != "OK":
        raise click.ClickException(error_text(result))


def _changes(given: dict[str, Any]) -> tuple[dict[str, str], list[str]]:
    """Returns the configs to set, and the names of those to remove."""
    added = read_properties(str(given["add_config_file"])) if given["add_config_file"] else {}
    added.update(config_pairs(given["add_config"] or ""))
    deleted = [key.strip() for key in (given["delete_config"] or "").split(",") if key.strip()]
    if not added and not deleted:
        raise click.UsageError("--alter needs --add-config, --add-config-file or --delete-config")
    return added, deleted


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

    response = admin.describe_configs([ConfigResource(kind.resource, name)], config_filter="all", include_synonyms=True)
    found = response[kind.resource.lower()][str(name)]
    return [
        {
            "name": key,
            "value": found[key]["value"],
            "source": found[key]["config_source"],
            "read_only": found[key]["read_only"],
            "sensitive": found[key]["is_sensitive"],
            "synonyms": [
                {"name": each["name"], "value": each["value"], "source": each["source"]}
                for each in found[key].get("synonyms", ())
            ],
        }
        for key in sorted(found)
        if show_all or found[key]["config_source"] in kind.own_sources
    ]


def _display_name(kind: Kind, name: str | None) -> str:
    return f"{kind.entity_type.removesuffix('s')} {name}" if name else "all brokers"

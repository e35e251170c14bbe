"""``barnabas storage``, with the commands and options of kafka-storage.

Knows nothing of a running broker. A single node formats its directories at its first start; this command is for
choosing the cluster's id, its features or its first users.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from barnabas.cli import serve
from barnabas.cli.feature_levels import feature_dependencies, version_mapping
from barnabas.cli.verbs import Verbs
from barnabas.clock import SystemClock
from barnabas.cluster.formatting import (
    FormatError,
    Node,
    Voter,
    format_directories,
    initial_controllers,
    scram_credential,
)
from barnabas.config import BrokerConfig, ConfigError
from barnabas.config.endpoints import Endpoint
from barnabas.config.sources import parse_properties
from barnabas.log import meta_properties
from barnabas.log.files import DiskFiles
from barnabas.log.meta_properties import InvalidMetaProperties
from barnabas.uuids import random_uuid, uuid_text

config_option = click.option("--config", "-c", required=True, metavar="FILE", help="The node's server.properties.")

VOTERS_ARE_SET = (
    "You cannot specify controller.quorum.voters and format the node with --initial-controllers or --standalone. If "
    "you want to use dynamic quorum, please remove controller.quorum.voters and specify "
    "controller.quorum.bootstrap.servers instead."
)
VOTERS_ARE_MISSING = (
    "Because controller.quorum.voters is not set on this controller, you must specify one of the following: "
    "--standalone, --initial-controllers, or --no-initial-controllers."
)


@click.group(cls=Verbs)
def storage() -> None:
    """Format a node's directories, or show how they are formatted.

    \b
    barnabas storage format --standalone --cluster-id $(barnabas storage random-uuid) --config server.properties
    barnabas storage info --config server.properties
    """


@storage.command("format")
@config_option
@click.option("--cluster-id", "-t", required=True, help="The cluster's id, such as random-uuid prints it.")
@click.option(
    "--add-scram",
    "-S",
    "scram",
    multiple=True,
    metavar="CREDENTIAL",
    help="A user of the new cluster: 'SCRAM-SHA-256=[name=alice,password=secret]', with iterations, salt and "
    "saltedpassword if wanted; may be repeated.",
)
@click.option("--ignore-formatted", "-g", is_flag=True, help="Skip directories that are formatted.")
@click.option("--release-version", "-r", metavar="RELEASE", help="The feature levels of a release of Kafka: 4.2.")
@click.option("--feature", "-f", multiple=True, metavar="NAME=LEVEL", help="A feature and its level; may be repeated.")
@click.option("--standalone", "-s", is_flag=True, help="This node is the only voter of a dynamic quorum.")
@click.option("--no-initial-controllers", "-N", is_flag=True, help="Name no voters.")
@click.option(
    "--initial-controllers",
    "-I",
    "controllers",
    metavar="VOTERS",
    help="The voters of a dynamic quorum, equal on all nodes: 0@example.com:8082:JEXY6aqzQY-32P5TStzaFg, with each "
    "one's directory id; separated by commas.",
)
def format_(
    config: str, cluster_id: str, scram: tuple[str, ...], ignore_formatted: bool, release_version: str | None,
    feature: tuple[str, ...], standalone: bool, no_initial_controllers: bool, controllers: str | None,
) -> None:  # fmt: skip
    """Format the directories of a node that has never started.

    In a cluster of several nodes, each node's directories are formatted with the same cluster id.
    """
    try:
        properties, settings = _read(config)
        _check_voters(properties, settings, standalone, no_initial_controllers, controllers)
        lines = format_directories(
            DiskFiles(),
            _node(settings, cluster_id.strip(), _voters(settings, controllers, standalone=standalone)),
            serve.feature_levels(serve.Options(feature=feature, release_version=release_version)),
            [scram_credential(each, os.urandom) for each in scram],
            ignore_formatted=ignore_formatted,
            now_ms=SystemClock().time_ms(),
            random_bytes=os.urandom,
        )
    except (FormatError, ConfigError, OSError) as error:
        raise click.ClickException(str(error)) from None
    for line in lines:
        click.echo(line)


def _read(config: str) -> tuple[dict[str, str], BrokerConfig]:
    properties = parse_properties(Path(config).read_text("utf-8"))
    return properties, BrokerConfig.from_properties(properties)


def _check_voters(
    properties: dict[str, str], settings: BrokerConfig, standalone: bool, nobody: bool, controllers: str | None
) -> None:
    """Checks that the options name voters if they have to, and do not if the configs name them."""
    if (standalone, nobody, controllers is not None).count(True) > 1:
        raise FormatError(
            "Only one of --standalone, --no-initial-controllers and --initial-controllers can be specified"
        )
    has_voters = bool(settings["controller.quorum.voters"])
    if (standalone or controllers is not None) and has_voters:
        raise FormatError(VOTERS_ARE_SET)
    if standalone and not settings.is_controller:
        raise FormatError("You can only use --standalone on a controller.")
    is_controller = "controller" in properties.get("process.roles", "")
    if is_controller and not (has_voters or standalone or nobody or controllers is not None):
        raise FormatError(VOTERS_ARE_MISSING)


def _node(settings: BrokerConfig, cluster_id: str, voters: Sequence[Voter]) -> Node:
    return Node(
        cluster_id=cluster_id,
        node_id=settings.node_id,
        directories=settings.directories,
        metadata_directory=settings.metadata_log_dir,
        voters=voters,
        has_static_voters=bool(settings["controller.quorum.voters"]),
    )


def _voters(settings: BrokerConfig, controllers: str | None, *, standalone: bool) -> list[Voter]:
    """Returns the voters for the first records of the metadata log."""
    if controllers is not None:
        name = settings.controller_listener_name
        return initial_controllers(controllers, Endpoint(name, "", 0, "PLAINTEXT"))  # the log has no protocols
    return [Voter(settings.node_id, random_uuid(), _own_endpoints(settings))] if standalone else []


def _own_endpoints(settings: BrokerConfig) -> list[Endpoint]:
    """Returns the endpoints at which controllers reach this node: the controller listeners, or else the first listener
    for clients.
    """
    named = settings.controller_listeners or [
        settings.advertised_listeners[0]._replace(name=settings.controller_listener_name)
    ]
    return [each._replace(host=each.host or "localhost") for each in named]


@storage.command()
@config_option
def info(config: str) -> None:
    """Show the node's directories, and their meta.properties."""
    try:
        _, settings = _read(config)
    except (ConfigError, OSError) as error:
        raise click.ClickException(str(error)) from None
    files = DiskFiles()
    directories, problems = [], []
    identity: dict[str, Any] = {}
    for directory in settings.directories:
        if not Path(directory).is_dir():
            problems.append(f"{directory} does not exist")
            continue
        directories.append(directory)
        try:
            found = meta_properties.read(files, directory)
        except (InvalidMetaProperties, OSError) as error:
            problems.append(f"Error loading {directory}/{meta_properties.FILE_NAME}: {error}")
            continue
        if found is None:
            problems.append(f"{directory} is not formatted.")
        elif not identity:
            identity = {"cluster.id": found.cluster_id, "directory.id": uuid_text(found.directory_id),
                        "node.id": found.node_id, "version": 1}  # fmt: skip
        elif (found.cluster_id, found.node_id) != (identity["cluster.id"], identity["node.id"]):
            problems.append(f"{directory} is of node {found.node_id} of cluster {found.cluster_id}")
    _show("Found log director", directories, ("y", "ies"))
    if identity:
        click.echo("Found metadata: {" + ", ".join(f"{name}={value}" for name, value in identity.items()) + "}\n")
    _show("Found problem", problems, ("", "s"))
    if problems:
        raise click.exceptions.Exit(1)


def _show(title: str, lines: list[str], endings: tuple[str, str]) -> None:
    if lines:
        click.echo(f"{title}{endings[len(lines) > 1]}:")
        for line in lines:
            click.echo(f"  {line}")
        click.echo()


@storage.command("random-uuid")
def random_uuid_() -> None:
    """Print a random UUID, as the id of a new cluster."""
    click.echo(uuid_text(random_uuid()))


for shared in (version_mapping, feature_dependencies):
    storage.add_command(shared)

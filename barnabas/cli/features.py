"""``barnabas features``, with the commands and options of kafka-features.

Knows nothing of the broker's internals; it uses an admin client.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

import click

from barnabas.cli.client import Cluster, bootstrap_option, cluster_options, config_option, error_text, pairs
from barnabas.cli.feature_levels import feature_dependencies, version_mapping
from barnabas.cli.output import json_option, show_json, show_table
from barnabas.cli.verbs import Verbs, pass_options_on
from barnabas.cluster.features import (
    KRAFT_VERSION,
    METADATA_VERSION,
    METADATA_VERSIONS,
    default_levels,
    metadata_version_named,
)

COLUMNS = ("feature", "supported_min", "supported_max", "finalized", "epoch")

Described = Mapping[str, Mapping[str, Any]]


@click.group(cls=Verbs)
@bootstrap_option
@config_option
@click.pass_context
def features(context: click.Context, /, **given: str | None) -> None:
    """Show, raise and lower the levels of a cluster's features.

    \b
    barnabas features describe
    barnabas features upgrade --feature transaction.version=2
    barnabas features downgrade --feature transaction.version=1 --dry-run
    """
    pass_options_on(context, given)


def change_options(function: Callable[..., None]) -> Callable[..., None]:
    """Adds the options of the subcommands that change levels."""
    dry_run = click.option("--dry-run", is_flag=True, help="Validate the change, and change nothing.")
    return cluster_options(json_option(dry_run(function)))


def level_options(function: Callable[..., None]) -> Callable[..., None]:
    """Adds the options that select levels."""
    for option in (
        click.option("--release-version", metavar="RELEASE", help="The levels of a release of Kafka: 4.2."),
        click.option("--metadata", metavar="RELEASE", help="The metadata.version, by release or by name: 4.0-IV1."),
        click.option(
            "--feature",
            "chosen",
            multiple=True,
            metavar="NAME=LEVEL",
            help="A feature and its new level; may be repeated.",
        ),
    ):
        function = option(function)
    return function


unsafe_option = click.option("--unsafe", is_flag=True, help="Allow a downgrade that may lose metadata.")


@features.command()
@json_option
@cluster_options
def describe(cluster: Cluster, as_json: bool) -> None:
    """Show the supported and the finalized levels."""
    with cluster.admin() as admin:
        found: Described = admin.describe_features()
    epoch = next((each["finalized_epoch"] for each in found.values() if "finalized_epoch" in each), None)
    rows = []
    for name, each in sorted(found.items()):
        first, last = each.get("supported", (0, 0))
        rows.append(
            {
                "feature": name,
                "supported_min": first,
                "supported_max": last,
                "finalized": finalized_level(each),
                "epoch": epoch,
            }
        )
    if as_json:
        show_json(rows)
        return
    for row in rows:
        if row["feature"] == METADATA_VERSION:
            row.update({key: METADATA_VERSIONS.get(row[key], row[key]) for key in COLUMNS[1:4]})
    show_table(rows, COLUMNS, empty="The cluster has no features")


@features.command()
@level_options
@change_options
def upgrade(cluster: Cluster, as_json: bool, dry_run: bool, **given: Any) -> None:
    """Raise the levels of features."""
    with cluster.admin() as admin:
        levels = requested_levels(admin, is_higher=True, **given)
        change(admin, levels, "UPGRADE", dry_run=dry_run)
    report(levels, "upgraded to {level}", as_json=as_json, dry_run=dry_run)


@features.command()
@level_options
@unsafe_option
@change_options
def downgrade(cluster: Cluster, as_json: bool, dry_run: bool, unsafe: bool, **given: Any) -> None:
    """Lower the levels of features."""
    with cluster.admin() as admin:
        levels = requested_levels(admin, is_higher=False, **given)
        change(admin, levels, "UNSAFE_DOWNGRADE" if unsafe else "SAFE_DOWNGRADE", dry_run=dry_run)
    report(levels, "downgraded to {level}", as_json=as_json, dry_run=dry_run)


@features.command()
@click.option(
    "--feature", "names", multiple=True, metavar="NAME", help="A feature to lower to level 0; may be repeated."
)
@unsafe_option
@change_options
def disable(cluster: Cluster, names: tuple[str, ...], as_json: bool, dry_run: bool, unsafe: bool) -> None:
    """Lower features to level 0."""
    if not names:
        raise click.UsageError("--feature must be given")
    levels = dict.fromkeys(names, 0)
    with cluster.admin() as admin:
        change(admin, levels, "UNSAFE_DOWNGRADE" if unsafe else "SAFE_DOWNGRADE", dry_run=dry_run)
    report(levels, "disabled", as_json=as_json, dry_run=dry_run)


def requested_levels(
    admin: Any, *, is_higher: bool, chosen: tuple[str, ...], release_version: str | None, metadata: str | None
) -> dict[str, int]:
    """Returns the new levels that the options select.

    Of a release's levels, those are returned that the cluster has not reached, of features that the broker supports.

    :raises click.UsageError: the options select no levels, or contradict one another
    """
    if release_version is not None:
        if chosen or metadata is not None:
            raise click.UsageError("--release-version cannot be combined with --feature or --metadata")
        levels = default_levels(metadata_version_named(release_version))
        now = {name: finalized_level(each) for name, each in admin.describe_features().items()}
        return {
            name: level
            for name, level in levels.items()
            if name in now and (is_higher or name != KRAFT_VERSION)
            if name == METADATA_VERSION or (level > now[name] if is_higher else level < now[name])
        }
    found = {}
    if metadata is not None:
        found[METADATA_VERSION] = metadata_version_named(metadata, "--metadata")
    for name, text in pairs(chosen, "--feature").items():
        if not text.removeprefix("-").isdecimal():
            raise click.UsageError(f"--feature is '{name}={text}', but the level must be a whole number")
        if name in found:
            raise click.UsageError(f"{METADATA_VERSION} is given twice, by --metadata and by --feature")
        found[name] = int(text)
    if not found:
        raise click.UsageError("One of --feature and --release-version must be given")
    return found


def finalized_level(feature: Mapping[str, Any]) -> int:
    """Returns the finalized level of a feature; 0 if none is finalized."""
    level: int = feature.get("finalized", (0, 0))[1]
    return level


def change(admin: Any, levels: Mapping[str, int], upgrade_type: str, *, dry_run: bool) -> None:
    """Changes the levels in one request; the broker changes all or none.

    :raises click.ClickException: the broker refuses, with its error message
    """
    from kafka.errors import BrokerResponseError

    updates = {name: (upgrade_type, level) for name, level in levels.items()}
    try:
        results = admin.update_features(updates, validate_only=dry_run)
    except BrokerResponseError as error:
        # kafka-python's text contains the request and the response, with the broker's error message in it.
        message = re.search(r"error_message=(['\"])(.+)\1\)", str(error))
        name = error_text(type(error).__name__).strip()
        raise click.ClickException(f"{name}: {message[2]}" if message else error_text(error)) from None
    failed = {name: result for name, result in results.items() if result != "OK"}
    if failed:
        raise click.ClickException("; ".join(f"{name}: {error_text(result)}" for name, result in failed.items()))


def report(levels: Mapping[str, int], done: str, *, as_json: bool, dry_run: bool) -> None:
    if as_json:
        show_json([{"feature": name, "level": level} for name, level in sorted(levels.items())])
        return
    for name, level in sorted(levels.items()):
        click.echo(f"{name} {'can be' if dry_run else 'was'} {done.format(level=level)}.")


for shared in (version_mapping, feature_dependencies):
    features.add_command(shared)

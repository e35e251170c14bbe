"""``version-mapping`` and ``feature-dependencies``, which are commands of ``barnabas features`` and of ``barnabas
storage``.

Knows nothing of any cluster. Apache Kafka's ``FeatureCommand`` and ``StorageTool`` (KIP-1022).
"""

import click

from barnabas.cluster.features import (
    ELIGIBLE_LEADER_REPLICAS,
    KRAFT_VERSION,
    METADATA_VERSION,
    METADATA_VERSIONS,
    SHARE_VERSION,
    SUPPORTED,
    TRANSACTION_VERSION,
    default_levels,
    metadata_version_named,
)
from barnabas.config import ConfigError

ORDER = (
    METADATA_VERSION, KRAFT_VERSION, TRANSACTION_VERSION, "group.version", ELIGIBLE_LEADER_REPLICAS, SHARE_VERSION,
    "streams.version",
)  # fmt: skip


@click.command("version-mapping")
@click.option("--release-version", metavar="RELEASE", help="The release of Kafka; the newest without it.")
def version_mapping(release_version: str | None) -> None:
    """Show the levels of features that a release of Kafka has."""
    release = release_version or METADATA_VERSIONS[SUPPORTED[METADATA_VERSION].last]
    try:
        level = metadata_version_named(release)
    except ConfigError:
        known = ", ".join(METADATA_VERSIONS.values())
        raise click.ClickException(
            f"Unknown metadata.version '{release}'. Supported metadata.version are: {known}"
        ) from None
    levels = default_levels(level)
    for name in ORDER:
        click.echo(f"{name}={levels[name]}" + (f" ({release})" if name == METADATA_VERSION else ""))


@click.command("feature-dependencies")
@click.option("--feature", "chosen", multiple=True, required=True, metavar="NAME=LEVEL", help="May be repeated.")
def feature_dependencies(chosen: tuple[str, ...]) -> None:
    """Show the dependencies of feature levels on levels of other features."""
    for name, _, text in (each.partition("=") for each in chosen):
        feature = SUPPORTED.get(name)
        if feature is None:
            raise click.ClickException(f"Unknown feature: {name}")
        if not text.isdecimal() or not feature.first <= int(text) <= feature.last:
            raise click.ClickException(f"No feature:{name} with feature level {text}")
        shown = f"{name}={text}" + (f" ({METADATA_VERSIONS[int(text)]})" if name == METADATA_VERSION else "")
        if not int(text) or not feature.needs:
            click.echo(f"{shown} has no dependencies.")
        else:
            click.echo(f"{shown} requires:")
            click.echo(f"    {METADATA_VERSION}={feature.needs} ({METADATA_VERSIONS[feature.needs]})")

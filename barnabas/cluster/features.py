"""The features of a cluster: which levels this node knows, what a new cluster starts with, what each level rests on.

Knows nothing of records and requests. Levels are finalized for a whole cluster (KIP-584, KIP-1022); tables and rules
of Apache Kafka's ``Feature``, ``MetadataVersion`` and ``Formatter``.
"""

from collections.abc import Mapping
from typing import NamedTuple

from barnabas.config.definition import ConfigError

METADATA_VERSION = "metadata.version"
KRAFT_VERSION = "kraft.version"
ELIGIBLE_LEADER_REPLICAS = "eligible.leader.replicas.version"
SHARE_VERSION = "share.version"
TRANSACTION_VERSION = "transaction.version"


class Feature(NamedTuple):
    """The levels of a feature that this node knows."""

    first: int
    last: int
    since: int  #: the ``metadata.version`` from which on a new cluster starts with the last level, before it with 0
    needs: int = 0  #: the ``metadata.version`` that every level but 0 rests on


FEATURES: dict[str, Feature] = {
    METADATA_VERSION: Feature(7, 30, 7),
    ELIGIBLE_LEADER_REPLICAS: Feature(0, 1, 26, needs=23),
    "group.version": Feature(0, 1, 22),
    SHARE_VERSION: Feature(0, 1, 28),
    "streams.version": Feature(0, 1, 29),
    TRANSACTION_VERSION: Feature(0, 2, 24),
}
"""Those of Apache Kafka 4.3.1, in the order in which it writes them down; metadata.version 30 is 4.3-IV0."""

KRAFT = Feature(0, 1, 21)
"""Known with the others, and kept elsewhere: a control record raises it (KIP-853). A quorum starts without it."""

SUPPORTED: dict[str, Feature] = {**FEATURES, KRAFT_VERSION: KRAFT}

# ---------------------------------------------------------------- metadata.version

_RELEASES = (
    "3.3-IV3* 3.4-IV0* 3.5-IV0 3.5-IV1 3.5-IV2* 3.6-IV0 3.6-IV1* 3.6-IV2* 3.7-IV0* 3.7-IV1 3.7-IV2* 3.7-IV3 3.7-IV4 "
    "3.8-IV0 3.9-IV0 4.0-IV0 4.0-IV1* 4.0-IV2 4.0-IV3 4.1-IV0 4.1-IV1 4.2-IV0 4.2-IV1 4.3-IV0*"
)
"""The levels of ``metadata.version`` by name, in their order; a star says that it brought new metadata records."""

METADATA_VERSIONS: dict[int, str] = {
    level: name.rstrip("*") for level, name in enumerate(_RELEASES.split(), FEATURES[METADATA_VERSION].first)
}
_BRINGS_RECORDS = {
    level for level, name in enumerate(_RELEASES.split(), FEATURES[METADATA_VERSION].first) if name.endswith("*")
}

METADATA_TRANSACTIONS = 13
"""From this ``metadata.version`` on what is more than one batch is written in a transaction (KIP-868)."""

CONTROLLER_REGISTRATION = 15
"""From this one on controllers register themselves (KIP-919)."""

DIRECTORIES = 17
"""From this one on the metadata says which of a broker's directories holds a replica (KIP-858)."""

CORDONED_DIRECTORIES = 30
"""From this one on the metadata says which directories take no new partitions (KIP-1066)."""


def metadata_version_named(text: str, option: str = "--release-version") -> int:
    """The level that the user of an option means: ``4.0-IV1`` is that one, ``4.0`` and ``4.0.1`` the last of 4.0.

    :raises ConfigError: there is none
    """
    release = ".".join(text.split(".")[:2])
    for level, name in reversed(METADATA_VERSIONS.items()):
        if text == name or release == name.partition("-")[0]:
            return level
    raise ConfigError(option, text, f"one of {', '.join(METADATA_VERSIONS.values())}")


def loses_metadata(current: int, lower: int) -> bool:
    """Whether a level above ``lower``, and not above ``current``, has brought records that ``lower`` does not know."""
    return any(lower < level <= current for level in _BRINGS_RECORDS)


# ---------------------------------------------------------------- what a cluster starts with


def first_levels(asked: Mapping[str, int]) -> dict[str, int]:
    """The levels that a new cluster has, those that are 0 left out: what was asked for, and for the rest what goes with
    its ``metadata.version``.

    :raises ConfigError: there is no such feature or level, or one rests on another that is not there
    """
    for name, level in asked.items():
        check_level(name, level)
    metadata_version = asked.get(METADATA_VERSION, FEATURES[METADATA_VERSION].last)
    wanted = {**default_levels(metadata_version), **asked}
    levels = {name: wanted[name] for name in FEATURES if wanted[name]}
    for name, level in levels.items():
        if reason := missing_need(name, level, metadata_version):
            raise ConfigError(f"--feature {name}", str(level), reason)
    return levels


def default_levels(metadata_version: int) -> dict[str, int]:
    """The level of every feature that goes with that ``metadata.version``."""
    levels = {name: feature.last if metadata_version >= feature.since else 0 for name, feature in SUPPORTED.items()}
    return {**levels, METADATA_VERSION: metadata_version}


def check_level(name: str, level: int) -> None:
    """Raise :class:`ConfigError` unless this node knows that level."""
    feature = SUPPORTED.get(name)
    if feature is None:
        raise ConfigError("--feature", name, f"a feature: {', '.join(sorted(SUPPORTED))}")
    if not feature.first <= level <= feature.last:
        raise ConfigError(f"--feature {name}", str(level), f"a level from {feature.first} to {feature.last}")


def missing_need(name: str, level: int, metadata_version: int) -> str | None:
    """What that level rests on and is not there; None where it can be."""
    feature = SUPPORTED[name]
    if level and metadata_version < feature.needs:
        return f"0 below {METADATA_VERSION} {feature.needs} ({METADATA_VERSIONS[feature.needs]})"
    return None

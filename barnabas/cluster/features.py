"""The features of a cluster: the supported levels, their defaults, and their dependencies.

Knows nothing of records and requests. Levels are finalized for a whole cluster (KIP-584, KIP-1022). The tables and
rules are those of Apache Kafka's ``Feature``, ``MetadataVersion`` and ``Formatter``.
"""

from collections.abc import Mapping
from typing import NamedTuple

from barnabas.config.validators import ConfigError, InvalidValue

METADATA_VERSION = "metadata.version"
KRAFT_VERSION = "kraft.version"
ELIGIBLE_LEADER_REPLICAS = "eligible.leader.replicas.version"
SHARE_VERSION = "share.version"
TRANSACTION_VERSION = "transaction.version"


class Feature(NamedTuple):
    """The supported levels of a feature."""

    first: int
    last: int
    since: int  #: the lowest ``metadata.version`` at which a new cluster has the last level, otherwise 0
    needs: int = 0  #: the lowest ``metadata.version`` for a level above 0


FEATURES: dict[str, Feature] = {
    METADATA_VERSION: Feature(7, 30, 7),
    ELIGIBLE_LEADER_REPLICAS: Feature(0, 1, 26, needs=23),
    "group.version": Feature(0, 1, 22),
    SHARE_VERSION: Feature(0, 1, 28),
    "streams.version": Feature(0, 1, 29),
    TRANSACTION_VERSION: Feature(0, 2, 24),
}
"""The features of Apache Kafka 4.3.1, in the order of its bootstrap records. metadata.version 30 is 4.3-IV0."""

KRAFT = Feature(0, 1, 21)
"""The version of the quorum, from 0. A control record changes it, not a metadata record (KIP-853)."""

SUPPORTED: dict[str, Feature] = {**FEATURES, KRAFT_VERSION: KRAFT}

# ---------------------------------------------------------------- metadata.version

_RELEASES = (
    "3.3-IV3* 3.4-IV0* 3.5-IV0 3.5-IV1 3.5-IV2* 3.6-IV0 3.6-IV1* 3.6-IV2* 3.7-IV0* 3.7-IV1 3.7-IV2* 3.7-IV3 3.7-IV4 "
    "3.8-IV0 3.9-IV0 4.0-IV0 4.0-IV1* 4.0-IV2 4.0-IV3 4.1-IV0 4.1-IV1 4.2-IV0 4.2-IV1 4.3-IV0*"
)
"""The names of the levels of ``metadata.version``, in order; a star marks levels with new metadata records."""

METADATA_VERSIONS: dict[int, str] = {
    level: name.rstrip("*") for level, name in enumerate(_RELEASES.split(), FEATURES[METADATA_VERSION].first)
}
_BRINGS_RECORDS = {
    level for level, name in enumerate(_RELEASES.split(), FEATURES[METADATA_VERSION].first) if name.endswith("*")
}

METADATA_TRANSACTIONS = 13
"""The first ``metadata.version`` with metadata transactions, for changes of several batches (KIP-868)."""

DELEGATION_TOKENS = 14
"""The first ``metadata.version`` with records of delegation tokens (KIP-900)."""

CONTROLLER_REGISTRATION = 15
"""The first ``metadata.version`` with records of controllers (KIP-919)."""

DIRECTORIES = 17
"""The first ``metadata.version`` with the log directories of replicas (KIP-858)."""

CORDONED_DIRECTORIES = 30
"""The first ``metadata.version`` with cordoned log directories (KIP-1066)."""


def metadata_version_named(text: str, option: str = "--release-version") -> int:
    """Returns the level of that name: ``4.0-IV1`` is exact, ``4.0`` and ``4.0.1`` are the last level of 4.0.

    :raises ConfigError: there is no such level
    """
    release = ".".join(text.split(".")[:2])
    for level, name in reversed(METADATA_VERSIONS.items()):
        if text == name or release == name.partition("-")[0]:
            return level
    raise ConfigError(option, text, f"one of {', '.join(METADATA_VERSIONS.values())}")


def loses_metadata(current: int, lower: int) -> bool:
    """Returns whether a downgrade would lose records: a level above ``lower``, up to ``current``, has new records."""
    return any(lower < level <= current for level in _BRINGS_RECORDS)


# ---------------------------------------------------------------- the levels of a new cluster


def first_levels(given: Mapping[str, int]) -> dict[str, int]:
    """Returns the levels above 0 of a new cluster: the given ones, and the defaults of its ``metadata.version``.

    :raises ConfigError: a feature or level is unknown, or depends on a level that is not given
    """
    for name, level in given.items():
        check_level(name, level)
    metadata_version = given.get(METADATA_VERSION, FEATURES[METADATA_VERSION].last)
    wanted = {**default_levels(metadata_version), **given}
    levels = {name: wanted[name] for name in FEATURES if wanted[name]}
    for name, level in levels.items():
        if reason := missing_need(name, level, metadata_version):
            raise InvalidValue(f"--feature {name}", reason)
    return levels


def default_levels(metadata_version: int) -> dict[str, int]:
    """Returns the default level of every feature at that ``metadata.version``."""
    levels = {name: feature.last if metadata_version >= feature.since else 0 for name, feature in SUPPORTED.items()}
    return {**levels, METADATA_VERSION: metadata_version}


def check_level(name: str, level: int) -> None:
    """Checks that this node supports the level.

    :raises ConfigError: the level is not supported
    """
    feature = SUPPORTED.get(name)
    if feature is None:
        raise ConfigError("--feature", name, f"a feature: {', '.join(sorted(SUPPORTED))}")
    if not feature.first <= level <= feature.last:
        raise ConfigError(f"--feature {name}", str(level), f"a level from {feature.first} to {feature.last}")


def missing_need(name: str, level: int, metadata_version: int) -> str | None:
    """Returns why the ``metadata.version`` is too low for that level, in Apache Kafka's words; None if it is not."""
    feature = SUPPORTED[name]
    if level and metadata_version < feature.needs:
        return f"{name} could not be set to {level} because it depends on {METADATA_VERSION} level {feature.needs}"
    return None

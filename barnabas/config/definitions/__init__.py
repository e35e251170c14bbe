"""Every config of Apache Kafka 4.3.1 and a few others, by the type of its resource.

Knows nothing of values. Each module declares the configs of one theme; this one merges them.
"""

import functools

from barnabas.config.definition import ConfigDef
from barnabas.config.definitions import (
    groups,
    kraft,
    log,
    metrics,
    own,
    remote,
    replication,
    sasl,
    security,
    server,
    shares,
    topics,
    transactions,
)

BROKER_MODULES = (server, log, groups, transactions, replication, kraft, shares, metrics, security, sasl, remote, own)

#: The configs of a broker, by name.
BROKER: dict[str, ConfigDef] = {config.name: config for module in BROKER_MODULES for config in module.CONFIGS}

#: The configs of a topic, by name.
TOPIC: dict[str, ConfigDef] = {config.name: config for config in topics.CONFIGS}

#: Configs of a broker that override one another, in descending precedence (Kafka's ``brokerConfigSynonyms``).
FAMILIES: tuple[tuple[str, ...], ...] = (
    ("log.roll.ms", "log.roll.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
)

#: The family of each config. ``log.flush.scheduler.interval.ms`` is a fallback for ``log.flush.interval.ms``, but not a
#: synonym, so it has no family itself.
FAMILY_OF: dict[str, tuple[str, ...]] = {name: family for family in FAMILIES for name in family}
FAMILY_OF["log.flush.interval.ms"] = ("log.flush.interval.ms", "log.flush.scheduler.interval.ms")


@functools.cache
def of_groups() -> dict[str, ConfigDef]:
    """Returns the configs of a group, by name. Imported at the first call, since a start does not need them."""
    from barnabas.config.definitions import group_level

    return {config.name: config for config in group_level.CONFIGS}


def of_client_metrics() -> dict[str, ConfigDef]:
    """Returns the configs of a client metrics subscription, by name. Imported at the first call."""
    from barnabas.config.definitions import client_metrics

    return {config.name: config for config in client_metrics.CONFIGS}


def topic_name_of(broker_config: str) -> str | None:
    """Returns the topic's config whose default is the broker's config of that name; None if there is none."""
    for config in topics.CONFIGS:
        if any(synonym.name == broker_config for synonym in config.synonyms):
            return config.name
    return None

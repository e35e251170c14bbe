"""Every config of Apache Kafka 4.3.1, by the resource that it belongs to.

Knows nothing of values that were set. One module per theme declares its part; this one puts the parts together.
"""

from barnabas.config.definition import ConfigDef
from barnabas.config.definitions import (
    groups,
    kraft,
    log,
    metrics,
    remote,
    replication,
    sasl,
    security,
    server,
    shares,
    topics,
    transactions,
)

BROKER_MODULES = (server, log, groups, transactions, replication, kraft, shares, metrics, security, sasl, remote)

#: The configs of a broker, by name.
BROKER: dict[str, ConfigDef] = {config.name: config for module in BROKER_MODULES for config in module.CONFIGS}

#: The configs of a topic, by name.
TOPIC: dict[str, ConfigDef] = {config.name: config for config in topics.CONFIGS}

#: For a broker's config, the topic's config that falls back to it.
TOPIC_NAME_OF: dict[str, str] = {synonym.name: config.name for config in topics.CONFIGS for synonym in config.synonyms}

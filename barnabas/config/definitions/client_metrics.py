"""Configs of a client metrics subscription (KIP-714).

Knows nothing but the declarations.
"""

from barnabas.config.definition import CLUSTER_WIDE, INT, LIST, MEDIUM, ConfigDef
from barnabas.config.validators import Items

CONFIGS = (
    ConfigDef(
        "metrics",
        LIST,
        [],
        Items(),
        MEDIUM,
        "Prefixes of the names of the metrics that matching clients push; * for all, empty for none.",
        CLUSTER_WIDE,
        in_effect=True,
    ),
    ConfigDef(
        "interval.ms",
        INT,
        300_000,
        None,
        MEDIUM,
        "How often matching clients push their metrics.",
        CLUSTER_WIDE,
        in_effect=True,
    ),
    ConfigDef(
        "match",
        LIST,
        [],
        Items(),
        MEDIUM,
        "The clients of the subscription: attribute=pattern, separated by commas.",
        CLUSTER_WIDE,
        in_effect=True,
    ),
)

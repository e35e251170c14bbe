"""Configs of our own, which Apache Kafka does not have; they begin with ``barnabas.``.

Knows nothing of values that were set. DescribeConfigs shows one only where it is set: a tool that compares brokers is
not to stumble over it.
"""

from collections.abc import Sequence

from barnabas.config.definition import BOOLEAN, CLUSTER_WIDE, LOW, STRING, ConfigDef

CONFIGS: Sequence[ConfigDef] = (
    ConfigDef(
        "barnabas.compatible.with",
        STRING,
        None,
        None,
        LOW,
        "The release of Apache Kafka, 0.8 to 4.4, that clients take the broker for. Unset: all that it answers.",
        in_effect=True,
        internal=True,
    ),
    ConfigDef(
        "barnabas.log.read.check.crcs",
        BOOLEAN,
        False,
        None,
        LOW,
        "Whether the CRC of each batch is checked when it is read; CORRUPT_MESSAGE answers for a damaged one.",
        CLUSTER_WIDE,
        in_effect=True,
        internal=True,
    ),
)

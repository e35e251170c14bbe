"""Configs of our own, which Apache Kafka does not have; they begin with ``barnabas.``.

Knows nothing of values that were set. DescribeConfigs returns one only if it is set, so that tools that
compare brokers find no unknown configs.
"""

from collections.abc import Sequence

from barnabas.config.definition import BOOLEAN, CLUSTER_WIDE, LOW, PASSWORD, STRING, ConfigDef

CONFIGS: Sequence[ConfigDef] = (
    ConfigDef(
        "barnabas.admin.listener",
        STRING,
        None,
        None,
        LOW,
        "Where the admin API for tests is served by HTTP: 127.0.0.1:0. With it, others can delete everything.",
        in_effect=True,
        internal=True,
    ),
    ConfigDef(
        "barnabas.admin.token",
        PASSWORD,
        None,
        None,
        LOW,
        "What clients of the admin API send as a bearer token. It is required where other machines reach the API.",
        in_effect=True,
        internal=True,
    ),
    ConfigDef(
        "barnabas.compatible.with",
        STRING,
        None,
        None,
        LOW,
        "The release of Apache Kafka, 0.8 to 4.4, whose API versions are offered. Default: all supported ones.",
        in_effect=True,
        internal=True,
    ),
    ConfigDef(
        "barnabas.console.client.config",
        STRING,
        None,
        None,
        LOW,
        "A file with the properties by which the console's client connects to this broker, for TLS and SASL.",
        in_effect=True,
        internal=True,
    ),
    ConfigDef(
        "barnabas.console.listener",
        STRING,
        None,
        None,
        LOW,
        "Where the console, pages for the browser, is served by HTTP: 127.0.0.1:8080.",
        in_effect=True,
        internal=True,
    ),
    ConfigDef(
        "barnabas.console.sasl.mechanism",
        STRING,
        None,
        None,
        LOW,
        "Users of the console log in as this broker's, by PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512 of the first listener.",
        in_effect=True,
        internal=True,
    ),
    ConfigDef(
        "barnabas.console.token",
        PASSWORD,
        None,
        None,
        LOW,
        "What users of the console are asked for. Where other machines reach it, this or the mechanism is required.",
        in_effect=True,
        internal=True,
    ),
    ConfigDef(
        "barnabas.log.read.check.crcs",
        BOOLEAN,
        False,
        None,
        LOW,
        "Whether the CRC of each batch is checked when it is read. A damaged batch is answered with CORRUPT_MESSAGE.",
        CLUSTER_WIDE,
        in_effect=True,
        internal=True,
    ),
    ConfigDef(
        "barnabas.metrics.listener",
        STRING,
        None,
        None,
        LOW,
        "Where /metrics, /health/live and /health/ready are served by HTTP: 127.0.0.1:9308.",
        in_effect=True,
        internal=True,
    ),
    ConfigDef(
        "barnabas.schema.registry.listener",
        STRING,
        None,
        None,
        LOW,
        "Where the schema registry is served by HTTP: 127.0.0.1:8081. Its API is Confluent's.",
        in_effect=True,
        internal=True,
    ),
)

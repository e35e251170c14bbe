"""Metrics, and quotas with the windows they are measured over.

Knows nothing but the declarations.
"""

from barnabas.config.definition import CLASS, CLUSTER_WIDE, INT, LIST, LONG, LOW, MEDIUM, STRING, ConfigDef
from barnabas.config.validators import Items, at_least

CONFIGS = (
    ConfigDef("metrics.num.samples", INT, 2, at_least(1), LOW, "How many samples a metric is computed over."),
    ConfigDef("metrics.sample.window.ms", LONG, 30_000, at_least(1), LOW, "How long one sample of a metric is."),
    ConfigDef(
        "metric.reporters",
        LIST,
        ["org.apache.kafka.common.metrics.JmxReporter"],
        Items(),
        LOW,
        "Java classes that metrics are reported to.",
        CLUSTER_WIDE,
    ),
    ConfigDef(
        "metrics.recording.level", STRING, "INFO", None, LOW, "How much detail metrics record: INFO, DEBUG or TRACE."
    ),
    ConfigDef(
        "kafka.metrics.reporters", LIST, [], Items(), LOW, "Java classes that the older kind of metrics is reported to."
    ),
    ConfigDef(
        "kafka.metrics.polling.interval.secs",
        INT,
        10,
        at_least(1),
        LOW,
        "How often the older kind of metrics is polled, in seconds.",
    ),
    ConfigDef(
        "telemetry.max.bytes",
        INT,
        1_048_576,
        at_least(1),
        LOW,
        "The largest batch of metrics that a client may push, compressed.",
    ),
    ConfigDef("quota.window.num", INT, 11, at_least(1), LOW, "How many samples clients' rates are measured over."),
    ConfigDef(
        "replication.quota.window.num",
        INT,
        11,
        at_least(1),
        LOW,
        "How many samples the rate of replication is measured over.",
    ),
    ConfigDef(
        "alter.log.dirs.replication.quota.window.num",
        INT,
        11,
        at_least(1),
        LOW,
        "How many samples the rate of moving replicas between directories is measured over.",
    ),
    ConfigDef(
        "controller.quota.window.num",
        INT,
        11,
        at_least(1),
        LOW,
        "How many samples the rate of changes to the cluster is measured over.",
    ),
    ConfigDef("quota.window.size.seconds", INT, 1, at_least(1), LOW, "How long one sample of a client's rate is."),
    ConfigDef(
        "replication.quota.window.size.seconds",
        INT,
        1,
        at_least(1),
        LOW,
        "How long one sample of the rate of replication is.",
    ),
    ConfigDef(
        "alter.log.dirs.replication.quota.window.size.seconds",
        INT,
        1,
        at_least(1),
        LOW,
        "How long one sample of the rate of moving replicas between directories is.",
    ),
    ConfigDef(
        "controller.quota.window.size.seconds",
        INT,
        1,
        at_least(1),
        LOW,
        "How long one sample of the rate of changes to the cluster is.",
    ),
    ConfigDef(
        "client.quota.callback.class",
        CLASS,
        None,
        None,
        LOW,
        "The Java class that determines the quota of a request.",
    ),
    ConfigDef(
        "leader.replication.throttled.rate",
        LONG,
        None,
        at_least(0),
        MEDIUM,
        "How many bytes a second throttled replicas may be sent by this broker as leader.",
        CLUSTER_WIDE,
        internal=True,
    ),
    ConfigDef(
        "follower.replication.throttled.rate",
        LONG,
        None,
        at_least(0),
        MEDIUM,
        "How many bytes a second throttled replicas may be fetched by this broker as follower.",
        CLUSTER_WIDE,
        internal=True,
    ),
    ConfigDef(
        "replica.alter.log.dirs.io.max.bytes.per.second",
        LONG,
        None,
        at_least(0),
        MEDIUM,
        "How many bytes a second may move between log directories.",
        CLUSTER_WIDE,
        internal=True,
        in_effect=True,
    ),
)

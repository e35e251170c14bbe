"""Replicas: how followers fetch, who is in sync, who leads.

Knows nothing but the declarations.
"""

from barnabas.config.definition import BOOLEAN, CLUSTER_WIDE, HIGH, INT, LONG, MEDIUM, STRING, ConfigDef
from barnabas.config.validators import at_least

CONFIGS = (
    ConfigDef(
        "replica.lag.time.max.ms",
        LONG,
        30_000,
        None,
        HIGH,
        "A follower that was behind for so long is taken out of the in-sync replicas.",
    ),
    ConfigDef(
        "replica.socket.timeout.ms",
        INT,
        30_000,
        None,
        HIGH,
        "How long a follower's request to its leader waits for the answer.",
    ),
    ConfigDef(
        "replica.socket.receive.buffer.bytes",
        INT,
        65_536,
        None,
        HIGH,
        "SO_RCVBUF of a follower's connection to its leader.",
    ),
    ConfigDef(
        "replica.fetch.max.bytes",
        INT,
        1_048_576,
        at_least(0),
        MEDIUM,
        "The most that a follower fetches of one partition; a first batch is given whole.",
    ),
    ConfigDef("replica.fetch.wait.max.ms", INT, 500, None, HIGH, "How long a follower's fetch may wait for data."),
    ConfigDef(
        "replica.fetch.backoff.ms", INT, 1000, at_least(0), MEDIUM, "How long a follower pauses after a failed fetch."
    ),
    ConfigDef("replica.fetch.min.bytes", INT, 1, None, HIGH, "How many bytes a follower's fetch waits for."),
    ConfigDef(
        "replica.fetch.response.max.bytes",
        INT,
        10_485_760,
        at_least(0),
        MEDIUM,
        "The most that one answer to a follower's fetch holds.",
    ),
    ConfigDef(
        "num.replica.fetchers", INT, 1, at_least(1), HIGH, "Threads that fetch from each other broker.", CLUSTER_WIDE
    ),
    ConfigDef(
        "replica.high.watermark.checkpoint.interval.ms",
        LONG,
        5000,
        None,
        HIGH,
        "How often high watermarks are written down.",
        in_effect=True,
    ),
    ConfigDef(
        "fetch.purgatory.purge.interval.requests",
        INT,
        1000,
        None,
        MEDIUM,
        "How many finished fetches the list of waiting ones gathers before it is tidied.",
    ),
    ConfigDef(
        "producer.purgatory.purge.interval.requests",
        INT,
        1000,
        None,
        MEDIUM,
        "How many finished produces the list of waiting ones gathers before it is tidied.",
    ),
    ConfigDef(
        "delete.records.purgatory.purge.interval.requests",
        INT,
        1,
        None,
        MEDIUM,
        "How many finished DeleteRecords the list of waiting ones gathers before it is tidied.",
    ),
    ConfigDef(
        "share.fetch.purgatory.purge.interval.requests",
        INT,
        1000,
        None,
        MEDIUM,
        "How many finished share fetches the list of waiting ones gathers before it is tidied.",
    ),
    ConfigDef(
        "auto.leader.rebalance.enable",
        BOOLEAN,
        True,
        None,
        HIGH,
        "Whether leadership goes back to preferred replicas by itself.",
    ),
    ConfigDef(
        "leader.imbalance.check.interval.seconds",
        LONG,
        300,
        at_least(1),
        HIGH,
        "How often preferred replicas are compared with leaders.",
    ),
    ConfigDef(
        "unclean.leader.election.interval.ms",
        LONG,
        300_000,
        at_least(1),
        MEDIUM,
        "How often the controller looks for partitions that need an unclean election.",
        internal=True,
    ),
    ConfigDef(
        "unclean.leader.election.enable",
        BOOLEAN,
        False,
        None,
        HIGH,
        "Whether a replica that is not in sync may become leader, at the price of lost records.",
        CLUSTER_WIDE,
    ),
    ConfigDef(
        "replica.selector.class",
        STRING,
        None,
        None,
        MEDIUM,
        "The Java class that picks the replica a consumer reads from.",
    ),
    ConfigDef(
        "follower.fetch.last.tiered.offset.enable",
        BOOLEAN,
        False,
        None,
        MEDIUM,
        "Whether a new follower starts at the last offset in remote storage.",
        CLUSTER_WIDE,
    ),
)

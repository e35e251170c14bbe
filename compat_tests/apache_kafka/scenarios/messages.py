"""Error messages that no other scenario causes: configs of every type and of every kind of resource.

The texts of all other scenarios are compared, too: see ``compare.py``.
"""

from typing import Any

from ..play import Step
from ..steps import create, scenario
from .configs import (
    APPEND,
    BROKER,
    DELETE,
    GROUP,
    LOGGER,
    METRICS,
    SUBTRACT,
    TOPIC,
    altered,
    on,
    plain,
    replaced,
    setting,
)

OF_TOPICS = {
    "cleanup.policy": ["burn", "delete,burn,burn", "delete,,compact", ",", "delete,delete"],
    "compression.type": ["", "LZ4"],
    "retention.ms": ["", " ", "soon", "-3", "1.5", "99999999999999999999", "0x10"],
    "segment.bytes": ["0", "99999999999", "true"],
    "min.cleanable.dirty.ratio": ["x", "-3", "1.5", "1e400", "99999999999999999999"],
    "preallocate": ["yes", "1", ""],
    "leader.replication.throttled.replicas": ["x", "1:2:3", "*,1:1", "a,a"],
    "compression.gzip.level": ["0", "10", "x"],
    "compression.zstd.level": ["23", "-999999"],
    "message.timestamp.type": ["Never"],
    "remote.storage.enable": ["true"],
}
OF_GROUPS = {
    "consumer.session.timeout.ms": ["x", "1", "99999999"],
    "consumer.heartbeat.interval.ms": ["1", "99999999"],
    "share.record.lock.duration.ms": ["1", "99999999"],
    "share.auto.offset.reset": ["", "by_duration:-PT1S", "nope"],
    "share.isolation.level": ["READ_COMMITTED"],
    "share.renew.acknowledge.enable": ["perhaps"],
    "streams.session.timeout.ms": ["1", "99999999"],
    "streams.num.standby.replicas": ["-1", "99999999"],
}
OF_BROKERS = {
    "num.io.threads": ["x", "0", "1", "17"],
    "background.threads": ["1", "100"],
    "log.cleaner.threads": ["3"],
    "max.connections": ["x", "0"],
    "max.connections.per.ip": ["-1"],
    "log.retention.ms": ["0", "x"],
    "log.roll.ms": ["0"],
    "log.cleanup.policy": ["burn", "delete,delete"],
    "log.cleaner.dedupe.buffer.size": ["5"],
    "ssl.keystore.location": ["/x"],
    "ssl.client.auth": ["x"],
    "num.partitions": ["3"],
    "cordoned.log.dirs": ["/nope"],
    "no.such.config": ["1"],
}
OF_METRICS = {
    "interval.ms": ["", "x", "99", "3600001", "9999999999"],
    "metrics": [",", "a,", "a,a"],
    "match": ["x", "client_id", "client_id=", "client_id=[", "nope=1", "client_id==", "a=b=c"],
}


def each_of(kind: int, name: str, values: dict[str, list[str]]) -> list[Step]:
    return [
        altered(on(kind, name, setting(config, value)), validate=True)
        for config, refused in values.items()
        for value in refused
    ]


def one_by_one(kind: int, name: str, *settings: dict[str, Any]) -> list[Step]:
    return [altered(on(kind, name, each), validate=True) for each in settings]


SCENARIOS = [
    scenario("texts, of topics", "IncrementalAlterConfigs", create("~t"), each_of(TOPIC, "~t", OF_TOPICS)),
    scenario("texts, of groups", "IncrementalAlterConfigs", each_of(GROUP, "~g", OF_GROUPS)),
    scenario("texts, of a broker", "IncrementalAlterConfigs", each_of(BROKER, "1", OF_BROKERS), alone=True),
    scenario("texts, of all brokers", "IncrementalAlterConfigs", each_of(BROKER, "", OF_BROKERS), alone=True),
    scenario("texts, of subscriptions", "IncrementalAlterConfigs", each_of(METRICS, "~m", OF_METRICS)),
    scenario(
        "texts, of lists that are none",
        "IncrementalAlterConfigs",
        one_by_one(BROKER, "1", setting("no.such", "x", APPEND), setting("message.max.bytes", "x", SUBTRACT)),
        one_by_one(GROUP, "~g", setting("consumer.session.timeout.ms", "46000", APPEND)),
        one_by_one(METRICS, "~m", setting("metrics", "a", APPEND), setting("nope", "a", SUBTRACT)),
    ),
    scenario(
        "texts, of loggers",
        "IncrementalAlterConfigs",
        one_by_one(
            LOGGER,
            "1",
            setting("root", "LOUD"),
            setting("root", None),
            setting("root", "DEBUG", APPEND),
            setting("root", "DEBUG", SUBTRACT),
            setting("root", None, DELETE),
            setting("nope", "INFO"),
        ),
    ),
    scenario(
        "texts, of configs that contradict each other",
        "IncrementalAlterConfigs",
        create("~t"),
        altered(
            on(GROUP, "~g", setting("streams.session.timeout.ms", "1"), setting("streams.heartbeat.interval.ms", "1"))
        ),
        altered(
            on(GROUP, "~g", setting("zzz", "x"), setting("consumer.heartbeat.interval.ms", "x"), setting("aaa", "1"))
        ),
        altered(on(TOPIC, "~t", setting("zzz", "x"), setting("retention.ms", "x"), setting("aaa", "1"))),
        altered(on(TOPIC, "~t", setting("retention.ms", "x"), setting("segment.bytes", "x"))),
        altered(on(TOPIC, "~t", setting("min.compaction.lag.ms", "9"), setting("max.compaction.lag.ms", "5"))),
    ),
    scenario(
        "texts",
        "AlterConfigs",
        create("~t"),
        [
            replaced(each)
            for each in (
                on(TOPIC, "~t", plain(value=None), plain("segment.ms", None)),
                on(TOPIC, "~t", plain(value=None), plain()),
                on(METRICS, "~m", plain()),
                on(METRICS, "", plain()),
                on(GROUP, "", plain()),
                on(GROUP, "~g", plain()),
                on(BROKER, "1", plain("message.max.bytes", None)),
            )
        ],
    ),
]

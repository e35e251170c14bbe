"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs and ListConfigResources."""

from typing import Any

from ..play import Step
from ..steps import ask, create, pause, scenario, stable

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3


def resource(kind: int = TOPIC, name: str = "~t", keys: list[str] | None = None) -> dict[str, Any]:
    return {"ResourceType": kind, "ResourceName": name, "ConfigurationKeys": keys}


def described(*resources: dict[str, Any], **more: Any) -> Step:
    return ask("DescribeConfigs", Resources=list(resources), **more)


KINDS = [
    (TOPIC, "~none"),
    (TOPIC, "a b"),
    (TOPIC, ""),
    (BROKER, "9"),
    (BROKER, "one"),
    (BROKER, "-1"),
    (LOGGER, "1"),
    (LOGGER, ""),
    (LOGGER, "9"),
    (METRICS, ""),
    (METRICS, "~m"),
    (GROUP, ""),
    (GROUP, "~g"),
    (0, ""),
    (1, "x"),
    (3, "x"),
    (7, "x"),
    (127, "x"),
]

DESCRIBE = [
    scenario(
        "of a topic",
        "DescribeConfigs",
        create("~t", retention_ms="5000", cleanup_policy="compact", max_message_bytes="2000"),
        described(resource()),
        described(resource(), IncludeSynonyms=True),
        described(resource(), IncludeDocumentation=True),
    ),
    scenario(
        "of a broker",
        "DescribeConfigs",
        described(resource(BROKER, "1"), IncludeSynonyms=True, IncludeDocumentation=True),
        described(resource(BROKER, "")),
    ),
    scenario(
        "some keys",
        "DescribeConfigs",
        create("~t"),
        described(resource(keys=["retention.ms", "segment.bytes"])),
        described(resource(keys=["no.such.key", "retention.ms"])),
        described(resource(keys=[])),
        described(resource(keys=["retention.ms", "retention.ms"])),
        described(
            resource(BROKER, "1", ["log.retention.ms", "node.id", "no.such.key", "num.partitions"]),
            IncludeSynonyms=True,
        ),
        described(resource(), resource(keys=["retention.ms"])),
        described(resource(), resource(TOPIC, "~none"), resource(BROKER, "9")),
    ),
    *(
        scenario(f"of kind {kind}, {name!r}", "DescribeConfigs", described(resource(kind, name)))
        for kind, name in KINDS
        if kind != LOGGER
    ),
    scenario(
        "of loggers that are elsewhere",
        "DescribeConfigs",
        described(resource(LOGGER, "9")),
        described(resource(LOGGER, "")),
    ),
    scenario("of nothing", "DescribeConfigs", described()),
]


def setting(name: str = "retention.ms", value: str | None = "1000", operation: int = SET) -> dict[str, Any]:
    return {"Name": name, "Value": value, "ConfigOperation": operation}


def on(kind: int = TOPIC, name: str = "~t", *settings: dict[str, Any]) -> dict[str, Any]:
    return {"ResourceType": kind, "ResourceName": name, "Configs": list(settings)}


def altered(*resources: dict[str, Any], validate: bool = False) -> Step:
    return ask("IncrementalAlterConfigs", Resources=list(resources), ValidateOnly=validate)


def shown(*keys: str, kind: int = TOPIC, name: str = "~t", value: str | None = None) -> list[Step]:
    """Describes configs; waits until the first key has ``value``, if it is given."""
    until = None if value is None else ("Results.0.Configs.0.Value", value)
    return [pause(0.05), described_of(kind, name, list(keys) or None, until)]


def described_of(kind: int, name: str, keys: list[str] | None, until: tuple[str, Any] | None = None) -> Step:
    return ask("DescribeConfigs", v=4, Resources=[resource(kind, name, keys)], IncludeSynonyms=True, until=until)


WRONG = [
    ("an unknown config", setting("no.such.config", "1")),
    ("an empty name", setting("", "1")),
    ("a broker's config", setting("log.retention.ms", "1")),
    ("no number", setting(value="soon")),
    ("out of range", setting(value="-2")),
    ("null", setting(value=None)),
    ("an unknown operation", setting(operation=7)),
    ("a negative operation", setting(operation=-1)),
    ("append to what is no list", setting(operation=APPEND)),
    ("subtract from what is no list", setting(operation=SUBTRACT)),
    ("append what is no choice", setting("cleanup.policy", "burn", APPEND)),
    ("an append of null", setting("cleanup.policy", None, APPEND)),
    ("a delete of an unknown config", setting("no.such.config", "1", DELETE)),
    ("a number too large", setting("segment.bytes", "99999999999")),
    ("a float", setting("min.cleanable.dirty.ratio", "1.5")),
]

ALTER = [
    *(
        scenario(
            f"topic: {name}",
            "IncrementalAlterConfigs",
            create("~t"),
            altered(on(TOPIC, "~t", each)),
            shown("retention.ms", "cleanup.policy"),
        )
        for name, each in WRONG
    ),
    scenario(
        "a topic's configs, step by step",
        "IncrementalAlterConfigs",
        create("~t", cleanup_policy="compact"),
        altered(on(TOPIC, "~t", setting())),
        shown("retention.ms", "cleanup.policy"),
        altered(on(TOPIC, "~t", setting(value="2000"), setting("cleanup.policy", "delete", APPEND))),
        shown("retention.ms", "cleanup.policy"),
        altered(on(TOPIC, "~t", setting("cleanup.policy", "delete", APPEND))),
        shown("cleanup.policy"),
        altered(on(TOPIC, "~t", setting("cleanup.policy", "compact", SUBTRACT))),
        shown("cleanup.policy"),
        altered(on(TOPIC, "~t", setting("cleanup.policy", "compact", SUBTRACT))),
        shown("cleanup.policy"),
        altered(on(TOPIC, "~t", setting(operation=DELETE, value=None))),
        shown("retention.ms"),
        altered(on(TOPIC, "~t", setting(operation=DELETE, value="whatever"))),
        altered(on(TOPIC, "~t", setting(value=" 3000 "))),
        shown("retention.ms"),
        altered(on(TOPIC, "~t")),
        altered(),
        shown(),
    ),
    scenario(
        "only validated",
        "IncrementalAlterConfigs",
        create("~t"),
        altered(on(TOPIC, "~t", setting()), validate=True),
        altered(on(TOPIC, "~t", setting(value="x")), validate=True),
        shown("retention.ms"),
    ),
    scenario(
        "twice",
        "IncrementalAlterConfigs",
        create("~t"),
        altered(on(TOPIC, "~t", setting(), setting(value="5"))),
        altered(on(TOPIC, "~t", setting()), on(TOPIC, "~t", setting("segment.ms", "5000"))),
        shown("retention.ms", "segment.ms"),
    ),
    scenario(
        "good and bad together",
        "IncrementalAlterConfigs",
        create("~t"),
        altered(
            on(TOPIC, "~t", setting()),
            on(TOPIC, "~none", setting()),
            on(TOPIC, "a b", setting()),
            on(9, "x", setting()),
        ),
        shown("retention.ms"),
    ),
    *(
        scenario(f"of kind {kind}, {name!r}", "IncrementalAlterConfigs", altered(on(kind, name, setting())))
        for kind, name in KINDS
        if kind not in (METRICS, GROUP)
    ),
    scenario(
        "a broker's configs",
        "IncrementalAlterConfigs",
        altered(on(BROKER, "1", setting("log.cleaner.threads", "2"))),
        shown("log.cleaner.threads", kind=BROKER, name="1", value="2"),
        altered(on(BROKER, "1", setting("log.cleaner.threads", None, DELETE))),
        shown("log.cleaner.threads", kind=BROKER, name="1"),
        altered(on(BROKER, "", setting("message.max.bytes", "2000000"))),
        shown("message.max.bytes", kind=BROKER, name="1", value="2000000"),
        shown("message.max.bytes", kind=BROKER, name=""),
        altered(on(BROKER, "1", setting("message.max.bytes", "3000000"))),
        shown("message.max.bytes", kind=BROKER, name="1", value="3000000"),
        altered(
            on(BROKER, "1", setting("message.max.bytes", None, DELETE)),
            on(BROKER, "", setting("message.max.bytes", None, DELETE)),
        ),
        shown("message.max.bytes", kind=BROKER, name="1", value="1048588"),
        shown("message.max.bytes", kind=BROKER, name=""),
        alone=True,
    ),
    scenario(
        "a broker's configs that cannot be",
        "IncrementalAlterConfigs",
        altered(on(BROKER, "1", setting("node.id", "2"))),
        altered(on(BROKER, "1", setting("log.dirs", "/tmp/x"))),
        altered(on(BROKER, "1", setting("num.partitions", "7"))),
        altered(on(BROKER, "1", setting("message.max.bytes", "many"))),
        altered(on(BROKER, "1", setting("message.max.bytes", "-5"))),
        altered(on(BROKER, "1", setting("no.such.config", "x")), validate=True),
        altered(on(BROKER, "", setting("listeners", "PLAINTEXT://:1"))),
        altered(on(BROKER, "2", setting("message.max.bytes", "2000000"))),
        shown("message.max.bytes", "num.partitions", kind=BROKER, name="1"),
        alone=True,
    ),
    scenario(
        "a group's configs",
        "IncrementalAlterConfigs",
        altered(on(GROUP, "~g", setting("consumer.session.timeout.ms", "50000"))),
        shown("consumer.session.timeout.ms", "consumer.heartbeat.interval.ms", kind=GROUP, name="~g"),
        altered(on(GROUP, "~g", setting("consumer.session.timeout.ms", "1"))),
        altered(on(GROUP, "~g", setting("no.such.config", "1"))),
        altered(on(GROUP, "", setting("consumer.session.timeout.ms", "50000"))),
        altered(on(GROUP, "~g", setting("consumer.session.timeout.ms", None, DELETE))),
        shown(kind=GROUP, name="~g"),
    ),
    scenario(
        "a client metrics subscription",
        "IncrementalAlterConfigs",
        altered(on(METRICS, "~m", setting("interval.ms", "60000"), setting("metrics", "a,b"))),
        shown(kind=METRICS, name="~m"),
        altered(on(METRICS, "~m", setting("interval.ms", "1"))),
        altered(on(METRICS, "~m", setting("no.such", "1"))),
        altered(on(METRICS, "", setting("interval.ms", "60000"))),
        altered(on(METRICS, "~m", setting("interval.ms", None, DELETE), setting("metrics", None, DELETE))),
    ),
]


def replaced(*resources: dict[str, Any], validate: bool = False) -> Step:
    return ask("AlterConfigs", Resources=list(resources), ValidateOnly=validate)


def plain(name: str = "retention.ms", value: str | None = "1000") -> dict[str, Any]:
    return {"Name": name, "Value": value}


REPLACE = [
    scenario(
        "a topic's configs",
        "AlterConfigs",
        create("~t", cleanup_policy="compact"),
        replaced(on(TOPIC, "~t", plain())),
        shown("retention.ms", "cleanup.policy"),
        replaced(on(TOPIC, "~t", plain("segment.ms", "5000")), validate=True),
        shown("retention.ms", "segment.ms"),
        replaced(on(TOPIC, "~t", plain("segment.ms", "soon"))),
        replaced(on(TOPIC, "~t", plain("no.such.config", "soon"))),
        replaced(on(TOPIC, "~t", plain(value=None))),
        replaced(on(TOPIC, "~t", plain(value=""))),
        shown("retention.ms", "segment.ms"),
        replaced(on(TOPIC, "~t")),
        shown(),
        replaced(),
    ),
    scenario(
        "a config twice",
        "AlterConfigs",
        create("~t"),
        replaced(on(TOPIC, "~t", plain(), plain(value="5"))),
        shown("retention.ms"),
    ),
    scenario(
        "good and bad together",
        "AlterConfigs",
        create("~t"),
        replaced(on(TOPIC, "~t", plain()), on(TOPIC, "~none", plain()), on(TOPIC, "a b", plain()), on(9, "x", plain())),
        shown("retention.ms"),
    ),
    *(
        scenario(f"of kind {kind}, {name!r}", "AlterConfigs", replaced(on(kind, name, plain())))
        for kind, name in KINDS
        if kind not in (METRICS, GROUP)
    ),
    scenario(
        "a broker's configs",
        "AlterConfigs",
        replaced(on(BROKER, "1", plain("message.max.bytes", "2000000"))),
        shown("message.max.bytes", kind=BROKER, name="1", value="2000000"),
        replaced(on(BROKER, "1", plain("node.id", "2"))),
        replaced(on(BROKER, "1")),
        shown("message.max.bytes", kind=BROKER, name="1", value="1048588"),
        replaced(on(BROKER, "")),
        alone=True,
    ),
]

LIST = [
    scenario(
        "by kind",
        "ListConfigResources",
        create("~t", retention_ms="1000"),
        create("~plain"),
        stable(),
        [ask("ListConfigResources", mine=True, ResourceTypes=[kind]) for kind in (TOPIC, GROUP)],
        ask("ListConfigResources", ResourceTypes=[BROKER]),
        ask("ListConfigResources", ResourceTypes=[LOGGER]),
        ask("ListConfigResources", ResourceTypes=[METRICS]),
        ask("ListConfigResources", ResourceTypes=[BROKER, LOGGER]),
        versions="1",
    ),
    scenario("the oldest way", "ListConfigResources", ask("ListConfigResources"), versions="0"),
    scenario(
        "all",
        "ListConfigResources",
        create("~t"),
        ask("ListConfigResources", mine=True, ResourceTypes=[]),
        versions="1",
    ),
    scenario(
        "kinds that there are not",
        "ListConfigResources",
        [ask("ListConfigResources", ResourceTypes=[kind]) for kind in (0, 1, 3, 7, 64, 127, -1)],
        ask("ListConfigResources", ResourceTypes=[BROKER, BROKER]),
        versions="1",
    ),
]

SCENARIOS = [*DESCRIBE, *ALTER, *REPLACE, *LIST]

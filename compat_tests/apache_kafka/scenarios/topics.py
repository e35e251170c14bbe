"""CreateTopics, DeleteTopics and CreatePartitions."""

from typing import Any

from ..codec import ZERO_UUID
from ..play import Step
from ..steps import ask, create, gone, ready, scenario


def topic(name: str = "~t", partitions: int = 1, replicas: int = 1, **more: Any) -> dict[str, Any]:
    return {"Name": name, "NumPartitions": partitions, "ReplicationFactor": replicas, **more}


def config(*pairs: tuple[str, str | None]) -> list[dict[str, Any]]:
    return [{"Name": name, "Value": value} for name, value in pairs]


def assign(*replicas: tuple[int, list[int]]) -> list[dict[str, Any]]:
    return [{"PartitionIndex": index, "BrokerIds": brokers} for index, brokers in replicas]


def made(*topics: dict[str, Any], **more: Any) -> Step:
    return ask("CreateTopics", Topics=list(topics), timeoutMs=10000, **more)


NAMES = ["", ".", "..", "a b", "a/b", "ä", "a" * 250, "a,b", "~" + "x" * 249]

WRONG = [
    ("no replicas", topic(replicas=0)),
    ("replication -2", topic(replicas=-2)),
    ("replication 2 of 1 broker", topic(replicas=2)),
    ("no partitions", topic(partitions=0)),
    ("partitions -2", topic(partitions=-2)),
    ("10001 partitions", topic(partitions=10001)),
    ("a count beside assignments", topic(partitions=1, replicas=1, Assignments=assign((0, [1])))),
    ("a replication factor beside assignments", topic(partitions=-1, replicas=1, Assignments=assign((0, [1])))),
    ("an unknown broker", topic(partitions=-1, replicas=-1, Assignments=assign((0, [9])))),
    ("a broker twice", topic(partitions=-1, replicas=-1, Assignments=assign((0, [1, 1])))),
    ("no brokers", topic(partitions=-1, replicas=-1, Assignments=assign((0, [])))),
    ("a gap in the partitions", topic(partitions=-1, replicas=-1, Assignments=assign((0, [1]), (2, [1])))),
    ("not from 0", topic(partitions=-1, replicas=-1, Assignments=assign((1, [1])))),
    ("a partition twice", topic(partitions=-1, replicas=-1, Assignments=assign((0, [1]), (0, [1])))),
    ("different replication", topic(partitions=-1, replicas=-1, Assignments=assign((0, [1]), (1, [1, 2])))),
    ("a negative partition", topic(partitions=-1, replicas=-1, Assignments=assign((-1, [1])))),
    ("a null config value", topic(Configs=config(("retention.ms", None)))),
    ("an unknown config", topic(Configs=config(("no.such.config", "1")))),
    ("a broker's config", topic(Configs=config(("log.retention.ms", "1")))),
    ("a config that is no number", topic(Configs=config(("retention.ms", "soon")))),
    ("a config out of range", topic(Configs=config(("retention.ms", "-2")))),
    ("a config that is no choice", topic(Configs=config(("cleanup.policy", "burn")))),
    ("a bool that is none", topic(Configs=config(("preallocate", "maybe")))),
    ("an empty config name", topic(Configs=config(("", "1")))),
    ("an empty value", topic(Configs=config(("retention.ms", "")))),
    ("lags the wrong way round", topic(Configs=config(("min.compaction.lag.ms", "9"), ("max.compaction.lag.ms", "5")))),
    ("a codec nobody knows", topic(Configs=config(("compression.type", "brotli")))),
    ("a gzip level of 10", topic(Configs=config(("compression.gzip.level", "10")))),
    ("a lz4 level of 18", topic(Configs=config(("compression.lz4.level", "18")))),
    ("a zstd level of 23", topic(Configs=config(("compression.zstd.level", "23")))),
    ("an old message format", topic(Configs=config(("message.format.version", "2.0")))),
    ("remote storage", topic(Configs=config(("remote.storage.enable", "true")))),
    ("local retention above retention", topic(Configs=config(("local.retention.ms", "100"), ("retention.ms", "50")))),
    ("segments of 13 bytes", topic(Configs=config(("segment.bytes", "13")))),
]

RIGHT = [
    ("plain", topic(partitions=3)),
    ("defaults", topic(partitions=-1, replicas=-1)),
    ("assigned", topic(partitions=-1, replicas=-1, Assignments=assign((0, [1]), (1, [1])))),
    ("assigned, unsorted", topic(partitions=-1, replicas=-1, Assignments=assign((1, [1]), (0, [1])))),
    ("with configs", topic(Configs=config(("retention.ms", "123456"), ("cleanup.policy", "compact,delete")))),
    ("with spaces around a value", topic(Configs=config(("retention.ms", " 77 "), ("preallocate", " TRUE ")))),
    ("the same config twice", topic(Configs=config(("retention.ms", "5"), ("retention.ms", "6")))),
    ("no cleanup", topic(Configs=config(("cleanup.policy", "")))),
]

CREATE = [
    *(
        scenario(
            name,
            "CreateTopics",
            made(each),
            ask("Metadata", v=8, Topics=[{"Name": "~t"}], AllowAutoTopicCreation=False),
            versions="2-7" if name in ("no replicas", "an unknown config") else "4-7",
        )
        for name, each in WRONG
    ),
    *(
        scenario(
            name,
            "CreateTopics",
            made(each),
            ready("~t"),
            ask("Metadata", v=12, Topics=[{"Name": "~t"}], AllowAutoTopicCreation=False),
            ask(
                "DescribeConfigs", v=4, Resources=[{"ResourceType": 2, "ResourceName": "~t", "ConfigurationKeys": None}]
            ),
        )
        for name, each in RIGHT
    ),
    *(
        scenario(f"only validated: {name}", "CreateTopics", made(each, validateOnly=True), gone("~t"), versions="4+")
        for name, each in RIGHT
    ),
    *(
        scenario(f"only validated: {name}", "CreateTopics", made(each, validateOnly=True), gone("~t"), versions="7")
        for name, each in WRONG
    ),
    scenario("one that is there", "CreateTopics", create("~t"), made(topic()), made(topic(), validateOnly=True)),
    scenario("a name twice", "CreateTopics", made(topic(), topic("~u"), topic()), gone("~t")),
    scenario("good and bad together", "CreateTopics", made(topic("~a"), topic("a b"), topic("~c", 0)), ready("~a")),
    scenario("none", "CreateTopics", made()),
    scenario("illegal names", "CreateTopics", [made(topic(name)) for name in NAMES]),
    scenario(
        "names that collide", "CreateTopics", create("~a.b"), made(topic("~a_b")), made(topic("~c.d"), topic("~c_d"))
    ),
    scenario("the metadata topic", "CreateTopics", made(topic("__cluster_metadata")), versions="4+"),
    scenario(
        "no time",
        "CreateTopics",
        [
            ask("CreateTopics", Topics=[topic("a b"), topic("~t"), topic("~t", 0)], timeoutMs=ms)
            for ms in (0, -1, -2147483648)
        ],
        ask("CreateTopics", Topics=[topic("~t"), topic("~t"), topic("~u")], timeoutMs=0),
        ask("CreateTopics", Topics=[], timeoutMs=0),
        gone("~t"),
        versions="4+",
    ),
]


def deleted(*names: str | dict[str, Any], **more: Any) -> Step:
    states = [name if isinstance(name, dict) else {"Name": name} for name in names]
    plain = [name for name in names if isinstance(name, str)]
    return ask("DeleteTopics", **{"Topics": states, "TopicNames": plain, "TimeoutMs": 10000, **more})


DELETE = [
    scenario("one", "DeleteTopics", create("~t", 2), deleted("~t"), gone("~t"), deleted("~t")),
    scenario(
        "two and an unknown one", "DeleteTopics", create("~a"), create("~b"), deleted("~a", "~none", "~b"), gone("~a")
    ),
    scenario("a name twice", "DeleteTopics", create("~t"), deleted("~t", "~t"), ready("~t"), deleted("~none", "~none")),
    scenario("illegal names", "DeleteTopics", deleted("a b", "", "ä", "a" * 300)),
    scenario("none", "DeleteTopics", deleted()),
    scenario(
        "no time",
        "DeleteTopics",
        create("~t"),
        [deleted("~t", "~none", TimeoutMs=ms) for ms in (0, -1)],
        ready("~t"),
    ),
    scenario("the internal topic and the metadata", "DeleteTopics", deleted("__cluster_metadata")),
    scenario(
        "by id",
        "DeleteTopics",
        create("~t"),
        create("~u"),
        deleted({"Name": None, "TopicId": "$id ~t"}, {"Name": None, "TopicId": b"\3" * 16}),
        gone("~t"),
        deleted({"Name": "~u", "TopicId": "$id ~u"}),
        deleted({"Name": None, "TopicId": ZERO_UUID}),
        deleted({"Name": None, "TopicId": "$id ~u"}, {"Name": "~u", "TopicId": ZERO_UUID}),
        deleted({"Name": None, "TopicId": "$id ~u"}, {"Name": None, "TopicId": "$id ~u"}),
        deleted({"Name": None, "TopicId": b"\4" * 16}, {"Name": None, "TopicId": b"\4" * 16}),
        ready("~u"),
        versions="6",
    ),
]


def grown(*topics: dict[str, Any], validate: bool = False) -> Step:
    return ask("CreatePartitions", Topics=list(topics), TimeoutMs=10000, ValidateOnly=validate)


def more(count: int, *assignments: list[int], name: str = "~t", given: bool = False) -> dict[str, Any]:
    assigned = [{"BrokerIds": brokers} for brokers in assignments] if assignments or given else None
    return {"Name": name, "Count": count, "Assignments": assigned}


GROW = [
    scenario(
        "more",
        "CreatePartitions",
        create("~t", 2),
        grown(more(4)),
        ready("~t", 4),
        ask("Metadata", v=8, Topics=[{"Name": "~t"}]),
    ),
    scenario("assigned", "CreatePartitions", create("~t", 1), grown(more(3, [1], [1])), ready("~t", 3)),
    scenario(
        "only validated",
        "CreatePartitions",
        create("~t", 2),
        grown(more(4), validate=True),
        ask("Metadata", v=8, Topics=[{"Name": "~t"}]),
    ),
    scenario(
        "what cannot be",
        "CreatePartitions",
        create("~t", 2),
        grown(more(2)),
        grown(more(1)),
        grown(more(0)),
        grown(more(-1)),
        grown(more(3, name="~none")),
        grown(more(3, name="a b")),
        grown(more(3, name="")),
        grown(more(3, [9])),
        grown(more(3, [1, 1])),
        grown(more(3, [1, 2])),
        grown(more(3, [])),
        grown(more(3, [1], [1])),
        grown(more(4, [1])),
        grown(more(3, given=True)),
        grown(more(3), more(4)),
        grown(more(2), more(3, name="~none")),
        grown(),
    ),
    scenario(
        "no time",
        "CreatePartitions",
        create("~t"),
        [
            ask("CreatePartitions", Topics=[more(3), more(2, name="~none")], TimeoutMs=ms, ValidateOnly=False)
            for ms in (0, -1)
        ],
        ask("Metadata", v=8, Topics=[{"Name": "~t"}]),
    ),
    scenario("of the internal topic", "CreatePartitions", grown(more(3, name="__consumer_offsets"))),
]

SCENARIOS = [*CREATE, *DELETE, *GROW]

"""Effects of one request on the next: changed configs, created and deleted topics, concurrent requests."""

from typing import Any

from ..batches import R, batch, records
from ..play import Step
from ..steps import (
    ask,
    commit,
    committed,
    create,
    fetch,
    fetch_body,
    gone,
    join,
    pause,
    produce,
    produce_body,
    published,
    ready,
    rebalancing,
    receive,
    scenario,
    seed,
    send,
    stable,
)
from .configs import BROKER, DELETE, GROUP, SET, TOPIC, on, resource, setting, shown

AHEAD = 4_000_000_000_000
SOURCE, DEFAULT = "Results.0.Configs.0.ConfigSource", 5


def changed(*resources: dict[str, Any]) -> list[Step]:
    """Alters configs, and waits until they are in force.

    Set configs are described; deleted broker configs have their default at broker 1, and are in force soon after."""
    shows = [
        ask(
            "DescribeConfigs",
            v=4,
            quiet=True,
            until=("Results.0.Configs.0.Value", each["Value"]) if is_set else (SOURCE, DEFAULT),
            Resources=[resource(kind, those["ResourceName"] if is_set else "1", [each["Name"]])],
        )
        for those in resources
        for each in those["Configs"]
        for kind, is_set in [(those["ResourceType"], each["ConfigOperation"] == SET)]
        if is_set or kind == BROKER
    ]
    alter = ask("IncrementalAlterConfigs", v=1, quiet=True, Resources=list(resources), ValidateOnly=False)
    return [alter, *shows, published()]


CONFIGS = [
    scenario(
        "max.message.bytes that shrinks",
        "Produce",
        create("~t"),
        produce("~t", "x" * 200),
        changed(on(TOPIC, "~t", setting("max.message.bytes", "150"))),
        produce("~t", "x" * 200),
        produce("~t", "x"),
        changed(on(TOPIC, "~t", setting("max.message.bytes", None, DELETE))),
        produce("~t", "x" * 200),
        versions="9-9",
    ),
    scenario(
        "message.timestamp.type that changes",
        "Produce",
        create("~t"),
        produce("~t", "a"),
        changed(on(TOPIC, "~t", setting("message.timestamp.type", "LogAppendTime"))),
        produce("~t", "b"),
        fetch("~t", v=11),
        versions="9-9",
    ),
    scenario(
        "compression.type that changes",
        "Produce",
        create("~t"),
        produce("~t", "a"),
        changed(on(TOPIC, "~t", setting("compression.type", "gzip"))),
        produce("~t", "b"),
        fetch("~t", v=11),
        versions="9-9",
    ),
    scenario(
        "cleanup.policy that changes",
        "Produce",
        create("~t"),
        produce("~t", "a"),
        changed(on(TOPIC, "~t", setting("cleanup.policy", "compact"))),
        produce("~t", "b"),
        produce("~t", R(b"v", b"k")),
        versions="9-9",
    ),
    scenario(
        "message.timestamp.after.max.ms that changes",
        "Produce",
        create("~t"),
        produce("~t", "a", base_timestamp=AHEAD),
        changed(on(TOPIC, "~t", setting("message.timestamp.after.max.ms", "9000000000000"))),
        produce("~t", "a", base_timestamp=AHEAD),
        versions="9-9",
    ),
    scenario(
        "min.insync.replicas above what there is",
        "Produce",
        create("~t", min_insync_replicas="2"),
        produce("~t", "a"),
        produce("~t", "a", acks=1),
        ask("Metadata", v=8, Topics=[{"Name": "~t"}]),
        versions="3+",
    ),
    scenario(
        "message.max.bytes of the broker",
        "Produce",
        create("~t"),
        changed(on(BROKER, "1", setting("message.max.bytes", "300"))),
        produce("~t", "x" * 400),
        produce("~t", "x"),
        changed(on(TOPIC, "~t", setting("max.message.bytes", "1000"))),
        produce("~t", "x" * 400),
        changed(on(BROKER, "1", setting("message.max.bytes", None, DELETE))),
        versions="9-9",
        alone=True,
    ),
    scenario(
        "a default of the brokers shows in topics",
        "DescribeConfigs",
        create("~t"),
        changed(on(BROKER, "", setting("log.retention.bytes", "777"))),
        shown("retention.bytes"),
        changed(on(BROKER, "1", setting("log.retention.bytes", "888"))),
        shown("retention.bytes"),
        create("~u"),
        shown("retention.bytes", name="~u"),
        ask("CreateTopics", v=7, Topics=[{"Name": "~w", "NumPartitions": 1, "ReplicationFactor": 1}], timeoutMs=5000),
        changed(on(TOPIC, "~t", setting("retention.bytes", "999"))),
        shown("retention.bytes"),
        changed(
            on(BROKER, "", setting("log.retention.bytes", None, DELETE)),
            on(BROKER, "1", setting("log.retention.bytes", None, DELETE)),
        ),
        shown("retention.bytes"),
        alone=True,
    ),
    scenario(
        "num.partitions cannot change",
        "IncrementalAlterConfigs",
        ask("IncrementalAlterConfigs", Resources=[on(BROKER, "", setting("num.partitions", "5"))]),
        ask("IncrementalAlterConfigs", Resources=[on(BROKER, "", setting("no.such.thing", "5"))], ValidateOnly=True),
        ask("IncrementalAlterConfigs", Resources=[on(BROKER, "1", setting("log.cleanup.policy", "burn"))]),
        alone=True,
    ),
    scenario(
        "lists of a broker",
        "IncrementalAlterConfigs",
        ask("IncrementalAlterConfigs", Resources=[on(BROKER, "1", setting("log.cleanup.policy", "compact", 2))]),
        shown("log.cleanup.policy", kind=BROKER, name="1"),
        ask("IncrementalAlterConfigs", Resources=[on(BROKER, "1", setting("log.cleanup.policy", "delete", 3))]),
        shown("log.cleanup.policy", kind=BROKER, name="1"),
        ask("IncrementalAlterConfigs", Resources=[on(BROKER, "1", setting("log.cleanup.policy", None, DELETE))]),
        shown("log.cleanup.policy", kind=BROKER, name="1"),
        alone=True,
    ),
    scenario(
        "validated with others",
        "IncrementalAlterConfigs",
        create("~t"),
        ask(
            "IncrementalAlterConfigs",
            Resources=[
                on(TOPIC, "~t", setting("min.compaction.lag.ms", "10")),
                on(TOPIC, "~none", setting()),
                on(GROUP, "~g", setting("consumer.heartbeat.interval.ms", "6000")),
            ],
            ValidateOnly=True,
        ),
        ask(
            "IncrementalAlterConfigs",
            Resources=[on(TOPIC, "~t", setting("min.compaction.lag.ms", "10"), setting("max.compaction.lag.ms", "5"))],
        ),
        ask(
            "IncrementalAlterConfigs",
            Resources=[on(TOPIC, "~t", setting("local.retention.ms", "100"), setting("retention.ms", "50"))],
        ),
        shown("min.compaction.lag.ms", "retention.ms"),
    ),
]

INTERNAL = [
    scenario(
        "of the internal topic",
        "DescribeConfigs",
        ask(
            "DescribeConfigs",
            Resources=[{"ResourceType": TOPIC, "ResourceName": "__consumer_offsets", "ConfigurationKeys": None}],
            IncludeSynonyms=True,
        ),
    ),
    scenario(
        "of the internal topic",
        "DescribeTopicPartitions",
        ask("DescribeTopicPartitions", Topics=[{"Name": "__consumer_offsets"}]),
    ),
    scenario(
        "the internal topic",
        "CreateTopics",
        ask(
            "CreateTopics",
            Topics=[{"Name": "__consumer_offsets", "NumPartitions": 50, "ReplicationFactor": 1}],
            timeoutMs=5000,
        ),
    ),
    scenario(
        "the transactions' topic",
        "CreateTopics",
        ask(
            "CreateTopics",
            Topics=[{"Name": "__transaction_state", "NumPartitions": 2, "ReplicationFactor": 1}],
            timeoutMs=5000,
        ),
        ready("__transaction_state", 2),
        ask("Metadata", v=8, Topics=[{"Name": "__transaction_state"}]),
        produce("__transaction_state", "x"),
        ask(
            "DescribeConfigs",
            v=4,
            Resources=[{"ResourceType": TOPIC, "ResourceName": "__transaction_state", "ConfigurationKeys": None}],
        ),
        versions="7",
        alone=True,
    ),
    scenario(
        "the internal topic's id",
        "Produce",
        ask(
            "Metadata",
            v=12,
            quiet=True,
            save={"$id __consumer_offsets": "Topics.0.TopicId"},
            Topics=[{"Name": "__consumer_offsets"}],
        ),
        produce("__consumer_offsets", "x"),
        produce("__consumer_offsets", "x", partition=99),
    ),
    scenario(
        "the internal topic",
        "Fetch",
        ask(
            "Metadata",
            v=12,
            quiet=True,
            save={"$id __consumer_offsets": "Topics.0.TopicId"},
            Topics=[{"Name": "__consumer_offsets"}],
        ),
        fetch("__consumer_offsets", 10**9),
        fetch("__consumer_offsets", 0, partition=50),
    ),
    scenario("the metadata's topic", "Fetch", fetch("__cluster_metadata", 0), versions="4-12"),
    scenario(
        "the metadata's topic",
        "ListOffsets",
        ask(
            "ListOffsets",
            ReplicaId=-1,
            Topics=[{"Name": "__cluster_metadata", "Partitions": [{"PartitionIndex": 0, "Timestamp": -1}]}],
        ),
    ),
    scenario(
        "the metadata's topic",
        "Metadata",
        ask("Metadata", Topics=[{"Name": "__cluster_metadata"}], AllowAutoTopicCreation=True),
        versions="4+",
    ),
    scenario("the metadata's topic", "Produce", produce("__cluster_metadata", "x"), versions="3-12"),
]

TOPICS = [
    scenario(
        "a topic that is gone",
        "OffsetFetch",
        create("~t"),
        create("~u"),
        commit(v=7, quiet=True),
        commit("~u", v=7, quiet=True),
        ask("DeleteTopics", v=5, quiet=True, TopicNames=["~t"], TimeoutMs=5000),
        gone("~t"),
        published(),
        committed("~g", "~t"),
        committed("~g", None),
        versions="2-9",
    ),
    scenario(
        "a topic that is made again",
        "OffsetFetch",
        create("~t"),
        commit(v=7, quiet=True),
        ask("DeleteTopics", v=5, quiet=True, TopicNames=["~t"], TimeoutMs=5000),
        gone("~t"),
        published(),
        create("~t"),
        committed("~g", "~t"),
    ),
    scenario(
        "a topic that is made again",
        "Produce",
        create("~t"),
        produce("~t", "a", "b"),
        ask("DeleteTopics", v=5, quiet=True, TopicNames=["~t"], TimeoutMs=5000),
        gone("~t"),
        produce("~t", "c"),
        create("~t"),
        produce("~t", "d"),
    ),
    scenario(
        "a topic that is made again",
        "ListOffsets",
        create("~t"),
        seed("~t", "a", "b"),
        ask("DeleteTopics", v=5, quiet=True, TopicNames=["~t"], TimeoutMs=5000),
        gone("~t"),
        ask(
            "ListOffsets", ReplicaId=-1, Topics=[{"Name": "~t", "Partitions": [{"PartitionIndex": 0, "Timestamp": -1}]}]
        ),
        create("~t"),
        ask(
            "ListOffsets", ReplicaId=-1, Topics=[{"Name": "~t", "Partitions": [{"PartitionIndex": 0, "Timestamp": -1}]}]
        ),
    ),
    scenario(
        "new partitions are used",
        "CreatePartitions",
        create("~t"),
        ask("CreatePartitions", Topics=[{"Name": "~t", "Count": 3, "Assignments": None}], TimeoutMs=5000),
        ready("~t", 3),
        produce("~t", "x", partition=2, v=11),
        fetch("~t", partition=2, v=11),
    ),
    scenario(
        "a reader's topic is deleted",
        "Fetch",
        create("~t"),
        send("Fetch", on="reader", **fetch_body("~t", MinBytes=1, MaxWaitMs=2000)),
        pause(0.1),
        ask("DeleteTopics", v=5, quiet=True, TopicNames=["~t"], TimeoutMs=5000),
        receive(on="reader"),
    ),
]

OVERLAP = [
    scenario(
        "answers come in order",
        "Fetch",
        create("~t"),
        send("Fetch", **fetch_body("~t", MinBytes=1, MaxWaitMs=300)),
        send("FindCoordinator", v=0, Key="~g"),
        send("Heartbeat", v=0, GroupId="~g", MemberId="nobody"),
        receive(),
        receive(),
        receive(),
        versions="11-13",
    ),
    scenario(
        "a produce behind a waiting fetch",
        "Fetch",
        create("~t"),
        send("Fetch", **fetch_body("~t", MinBytes=1, MaxWaitMs=300)),
        send("Produce", v=9, **produce_body("~t", records("x"))),
        receive(),
        receive(),
        versions="11-13",
    ),
    scenario(
        "many in one go",
        "Produce",
        create("~t"),
        [send("Produce", **produce_body("~t", records(f"value {n}"))) for n in range(20)],
        [receive() for _ in range(20)],
        fetch("~t", v=11),
        versions="9+",
    ),
    scenario(
        "a join behind a join",
        "JoinGroup",
        stable(),
        send(
            "JoinGroup",
            on="n",
            v=3,
            GroupId="~g",
            SessionTimeoutMs=9000,
            RebalanceTimeoutMs=500,
            MemberId="",
            ProtocolType="consumer",
            Protocols=[{"Name": "range", "Metadata": b""}],
        ),
        send("FindCoordinator", on="n", v=0, Key="~g"),
        rebalancing(),
        join("$m", RebalanceTimeoutMs=500),
        receive(on="n"),
        receive(on="n"),
    ),
]


def many(how_many: int, /, **options: Any) -> bytes:
    return batch(*(R(b"value %d" % n, b"key %d" % n, timestamp_delta=n) for n in range(how_many)), **options)


LARGE = [
    *(
        scenario(
            f"a batch of {count}, codec {codec}",
            "Produce",
            create("~t"),
            produce("~t", many(count, codec=codec)),
            fetch("~t", v=11),
            versions="7",
        )
        for count in (33, 1000)
        for codec in (0, 1, 3)
    ),
    scenario(
        "a large batch, count too small",
        "Produce",
        create("~t"),
        produce("~t", many(100, count=99, last_delta=98)),
        fetch("~t", v=11),
        versions="8-8",
    ),
    scenario(
        "a large batch, count too large",
        "Produce",
        create("~t"),
        produce("~t", many(100, count=101, last_delta=100)),
        fetch("~t", v=11),
        versions="8-8",
    ),
    scenario(
        "a large batch, holes",
        "Produce",
        create("~t"),
        produce("~t", batch(*(R(b"x", offset_delta=n if n < 50 else n + 1) for n in range(100)), last_delta=99)),
        fetch("~t", v=11),
        versions="8-8",
    ),
    scenario(
        "a large batch, one record too far ahead",
        "Produce",
        create("~t"),
        produce(
            "~t", batch(*(R(b"x", timestamp_delta=AHEAD - 1_700_000_000_000 if n == 70 else n) for n in range(100)))
        ),
        fetch("~t", v=11),
        versions="8+",
    ),
    scenario(
        "a large batch, compacted, keyless",
        "Produce",
        create("~t", cleanup_policy="compact"),
        produce("~t", batch(*(R(b"x", None if n > 90 else b"k") for n in range(100)))),
        fetch("~t", v=11),
        versions="8+",
    ),
    scenario(
        "a large batch, broken within",
        "Produce",
        create("~t"),
        produce("~t", batch(*(R(b"x") for _ in range(100)), extra=b"\7\7")),
        fetch("~t", v=11),
        versions="8-8",
    ),
    scenario(
        "a large batch, max timestamp too small",
        "Produce",
        create("~t"),
        produce("~t", many(100, max_timestamp=1_700_000_000_005)),
        fetch("~t", v=11),
        versions="8-8",
    ),
    scenario(
        "a large batch recompressed",
        "Produce",
        create("~t", compression_type="zstd"),
        produce("~t", many(1000)),
        fetch("~t", v=11),
        versions="8-8",
    ),
    scenario(
        "compressed and too large unpacked",
        "Produce",
        create("~t", max_message_bytes="3000"),
        produce("~t", batch(*(R(b"x" * 1000) for _ in range(20)), codec=1)),
        fetch("~t", v=11),
        versions="8-8",
    ),
    scenario(
        "recompressed and too large then",
        "Produce",
        create("~t", max_message_bytes="3000", compression_type="uncompressed"),
        produce("~t", batch(*(R(b"x" * 1000) for _ in range(20)), codec=1)),
        fetch("~t", v=11),
        versions="8-8",
    ),
]

SCENARIOS = [*CONFIGS, *INTERNAL, *TOPICS, *OVERLAP, *LARGE]

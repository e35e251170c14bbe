"""Fetch: limits, offsets, epochs and sessions."""

from typing import Any

from ..batches import R, batch
from ..play import Step
from ..steps import ask, create, fetch, fetch_body, gone, produce, receive, scenario, seed, send

FIVE = [seed("~t", f"value {n}", f"more {n}") for n in range(5)]
"""Five batches of two records: offsets 0 to 9."""


def of(topic: str, *partitions: tuple[int, int] | tuple[int, int, int], **more: Any) -> dict[str, Any]:
    """Returns a fetch of (partition, offset, max bytes) of one topic."""
    entries = [
        {"Partition": each[0], "FetchOffset": each[1], "PartitionMaxBytes": each[2] if len(each) > 2 else 1 << 20}
        for each in partitions
    ]
    topics = [{"Topic": topic, "TopicId": f"$id {topic}", "Partitions": entries}] if entries else []
    return {"MaxWaitMs": 50, "MinBytes": 0, "ReplicaId": -1, "Topics": topics, **more}


def within(
    session: Any, epoch: int, topic: str = "~t", *partitions: tuple[int, int], forget: tuple[int, ...] = ()
) -> Step:
    """Returns a fetch of an incremental session."""
    forgotten = [{"Topic": topic, "TopicId": f"$id {topic}", "Partitions": list(forget)}] if forget else []
    body = of(topic, *partitions, SessionId=session, SessionEpoch=epoch, ForgottenTopicsData=forgotten, MaxWaitMs=20)
    return ask("Fetch", save={"$s": "SessionId"} if session == 0 else {}, **body)


PLACES = [
    scenario("from each place", "Fetch", create("~t"), FIVE, [fetch("~t", n) for n in (0, 1, 4, 5, 9, 10)]),
    scenario("out of range", "Fetch", create("~t"), FIVE, [fetch("~t", n) for n in (11, 99, -1, -2, -9)]),
    scenario(
        "below the log start",
        "Fetch",
        create("~t"),
        FIVE,
        ask(
            "DeleteRecords",
            quiet=True,
            Topics=[{"Name": "~t", "Partitions": [{"PartitionIndex": 0, "Offset": 5}]}],
            TimeoutMs=5000,
        ),
        [fetch("~t", n) for n in (0, 4, 5, 6)],
    ),
    scenario("an empty partition", "Fetch", create("~t"), fetch("~t", 0), fetch("~t", 1)),
    scenario(
        "several partitions",
        "Fetch",
        create("~t", 3),
        FIVE,
        seed("~t", "x", partition=2),
        ask("Fetch", **of("~t", (2, 0), (0, 8), (1, 0))),
        ask("Fetch", **of("~t", (0, 0), (7, 0), (2, 9))),
    ),
    scenario("an unknown topic", "Fetch", fetch("~none", 0), fetch("a b", 0), versions="4-12"),
    scenario(
        "an unknown topic id",
        "Fetch",
        ask("Fetch", **{**fetch_body("~t"), "Topics": [{"TopicId": b"\5" * 16, "Partitions": [{"Partition": 0}]}]}),
        ask("Fetch", **{**fetch_body("~t"), "Topics": [{"TopicId": bytes(16), "Partitions": [{"Partition": 0}]}]}),
        versions="13+",
    ),
    scenario("an unknown partition", "Fetch", create("~t"), fetch("~t", 0, partition=9), fetch("~t", 0, partition=-1)),
    scenario("a partition twice", "Fetch", create("~t"), FIVE, ask("Fetch", **of("~t", (0, 2), (0, 6)))),
    scenario("nothing", "Fetch", ask("Fetch", **of("~t"))),
    scenario(
        "a topic that is made again",
        "Fetch",
        create("~t"),
        FIVE,
        ask("DeleteTopics", v=5, TopicNames=["~t"], TimeoutMs=5000),
        gone("~t"),
        fetch("~t", 0),
        create("~t"),
        fetch("~t", 0),
        fetch("~t", 5),
    ),
    scenario(
        "batches of all codecs",
        "Fetch",
        create("~t"),
        [seed("~t", "one", "two", codec=codec) for codec in range(4)],
        fetch("~t", 0),
        fetch("~t", 3),
    ),
    scenario(
        "zstd for those who do not know it",
        "Fetch",
        create("~t"),
        seed("~t", "one", codec=4),
        seed("~t", "two"),
        fetch("~t", 0),
        fetch("~t", 1),
        versions="4-11",
    ),
    scenario(
        "zstd by config",
        "Fetch",
        create("~t", compression_type="zstd"),
        seed("~t", "one"),
        fetch("~t", 0),
        versions="4-11",
    ),
    scenario(
        "control records and producers",
        "Fetch",
        create("~t"),
        seed("~t", "x", producer_id=99, producer_epoch=1, sequence=4),
        fetch("~t", 0),
    ),
]

LIMITS = [
    scenario(
        "bytes of a partition",
        "Fetch",
        create("~t"),
        FIVE,
        [ask("Fetch", **of("~t", (0, 0, size))) for size in (0, 1, 80, 170, 1000, -1)],
    ),
    scenario(
        "bytes of all",
        "Fetch",
        create("~t", 2),
        FIVE,
        [seed("~t", f"other {n}", partition=1) for n in range(3)],
        [ask("Fetch", **of("~t", (0, 0), (1, 0), MaxBytes=size)) for size in (0, 1, 100, 200, 500, -1)],
    ),
    scenario(
        "a later offset with a small limit",
        "Fetch",
        create("~t"),
        FIVE,
        ask("Fetch", **of("~t", (0, 7, 1))),
        ask("Fetch", **of("~t", (0, 7, 100))),
    ),
    scenario(
        "min bytes that are there",
        "Fetch",
        create("~t"),
        FIVE,
        ask("Fetch", **of("~t", (0, 0), MinBytes=1, MaxWaitMs=5000)),
    ),
    scenario(
        "min bytes that never come",
        "Fetch",
        create("~t"),
        FIVE,
        ask("Fetch", **of("~t", (0, 10), MinBytes=1, MaxWaitMs=60)),
        ask("Fetch", **of("~t", (0, 0), MinBytes=1 << 20, MaxWaitMs=60)),
    ),
    scenario(
        "waits that are odd",
        "Fetch",
        create("~t"),
        ask("Fetch", **of("~t", (0, 0), MinBytes=1, MaxWaitMs=0)),
        ask("Fetch", **of("~t", (0, 0), MinBytes=1, MaxWaitMs=-1)),
        ask("Fetch", **of("~t", (0, 0), MinBytes=-1, MaxWaitMs=5000)),
    ),
    scenario(
        "an error ends the wait",
        "Fetch",
        create("~t", 2),
        ask("Fetch", **of("~t", (0, 0), (1, 9), MinBytes=1, MaxWaitMs=8000)),
    ),
    scenario(
        "woken by an append",
        "Fetch",
        create("~t"),
        send("Fetch", on="reader", **of("~t", (0, 0), MinBytes=1, MaxWaitMs=9000)),
        seed("~t", "news"),
        receive(on="reader"),
    ),
    scenario(
        "not woken before min bytes are there",
        "Fetch",
        create("~t"),
        send("Fetch", on="reader", **of("~t", (0, 0), MinBytes=100, MaxWaitMs=9000)),
        seed("~t", "news"),
        seed("~t", "more news"),
        receive(on="reader"),
        versions="11-12",
    ),
]

ISOLATION = [
    scenario(
        "levels",
        "Fetch",
        create("~t"),
        FIVE,
        [ask("Fetch", **of("~t", (0, 6), IsolationLevel=level)) for level in (0, 1, 2, -1)],
    ),
    scenario(
        "replicas that are none",
        "Fetch",
        create("~t"),
        FIVE,
        [ask("Fetch", **of("~t", (0, 6), ReplicaId=replica)) for replica in (-2, -3)],
        versions="4-14",
    ),
    scenario(
        "a broker that has no replica",
        "Fetch",
        create("~t"),
        FIVE,
        [
            ask("Fetch", **of("~t", (0, 6), (7, 0), ReplicaId=id, ReplicaState={"ReplicaId": id, "ReplicaEpoch": -1}))
            for id in (0, 1, 2)
        ],
    ),
    scenario("a rack", "Fetch", create("~t"), FIVE, ask("Fetch", **of("~t", (0, 6), RackId="here")), versions="11+"),
    scenario(
        "a cluster's id",
        "Fetch",
        create("~t"),
        FIVE,
        ask("Fetch", **of("~t", (0, 6), ClusterId="another")),
        versions="12+",
    ),
]

EPOCHS = [
    scenario(
        "leader epochs",
        "Fetch",
        create("~t"),
        FIVE,
        [fetch("~t", 6, CurrentLeaderEpoch=epoch) for epoch in (-1, 0, 1, 99, -2)],
        versions="9+",
    ),
    scenario(
        "last fetched epochs",
        "Fetch",
        create("~t"),
        FIVE,
        [fetch("~t", 6, LastFetchedEpoch=epoch) for epoch in (-1, 0, 1, 99, -2)],
        [fetch("~t", 99, LastFetchedEpoch=epoch) for epoch in (0, 1)],
        versions="12+",
    ),
]

SESSIONS = [
    scenario(
        "none wanted", "Fetch", create("~t"), FIVE, within(0, -1, "~t", (0, 8)), within(0, -1, "~t"), versions="7+"
    ),
    scenario(
        "a session from its making to its end",
        "Fetch",
        create("~t", 3),
        FIVE,
        within(0, 0, "~t", (0, 8), (1, 0)),
        within("$s", 1),
        within("$s", 2, "~t", (0, 10)),
        seed("~t", "news", partition=1),
        within("$s", 3),
        within("$s", 4),
        within("$s", 5, "~t", (1, 1), (2, 0)),
        seed("~t", "news", partition=2),
        within("$s", 6, "~t", forget=(1,)),
        seed("~t", "more", partition=1),
        within("$s", 7, "~t", (2, 1)),
        within("$s", -1),
        within("$s", 8),
        versions="7+",
    ),
    scenario(
        "an epoch that does not fit",
        "Fetch",
        create("~t"),
        FIVE,
        within(0, 0, "~t", (0, 8)),
        within("$s", 2),
        within("$s", 1),
        within("$s", 1),
        within("$s", 0, "~t", (0, 9)),
        within("$s", 1),
        versions="7+",
    ),
    scenario(
        "a session nobody made",
        "Fetch",
        create("~t"),
        within(123456, 1, "~t", (0, 0)),
        within(123456, 0, "~t", (0, 0)),
        within(123456, -1, "~t", (0, 0)),
        within(0, 5, "~t", (0, 0)),
        within(-4, 1, "~t", (0, 0)),
        versions="7+",
    ),
    scenario(
        "session ids that none can have",
        "Fetch",
        create("~t"),
        [within(id, epoch, "~t", (0, 0)) for id in (2147483647, -2147483648, 2147483639, -9) for epoch in (1, -1)],
        versions="7+",
    ),
    scenario("an empty session", "Fetch", within(0, 0, "~t"), versions="7+"),
    scenario(
        "unknown partitions within",
        "Fetch",
        create("~t"),
        FIVE,
        within(0, 0, "~t", (0, 10), (5, 0)),
        within("$s", 1),
        within("$s", 2, "~t", forget=(5,)),
        within("$s", 3, "~t", forget=(7,)),
        within("$s", 4),
        versions="7+",
    ),
    scenario(
        "a full fetch ends the old session",
        "Fetch",
        create("~t"),
        FIVE,
        within(0, 0, "~t", (0, 8)),
        ask("Fetch", save={"$s2": "SessionId"}, **of("~t", (0, 9), SessionId="$s", SessionEpoch=0)),
        within("$s", 1),
        within("$s2", 1),
        versions="7+",
    ),
    scenario(
        "a session in another connection",
        "Fetch",
        create("~t"),
        FIVE,
        within(0, 0, "~t", (0, 10)),
        ask("Fetch", on="other", **of("~t", SessionId="$s", SessionEpoch=1)),
        versions="12-13",
    ),
    scenario(
        "log start moves within",
        "Fetch",
        create("~t"),
        FIVE,
        within(0, 0, "~t", (0, 10)),
        ask(
            "DeleteRecords",
            quiet=True,
            Topics=[{"Name": "~t", "Partitions": [{"PartitionIndex": 0, "Offset": 4}]}],
            TimeoutMs=5000,
        ),
        within("$s", 1),
        within("$s", 2),
        versions="7+",
    ),
    scenario(
        "a topic deleted within",
        "Fetch",
        create("~t"),
        FIVE,
        within(0, 0, "~t", (0, 10)),
        ask("DeleteTopics", v=5, TopicNames=["~t"], TimeoutMs=5000),
        gone("~t"),
        within("$s", 1),
        within("$s", 2),
        versions="7+",
    ),
    scenario(
        "an unknown id within",
        "Fetch",
        ask(
            "Fetch",
            save={"$s": "SessionId"},
            **{
                **of("~t", SessionEpoch=0),
                "Topics": [{"TopicId": b"\6" * 16, "Partitions": [{"Partition": 0, "PartitionMaxBytes": 100}]}],
            },
        ),
        within("$s", 1),
        versions="13+",
    ),
]

_ = (R, batch, produce)

SCENARIOS = [*PLACES, *LIMITS, *ISOLATION, *EPOCHS, *SESSIONS]

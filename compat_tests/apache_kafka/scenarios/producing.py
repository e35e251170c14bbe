"""Produce: accepted and refused requests, and their errors."""

import struct
from typing import Any

from ..batches import T0, R, Records, batch, message_set, records
from ..play import Step
from ..steps import ask, create, fetch, produce, produce_body, scenario, send, unanswered

AHEAD = 4_000_000_000_000  # the year 2096: after any clock of these tests


def one(**options: Any) -> bytes:
    return batch(R(b"one"), R(b"two", timestamp_delta=1), **options)


def stored(topic: str = "~t") -> Step:
    """Reads the log's contents."""
    return fetch(topic, 0, v=11)


GOOD: list[tuple[str, Any]] = [
    ("plain", one()),
    (
        "keys, nulls and headers",
        batch(R(None, b"k"), R(b"", b""), R(None, None, headers=(("a", b"1"), ("a", None), ("ä", b"")))),
    ),
    ("gzip", one(codec=1)),
    ("snappy", one(codec=2)),
    ("lz4", one(codec=3)),
    ("timestamps that are negative", one(base_timestamp=-5)),
    ("timestamp -1", batch(R(b"x"), base_timestamp=-1)),
    ("a wrong max timestamp", one(max_timestamp=T0 + 99)),
    ("timestamps backwards", batch(R(b"a", timestamp_delta=5), R(b"b", timestamp_delta=0), base_timestamp=T0)),
    ("deltas backwards", batch(R(b"a", offset_delta=1), R(b"b", offset_delta=0))),
    ("an unused attribute bit", one(attributes=1 << 9)),
    ("the client's own LogAppendTime bit", one(attributes=8)),
    ("the delete horizon bit", one(attributes=64)),
    ("three stray bytes behind", one() + b"\0\0\0"),
    ("a leader epoch of its own", one(leader_epoch=77)),
    ("a control batch", batch(R(b"\0\0\0\0\0\0", b"\0\0\0\0"), attributes=32)),
    (
        "a control batch of a producer",
        batch(R(b"\0\0\0\0\0\0", b"\0\0\0\1"), attributes=32 | 16, producer_id=5, producer_epoch=0),
    ),
    ("transactional without a transaction", one(attributes=16)),
]

BAD: list[tuple[str, Any]] = [
    ("no bytes", b""),
    ("two batches", one() + one()),
    ("a base offset of 5", one(base_offset=5)),
    ("a negative base offset", one(base_offset=-1)),
    ("a wrong crc", one(crc=1)),
    ("magic 3", one(magic=3)),
    ("magic -1", one(magic=-1)),
    ("magic 1 in this header", one(magic=1)),
    ("codec 5", one(attributes=5)),
    ("codec 7", one(attributes=7)),
    ("codec 5, a wrong crc", one(attributes=5, crc=7)),
    ("broken gzip", batch(R(b"x"), codec=1, body=b"this is not gzip")),
    ("broken snappy", batch(R(b"x"), codec=2, body=b"this is not snappy")),
    ("broken lz4", batch(R(b"x"), codec=3, body=b"this is not lz4")),
    ("a length that is too small", one(length=20)),
    ("a length that is too large", one(length=5000)),
    ("a negative length", one(length=-1)),
    ("a length of 0", one(length=0)),
    ("a count that is too large", one(count=3)),
    ("a count that is too small", one(count=1)),
    ("a count of 0", one(count=0)),
    ("a negative count", one(count=-1)),
    ("a wrong last delta", one(last_delta=5)),
    ("a negative last delta", one(last_delta=-1)),
    ("no records", batch(last_delta=-1)),
    ("no records, delta 0", batch(last_delta=0)),
    ("holes in the deltas", batch(R(b"a"), R(b"b", offset_delta=2), last_delta=2)),
    ("a first delta of 1", batch(R(b"a", offset_delta=1))),
    ("bytes behind the records", one(extra=b"\1\2\3")),
    ("a record cut off", batch(body=b"\x20\0\0\0\1\2a", last_delta=0, count=1)),
    ("a record of length 0", batch(body=b"\0", last_delta=0, count=1)),
    ("a record of length -1", batch(body=b"\1", last_delta=0, count=1)),
    ("cut in the header", one()[:30]),
    ("cut in the records", one()[:-3]),
    ("11 bytes", one()[:11]),
    ("message set 0", message_set(0, b"a", b"b")),
    ("message set 1", message_set(1, b"a", b"b")),
    ("message set 1, wrong crc", message_set(1, b"a", crc=7)),
    ("a record too far ahead", batch(R(b"a"), R(b"b", timestamp_delta=AHEAD - T0), R(b"c"))),
    ("all too far ahead", one(base_timestamp=AHEAD)),
    ("a max timestamp too far ahead", one(max_timestamp=AHEAD)),
    ("a producer without a sequence", one(producer_id=9, producer_epoch=0)),
    ("a producer with epoch -1", one(producer_id=9, producer_epoch=-1, sequence=0)),
    ("a sequence without a producer", one(sequence=0)),
    ("garbage", bytes(range(100))),
    ("a batch and then a broken one", one() + one()[:40]),
]

SOME_VERSIONS = {"plain", "a wrong crc", "codec 5", "two batches", "message set 1", "a record too far ahead"}
"""Cases that are played with every version; the others use the oldest and the newest."""


def cases(named: list[tuple[str, Any]], kind: str, *after: Step) -> list[Any]:
    made = []
    for name, content in named:
        for versions in [""] if name in SOME_VERSIONS else ["3-3", "8-8", "13"]:
            each = scenario(
                f"{kind}: {name}{f' ({versions})' if versions else ''}",
                "Produce",
                create("~t"),
                produce("~t", content),
                *after,
                versions=versions,
            )
            made.append(each)
    return made


def two_partitions(topic: str, *contents: Any, acks: int = -1) -> Step:
    data = [{"Index": index, "Records": content} for index, content in enumerate(contents)]
    return ask(
        "Produce",
        Acks=acks,
        TimeoutMs=5000,
        TopicData=[{"Name": topic, "TopicId": f"$id {topic}", "PartitionData": data}],
    )


TOPICS = [
    scenario("an unknown topic", "Produce", produce("~none", "x"), versions="3-12"),
    scenario(
        "an unknown topic id",
        "Produce",
        ask(
            "Produce",
            Acks=1,
            TimeoutMs=1000,
            TopicData=[{"TopicId": b"\7" * 16, "PartitionData": [{"Index": 0, "Records": one()}]}],
        ),
        versions="13",
    ),
    scenario(
        "a topic id of zero",
        "Produce",
        ask(
            "Produce",
            Acks=1,
            TimeoutMs=1000,
            TopicData=[{"TopicId": bytes(16), "PartitionData": [{"Index": 0, "Records": one()}]}],
        ),
        versions="13",
    ),
    scenario("an illegal name", "Produce", produce("a b", "x"), produce("", "x"), versions="3-12"),
    scenario(
        "an unknown partition",
        "Produce",
        create("~t"),
        produce("~t", "x", partition=5),
        produce("~t", "x", partition=-1),
    ),
    scenario(
        "a good and an unknown partition",
        "Produce",
        create("~t"),
        two_partitions("~t", one(), one(crc=5)),
        two_partitions("~t", one(), one()),
        stored(),
    ),
    scenario(
        "a partition twice",
        "Produce",
        create("~t"),
        ask(
            "Produce",
            Acks=1,
            TimeoutMs=1000,
            TopicData=[
                {
                    "Name": "~t",
                    "TopicId": "$id ~t",
                    "PartitionData": [{"Index": 0, "Records": one()}, {"Index": 0, "Records": one()}],
                }
            ],
        ),
        stored(),
    ),
    scenario(
        "a topic twice",
        "Produce",
        create("~t", 2),
        ask(
            "Produce",
            Acks=1,
            TimeoutMs=1000,
            TopicData=[
                {"Name": "~t", "TopicId": "$id ~t", "PartitionData": [{"Index": index, "Records": one()}]}
                for index in (0, 1)
            ],
        ),
        stored(),
    ),
    scenario(
        "no partitions",
        "Produce",
        create("~t"),
        ask("Produce", Acks=1, TimeoutMs=1000, TopicData=[{"Name": "~t", "TopicId": "$id ~t", "PartitionData": []}]),
    ),
    scenario("the internal topic", "Produce", produce("__consumer_offsets", "x"), versions="3-12"),
    scenario(
        "three batches after each other",
        "Produce",
        create("~t"),
        produce("~t", "a", "b"),
        produce("~t", "c"),
        produce("~t", "d", acks=1),
        stored(),
    ),
]

ACKS = [
    scenario(
        "acks that are odd", "Produce", create("~t"), [produce("~t", "x", acks=acks) for acks in (2, -2, 100)], stored()
    ),
    scenario(
        "no acks",
        "Produce",
        create("~t"),
        send("Produce", **produce_body("~t", one(), acks=0)),
        unanswered(),
        stored(),
    ),
    scenario(
        "no acks, nothing in it",
        "Produce",
        send("Produce", Acks=0, TimeoutMs=100, TopicData=[]),
        unanswered(),
    ),
    scenario(
        "no acks, an unknown topic",
        "Produce",
        send(
            "Produce",
            on="b",
            Acks=0,
            TimeoutMs=100,
            TopicData=[{"Name": "~none", "TopicId": b"\7" * 16, "PartitionData": [{"Index": 0, "Records": one()}]}],
        ),
        unanswered(on="b"),
    ),
    scenario(
        "no acks, a wrong crc",
        "Produce",
        create("~t"),
        send("Produce", on="b", **produce_body("~t", one(crc=1), acks=0)),
        unanswered(on="b"),
    ),
    scenario(
        "nothing at all", "Produce", [ask("Produce", Acks=acks, TimeoutMs=100, TopicData=[]) for acks in (1, -1, 2)]
    ),
    scenario(
        "no time",
        "Produce",
        create("~t"),
        ask("Produce", **{**produce_body("~t", one()), "TimeoutMs": 0}),
        ask("Produce", **{**produce_body("~t", one()), "TimeoutMs": -1}),
    ),
]

CONFIGURED = [
    scenario(
        "LogAppendTime",
        "Produce",
        create("~t", message_timestamp_type="LogAppendTime"),
        produce("~t", one()),
        produce("~t", one(codec=1)),
        produce("~t", one(base_timestamp=AHEAD)),
        stored(),
    ),
    scenario(
        "a batch above max.message.bytes",
        "Produce",
        create("~t", max_message_bytes="100"),
        produce("~t", "x" * 10),
        produce("~t", "x" * 100),
        stored(),
    ),
    scenario(
        "compaction wants keys",
        "Produce",
        create("~t", cleanup_policy="compact"),
        produce("~t", R(b"v", b"k")),
        produce("~t", R(b"v", b"k"), R(b"v", None), R(b"v", None)),
        produce("~t", one(codec=1)),
        stored(),
    ),
    scenario(
        "compaction and deletion want keys",
        "Produce",
        create("~t", cleanup_policy="compact,delete"),
        produce("~t", R(b"v", None)),
        stored(),
        versions="8+",
    ),
    scenario(
        "timestamps too old",
        "Produce",
        create("~t", message_timestamp_before_max_ms="1000"),
        produce("~t", one()),
        produce("~t", one(base_timestamp=-1)),
        stored(),
    ),
    scenario(
        "timestamps far ahead are taken",
        "Produce",
        create("~t", message_timestamp_after_max_ms="9223372036854775807"),
        produce("~t", one(base_timestamp=AHEAD)),
        stored(),
        versions="8+",
    ),
    *(
        scenario(
            f"recompressed to {codec}",
            "Produce",
            create("~t", compression_type=codec),
            produce("~t", one()),
            produce("~t", one(codec=1)),
            produce("~t", one(codec=3)),
            ask("Fetch", v=11, **fetch("~t", 0).body),
            versions="7+",
        )
        for codec in ("uncompressed", "gzip", "snappy", "lz4", "zstd")
    ),
    scenario(
        "recompressed, far ahead",
        "Produce",
        create("~t", compression_type="lz4"),
        produce("~t", batch(R(b"a"), R(b"b", timestamp_delta=AHEAD - T0))),
        produce("~t", batch(R(b"a", timestamp_delta=3), R(b"b"))),
        stored(),
        versions="8+",
    ),
    scenario(
        "recompressed, deltas backwards",
        "Produce",
        create("~t", compression_type="gzip"),
        produce("~t", batch(R(b"a", offset_delta=1), R(b"b", offset_delta=0))),
        stored(),
        versions="8-8",
    ),
    scenario(
        "recompressed, LogAppendTime",
        "Produce",
        create("~t", compression_type="gzip", message_timestamp_type="LogAppendTime"),
        produce("~t", one()),
        stored(),
        versions="8-8",
    ),
    scenario("zstd", "Produce", create("~t"), produce("~t", one(codec=4)), stored()),
    scenario(
        "broken zstd",
        "Produce",
        create("~t"),
        produce("~t", batch(R(b"x"), codec=4, body=b"this is not zstd")),
        stored(),
    ),
    scenario(
        "a null transactional id and an empty one",
        "Produce",
        create("~t"),
        ask("Produce", TransactionalId="", **produce_body("~t", one())),
        ask("Produce", TransactionalId="~x", **produce_body("~t", one())),
        stored(),
    ),
    scenario(
        "raw snappy",
        "Produce",
        create("~t"),
        produce("~t", batch(R(b"x"), codec=2, body=__import__("snappy").compress(b"\x0e\0\0\0\1\2x\0"))),
        stored(),
    ),
]

NEVER_ANSWERED = [
    scenario("null records", "Produce", create("~t"), ask("Produce", within=1.0, on="b", **produce_body("~t", None))),
]

_ = (struct, Records, records)

SCENARIOS = [
    *cases(GOOD, "good", stored()),
    *cases(BAD, "bad", stored()),
    *TOPICS,
    *ACKS,
    *CONFIGURED,
    *NEVER_ANSWERED,
]

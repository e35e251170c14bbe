"""Requests of clients from before Kafka 0.11: Produce 0 to 2 with message sets, Fetch 0 to 3.

Data only: must not open a socket. Apache Kafka served these until 3.9.
"""

from collections.abc import Iterable
from typing import Any

from .batches import R, batch, records
from .message_sets import M, message, message_set, wrapper
from .play import Step
from .steps import Scenario, ask, create, fetch_body, produce, produce_body, send, unanswered

FUTURE = 4_000_000_000_000
"""A timestamp in the future of every clock."""

MODERN = {"Produce": 9, "Fetch": 11}
"""Versions of the same APIs with record batches, in the last Kafka that has the old versions."""


def old(name: str, api: str, *steps: Step | Iterable[Step], versions: Iterable[int]) -> Scenario:
    flat = tuple(each for step in steps for each in ([step] if isinstance(step, Step) else step))
    return Scenario(f"{api}: {name}", api, flat, tuple(versions))


def sent(*sets: bytes | None, topic: str = "~t", acks: int = -1, **more: Any) -> list[Step]:
    """Sends each set in its own request, in the version at hand."""
    return [ask("Produce", **produce_body(topic, each, acks=acks), **more) for each in sets]


def seed(*data: Any, topic: str = "~t", **options: Any) -> Step:
    """Produces a record batch as a modern producer."""
    return produce(topic, *data, quiet=True, v=MODERN["Produce"], **options)


def read(offset: int = 0, *, v: int | None = None, topic: str = "~t", **more: Any) -> Step:
    return ask("Fetch", v=v, **fetch_body(topic, offset, **more))


STORED = read(v=MODERN["Fetch"])
"""Reads the stored batches."""

THREE = (M(b"a"), M(b"b", b"key"), M(None, b"gone"))


def both(name: str, *sets: Any, **configs: str) -> list[Scenario]:
    """`sets` are functions of the magic; each set is sent, then all stored records are read."""
    return [
        old(
            f"{name}, v{magic}",
            "Produce",
            create("~t", **configs),
            sent(*(make(magic) for make in sets)),
            STORED,
            versions=(0, 1, 2) if magic == 0 else (2,),
        )
        for magic in (0, 1)
    ]


TIMES = tuple(M(b"%d" % delta, timestamp=1_700_000_000_000 + delta) for delta in (5, 2, 9, 4))


def bad(name: str, *sets: Any, **configs: str) -> list[Scenario]:
    return both(name, lambda m: message_set(m, b"good"), *sets, **configs)


PRODUCE = [
    *both("plain", lambda m: message_set(m, *THREE), lambda m: message_set(m, b"d")),
    *both("several codecs", *(lambda m, codec=codec: wrapper(m, codec, *THREE) for codec in (1, 2, 3))),
    *both("timestamps", lambda m: message_set(m, *TIMES), lambda m: wrapper(m, 1, *TIMES)),
    *both(
        "to a topic with the log's time",
        lambda m: message_set(m, *TIMES),
        lambda m: wrapper(m, 1, *TIMES),
        message_timestamp_type="LogAppendTime",
    ),
    *(
        each
        for codec in ("gzip", "snappy", "lz4", "uncompressed", "zstd")
        for each in both(
            f"to a topic of {codec}",
            lambda m: message_set(m, *THREE),
            lambda m: wrapper(m, 1, *THREE),
            lambda m: wrapper(m, 3, *THREE),
            compression_type=codec,
        )
    ),
    *both(
        "keyless to a compacted topic",
        lambda m: message_set(m, M(b"a", b"k")),
        lambda m: message_set(m, M(b"a", b"k"), b"b"),
        lambda m: wrapper(m, 1, M(b"a", b"k"), b"b"),
        lambda m: wrapper(m, 1, M(b"a", b"k"), M(None, b"k")),
        cleanup_policy="compact",
    ),
    *both(
        "offsets of all sorts",
        lambda m: message_set(m, M(b"a", offset=7), M(b"b", offset=3), M(b"c", offset=-1)),
        lambda m: wrapper(m, 1, M(b"a", offset=7), M(b"b", offset=3), offset=50),
        lambda m: wrapper(m, 1, b"a", b"b", offset=0),
        lambda m: wrapper(m, 1, b"a", b"b", offset=1000),
        lambda m: wrapper(m, 1, M(b"a", offset=9), M(b"b", offset=10), offset=5),
    ),
    *both(
        "cut off",
        lambda m: message_set(m, b"a", b"b")[:-1],
        lambda m: message_set(m, b"a")[:-1],
        lambda m: message_set(m, b"a")[:12],
        lambda m: message_set(m, b"a")[:5],
        lambda m: message_set(m, b"a") + b"\0" * 11,
        lambda m: b"",
        lambda m: wrapper(m, 1, b"a", b"b")[:-1],
        lambda m: wrapper(m, 1, inside=message_set(m, b"a", b"b")[:-1]),
    ),
    *bad("a wrong checksum", lambda m: message_set(m, b"a", M(b"b", crc=1))),
    *bad("a wrong checksum inside", lambda m: wrapper(m, 1, b"a", M(b"b", crc=1))),
    *bad(
        "a length below all", lambda m: message_set(m, M(b"a", length=13)), lambda m: message_set(m, M(b"a", length=-1))
    ),
    *bad("a length below all inside", lambda m: wrapper(m, 1, M(b"a", length=13))),
    *bad(
        "magic of the future", lambda m: message_set(m, M(b"a", magic=3)), lambda m: message_set(m, M(b"a", magic=-1))
    ),
    *bad("several wrappers", lambda m: wrapper(m, 1, b"a") + wrapper(m, 1, b"b")),
    *bad("a wrapper among others", lambda m: wrapper(m, 1, b"a") + message_set(m, b"b")),
    *bad("a wrapper behind another", lambda m: message_set(m, b"b") + wrapper(m, 1, b"a")),
    *bad("a wrapper in a wrapper", lambda m: wrapper(m, 1, inside=wrapper(m, 1, b"a"))),
    *bad("both formats", lambda m: message_set(m, b"a") + message_set(1 - m, b"b")),
    *bad("the other format inside", lambda m: wrapper(m, 1, inside=message_set(1 - m, b"b"))),
    *bad("nothing inside", lambda m: wrapper(m, 1, inside=b""), lambda m: wrapper(m, 1, value=None)),
    *bad("zstd", lambda m: wrapper(m, 4, b"a")),
    *bad("codecs that are none", *(lambda m, c=c: message_set(m, M(b"a", attributes=c)) for c in (5, 7))),
    *bad("an unused bit", lambda m: message_set(m, M(b"a", attributes=16))),
    *bad(
        "what does not unpack",
        *(lambda m, c=c: message_set(m, M(b"abcdefghijklmnop", attributes=c)) for c in (1, 2, 3)),
    ),
    *bad("a key that is too long", lambda m: message_set(m, M(content=b"\0" * (8 * m) + b"\0\0\0\x09abc\0\0\0\0"))),
    *bad("a value that is too long", lambda m: message_set(m, M(content=b"\0" * (8 * m) + b"\0\0\0\0\0\0\0\x09abc"))),
    *bad("bytes left over", lambda m: message_set(m, M(content=b"\0" * (8 * m) + b"\0\0\0\0\0\0\0\x01abc"))),
    *bad("too short for its format", lambda m: message_set(1, M(content=b"\0" * 10))),
    *bad("too large a message", lambda m: message_set(m, bytes(1000)), max_message_bytes="500"),
    *bad("too large together", lambda m: message_set(m, *[bytes(100)] * 6), max_message_bytes="500"),
    *bad(
        "too large once unpacked",
        lambda m: wrapper(m, 1, bytes(2000)),
        max_message_bytes="500",
        compression_type="uncompressed",
    ),
    *bad("a record batch", lambda m: batch(R(b"a"), R(b"b"))),
    *bad("a record batch of zstd", lambda m: batch(R(b"a"), R(b"b"), codec=4)),
    *bad("two record batches", lambda m: batch(R(b"a")) + batch(R(b"a"))),
    *bad("a message and a batch", lambda m: message_set(m, b"a") + batch(R(b"a"))),
    *bad("a batch and a message", lambda m: batch(R(b"a")) + message_set(m, b"a")),
    old(
        "timestamps that are not taken",
        "Produce",
        create("~t", message_timestamp_before_max_ms="1000", message_timestamp_after_max_ms="3600000"),
        sent(
            message_set(1, b"old"),
            message_set(1, M(b"new", timestamp=FUTURE)),
            message_set(1, M(b"none", timestamp=-1)),
            message_set(1, M(b"negative", timestamp=-2)),
            wrapper(1, 1, M(b"none", timestamp=-1), b"old"),
            wrapper(1, 2, M(b"none", timestamp=-1), M(b"new", timestamp=FUTURE)),
            message_set(0, b"none"),
        ),
        STORED,
        versions=(2,),
    ),
    old(
        "negative timestamps",
        "Produce",
        create("~t"),
        sent(message_set(1, M(b"negative", timestamp=-2)), wrapper(1, 1, M(b"negative", timestamp=-2))),
        STORED,
        versions=(2,),
    ),
    *(
        old(
            f"the log's time, set by the client, to a topic with {kind}",
            "Produce",
            create("~t", message_timestamp_type=kind),
            sent(
                message_set(1, M(b"a", attributes=8)),
                message_set(1, M(b"a", attributes=8, timestamp=-1)),
                message_set(1, M(b"a"), M(b"a", attributes=8)),
                wrapper(1, 1, b"a", attributes=9),
                wrapper(1, 1, b"a", attributes=9, timestamp=-1),
                wrapper(1, 1, M(b"a", attributes=8)),
                wrapper(1, 1, M(b"a", attributes=8, timestamp=-1)),
            ),
            STORED,
            versions=(2,),
        )
        for kind in ("CreateTime", "LogAppendTime")
    ),
    old(
        "where there is nothing",
        "Produce",
        create("~t"),
        sent(message_set(0, b"a"), topic="~nobody"),
        ask("Produce", **produce_body("~t", message_set(0, b"a"), partition=9)),
        sent(message_set(0, b"a"), acks=2),
        versions=(0, 1, 2),
    ),
    old(
        "without an answer",
        "Produce",
        create("~t"),
        send("Produce", **produce_body("~t", message_set(0, b"a"), acks=0)),
        unanswered(),
        send("Produce", **produce_body("~t", message_set(0, b"b"), acks=0)),
        send("Produce", **produce_body("~t", message_set(0, M(b"b", crc=1)), acks=0)),
        unanswered(),
        STORED,
        versions=(0, 1, 2),
    ),
]

MIXED = (
    seed(R(b"one", b"k", 5, (("h", b"header"),)), R(None, b"gone", 2), R(b"three", None, 9)),
    seed(R(b"four"), R(b"five", b"k", 7), codec=1),
    seed(R(b"six"), R(b"seven", b"k", 7), R(b"eight", b"k", 1, (("h", None),)), codec=2),
    seed(R(b"nine"), R(b"ten", b"k", 7), codec=3),
    seed(R(b"eleven"), base_timestamp=-1),
)

FETCH = [
    old(
        "batches of all codecs", "Fetch", create("~t"), MIXED, [read(offset) for offset in range(12)], versions=range(4)
    ),
    old(
        "with the log's time",
        "Fetch",
        create("~t", message_timestamp_type="LogAppendTime"),
        MIXED,
        [read(offset) for offset in (0, 3, 6, 9)],
        versions=range(4),
    ),
    old("nothing there", "Fetch", create("~t"), read(), read(1), read(-1), read(topic="~nobody"), versions=range(4)),
    old("out of range", "Fetch", create("~t"), MIXED, read(100), read(-1), read(-2), versions=range(4)),
    old(
        "limits",
        "Fetch",
        create("~t"),
        [seed(R(b"%d" % n * 100), R(b"b")) for n in range(3)],
        [read(PartitionMaxBytes=limit) for limit in (-1, 0, 1, 11, 12, 16, 17, 60, 61, 100, 200, 282, 283, 350, 600)],
        [read(2, PartitionMaxBytes=limit) for limit in (1, 200, 282)],
        versions=range(4),
    ),
    old(
        "limits of small records",
        "Fetch",
        create("~t"),
        [seed(*[R(b"%d" % n)] * 20) for n in range(4)],
        [read(3, PartitionMaxBytes=limit) for limit in (1, 200, 300, 600, 1000)],
        versions=range(4),
    ),
    old(
        "limits of compressed batches",
        "Fetch",
        create("~t"),
        [seed(*[R(b"%d" % n)] * 20, codec=1) for n in range(4)],
        [read(3, PartitionMaxBytes=limit) for limit in (1, 50, 100, 200, 300, 600, 1000)],
        versions=range(4),
    ),
    old(
        "limits of all",
        "Fetch",
        create("~t"),
        [seed(R(b"%d" % n * 100)) for n in range(3)],
        [read(MaxBytes=limit) for limit in (-1, 0, 1, 100, 300, 1000)],
        versions=(3,),
    ),
    old(
        "zstd",
        "Fetch",
        create("~t"),
        seed(R(b"plain")),
        seed(R(b"a"), R(b"b"), codec=4),
        seed(R(b"plain")),
        read(),
        read(1),
        read(2),
        read(3),
        versions=range(12),
    ),
    old(
        "a topic of zstd",
        "Fetch",
        create("~t", compression_type="zstd"),
        read(),
        read(1),
        seed(R(b"a"), R(b"b")),
        read(),
        read(1),
        read(2),
        read(7),
        versions=range(4),
    ),
    old(
        "what an old client wrote",
        "Fetch",
        create("~t"),
        [
            ask("Produce", v=2, quiet=True, **produce_body("~t", each))
            for each in (message_set(0, *THREE), message_set(1, *TIMES), wrapper(0, 3, *THREE), wrapper(1, 2, *TIMES))
        ],
        [read(offset) for offset in (0, 2, 4, 8, 12)],
        versions=range(4),
    ),
    old("a replica", "Fetch", create("~t"), MIXED, read(ReplicaId=5), read(ReplicaId=-2), versions=range(4)),
    old(
        "two partitions",
        "Fetch",
        create("~t", 2),
        seed(R(b"a")),
        seed(R(b"b"), partition=1),
        ask(
            "Fetch",
            MaxWaitMs=100,
            MinBytes=0,
            ReplicaId=-1,
            Topics=[
                {
                    "Topic": "~t",
                    "Partitions": [
                        {"Partition": index, "FetchOffset": 0, "PartitionMaxBytes": 1000} for index in (1, 0, 7)
                    ],
                }
            ],
        ),
        versions=range(4),
    ),
]

SCENARIOS = [*PRODUCE, *FETCH]

__all__ = ["MODERN", "SCENARIOS", "message", "records"]

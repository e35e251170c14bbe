"""ListOffsets, OffsetForLeaderEpoch and DeleteRecords: offsets in a log."""

from typing import Any

from ..batches import T0, R
from ..play import Step
from ..steps import ask, create, fetch, scenario, seed

TIMED = [
    seed("~t", R(b"a", timestamp_delta=0), R(b"b", timestamp_delta=10)),
    seed("~t", R(b"c", timestamp_delta=20), R(b"d", timestamp_delta=15)),
    seed("~t", R(b"e", timestamp_delta=30), R(b"f", timestamp_delta=30), codec=1),
]
"""Offsets 0 to 5 at T0 + 0, 10, 20, 15, 30, 30."""


def at(*timestamps: int, topic: str = "~t", partition: int = 0, epoch: int = -1, **more: Any) -> list[Step]:
    return [
        ask(
            "ListOffsets",
            **{"ReplicaId": -1, "TimeoutMs": 1000, **more},
            Topics=[
                {
                    "Name": topic,
                    "Partitions": [{"PartitionIndex": partition, "Timestamp": each, "CurrentLeaderEpoch": epoch}],
                }
            ],
        )
        for each in timestamps
    ]


def removed(offset: int, partition: int = 0, topic: str = "~t", **more: Any) -> Step:
    return ask(
        "DeleteRecords",
        Topics=[{"Name": topic, "Partitions": [{"PartitionIndex": partition, "Offset": offset}]}],
        TimeoutMs=5000,
        **more,
    )


LIST = [
    scenario("ends", "ListOffsets", create("~t"), at(-1, -2), TIMED, at(-1, -2)),
    scenario(
        "by time",
        "ListOffsets",
        create("~t"),
        TIMED,
        at(*(T0 + n for n in (-1, 0, 1, 10, 11, 15, 16, 20, 21, 29, 30, 31)), 0, T0 * 2),
    ),
    scenario("the greatest timestamp", "ListOffsets", create("~t"), at(-3), TIMED, at(-3), versions="7+"),
    scenario("special timestamps", "ListOffsets", create("~t"), TIMED, at(-3, -4, -5, -6, -7, -99)),
    scenario(
        "special timestamps of an empty partition", "ListOffsets", create("~t"), at(-1, -2, -3, -4, -5, -6, 0, T0)
    ),
    scenario(
        "after records were deleted",
        "ListOffsets",
        create("~t"),
        TIMED,
        removed(3, quiet=True),
        at(-1, -2, -3, -4, T0, T0 + 15, T0 + 20),
    ),
    scenario(
        "unknown",
        "ListOffsets",
        create("~t"),
        at(-1, topic="~none"),
        at(-1, topic="a b"),
        at(-1, topic=""),
        at(-1, T0, partition=7),
        at(-1, partition=-1),
    ),
    scenario(
        "a partition twice",
        "ListOffsets",
        create("~t"),
        TIMED,
        ask(
            "ListOffsets",
            ReplicaId=-1,
            Topics=[
                {
                    "Name": "~t",
                    "Partitions": [{"PartitionIndex": 0, "Timestamp": -1}, {"PartitionIndex": 0, "Timestamp": -2}],
                }
            ],
        ),
    ),
    scenario(
        "a topic twice",
        "ListOffsets",
        create("~t"),
        TIMED,
        ask(
            "ListOffsets",
            ReplicaId=-1,
            Topics=[{"Name": "~t", "Partitions": [{"PartitionIndex": 0, "Timestamp": -1}]}] * 2,
        ),
    ),
    scenario(
        "several topics, one unknown",
        "ListOffsets",
        create("~t", 2),
        create("~u"),
        TIMED,
        ask(
            "ListOffsets",
            ReplicaId=-1,
            Topics=[
                {"Name": n, "Partitions": [{"PartitionIndex": p, "Timestamp": -1} for p in (0, 1)]}
                for n in ("~u", "~none", "~t")
            ],
        ),
    ),
    scenario(
        "nothing",
        "ListOffsets",
        create("~t"),
        ask("ListOffsets", ReplicaId=-1, Topics=[]),
        ask("ListOffsets", ReplicaId=-1, Topics=[{"Name": "~t", "Partitions": []}]),
    ),
    scenario(
        "isolation levels",
        "ListOffsets",
        create("~t"),
        TIMED,
        at(-1, -2, T0 + 20, IsolationLevel=0),
        at(-1, T0, IsolationLevel=1),
        at(-1, IsolationLevel=2),
        at(-1, IsolationLevel=-1),
        versions="2+",
    ),
    scenario(
        "leader epochs",
        "ListOffsets",
        create("~t"),
        TIMED,
        at(-1, epoch=0),
        at(-1, epoch=1),
        at(-1, epoch=99),
        at(-1, epoch=-2),
        at(T0, epoch=1),
        versions="4+",
    ),
    scenario(
        "replicas",
        "ListOffsets",
        create("~t"),
        TIMED,
        at(-1, -2, ReplicaId=-2),
        at(-1, ReplicaId=-3),
        at(-1, ReplicaId=1),
        at(-1, T0, ReplicaId=5),
    ),
    scenario(
        "time-outs", "ListOffsets", create("~t"), TIMED, at(-1, T0, TimeoutMs=0), at(-1, TimeoutMs=-1), versions="10+"
    ),
    scenario(
        "LogAppendTime",
        "ListOffsets",
        create("~t", message_timestamp_type="LogAppendTime"),
        TIMED,
        at(0),
        versions="7+",
    ),
]


def epoch(*epochs: tuple[int, int], topic: str = "~t", partition: int = 0, **more: Any) -> list[Step]:
    """Returns an OffsetForLeaderEpoch; each argument is (leader epoch, current leader epoch)."""
    return [
        ask(
            "OffsetForLeaderEpoch",
            **{"ReplicaId": -1, **more},
            Topics=[
                {
                    "Topic": topic,
                    "Partitions": [{"Partition": partition, "LeaderEpoch": each, "CurrentLeaderEpoch": current}],
                }
            ],
        )
        for each, current in epochs
    ]


EPOCHS = [
    scenario(
        "with records",
        "OffsetForLeaderEpoch",
        create("~t"),
        TIMED,
        epoch((0, -1), (0, 0), (1, -1), (99, -1), (-1, -1), (-2, -1), (0, 1), (0, 5), (0, -2)),
    ),
    scenario("without records", "OffsetForLeaderEpoch", create("~t"), epoch((0, -1), (1, -1), (-1, -1))),
    scenario(
        "unknown",
        "OffsetForLeaderEpoch",
        create("~t"),
        epoch((0, -1), topic="~none"),
        epoch((0, -1), topic="a b"),
        epoch((0, -1), partition=4),
        epoch((0, -1), partition=-1),
    ),
    scenario(
        "after records were deleted",
        "OffsetForLeaderEpoch",
        create("~t"),
        TIMED,
        removed(6, quiet=True),
        epoch((0, -1)),
    ),
    scenario(
        "replicas",
        "OffsetForLeaderEpoch",
        create("~t"),
        TIMED,
        epoch((0, -1), ReplicaId=-2),
        epoch((0, -1), ReplicaId=7),
        epoch((0, -1), ReplicaId=-5),
        versions="3+",
    ),
    scenario(
        "several",
        "OffsetForLeaderEpoch",
        create("~b", 2),
        create("~a"),
        ask(
            "OffsetForLeaderEpoch",
            ReplicaId=-1,
            Topics=[
                {"Topic": n, "Partitions": [{"Partition": p, "LeaderEpoch": 0} for p in (1, 0)]}
                for n in ("~b", "~none", "~a")
            ],
        ),
        ask("OffsetForLeaderEpoch", ReplicaId=-1, Topics=[]),
    ),
]

DELETE = [
    scenario(
        "some",
        "DeleteRecords",
        create("~t"),
        TIMED,
        removed(3),
        fetch("~t", 0, v=11),
        fetch("~t", 3, v=11),
        removed(1),
        removed(3),
        removed(6),
        removed(6),
    ),
    scenario(
        "up to the high watermark", "DeleteRecords", create("~t"), TIMED, removed(-1), fetch("~t", 6, v=11), removed(-1)
    ),
    scenario("out of range", "DeleteRecords", create("~t"), TIMED, removed(7), removed(-2), removed(99999)),
    scenario("of an empty partition", "DeleteRecords", create("~t"), removed(0), removed(-1), removed(1)),
    scenario(
        "unknown",
        "DeleteRecords",
        create("~t"),
        removed(0, topic="~none"),
        removed(0, topic="a b"),
        removed(0, partition=9),
        removed(0, partition=-1),
    ),
    scenario(
        "compacted topics keep theirs",
        "DeleteRecords",
        create("~t", cleanup_policy="compact"),
        seed("~t", R(b"v", b"k")),
        removed(1),
        removed(-1),
    ),
    scenario(
        "compacted and deleted",
        "DeleteRecords",
        create("~t", cleanup_policy="compact,delete"),
        seed("~t", R(b"v", b"k")),
        removed(1),
    ),
    scenario("the internal topic's", "DeleteRecords", removed(0, topic="__consumer_offsets")),
    scenario(
        "several",
        "DeleteRecords",
        create("~t", 3),
        TIMED,
        seed("~t", "x", partition=2),
        ask(
            "DeleteRecords",
            Topics=[
                {
                    "Name": "~t",
                    "Partitions": [
                        {"PartitionIndex": 2, "Offset": 1},
                        {"PartitionIndex": 0, "Offset": 2},
                        {"PartitionIndex": 1, "Offset": 1},
                    ],
                },
                {"Name": "~none", "Partitions": [{"PartitionIndex": 0, "Offset": 2}]},
            ],
            TimeoutMs=5000,
        ),
        ask("DeleteRecords", Topics=[], TimeoutMs=100),
    ),
    scenario(
        "a partition twice",
        "DeleteRecords",
        create("~t"),
        TIMED,
        ask(
            "DeleteRecords",
            Topics=[
                {"Name": "~t", "Partitions": [{"PartitionIndex": 0, "Offset": 2}, {"PartitionIndex": 0, "Offset": 4}]}
            ],
            TimeoutMs=5000,
        ),
    ),
]

SCENARIOS = [*LIST, *EPOCHS, *DELETE]

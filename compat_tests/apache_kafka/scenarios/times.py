"""ListOffsets in hard cases: timestamps out of order, in compressed batches, across segments, deleted."""

from typing import Any

from ..batches import T0, R
from ..play import Step
from ..steps import ask, create, scenario, seed
from .log_offsets import at, epoch, removed


def batch(*deltas: int, **options: Any) -> Step:
    """Returns a batch with a record for each of these ms after T0."""
    return seed("~t", *(R(b"v", b"k", timestamp_delta=delta) for delta in deltas), **options)


def each(first: int, last: int, **more: Any) -> list[Step]:
    """Requests every ms after T0 in this range, and times before and after all of them."""
    return at(*(T0 + delta for delta in range(first, last + 1)), 0, 2**62, **more)


OUT_OF_ORDER = [batch(5, 3, 9), batch(2), batch(9, 1), batch(12, 4), batch(7), batch(12), batch(11, 12)]
"""Offsets 0 to 11; the latest time is at 6 first."""

A_SEGMENT_EACH = {"segment_ms": "1"}
"""A segment rolls when the next batch is later than its first by more."""

ONCE = {"versions": "11"}

SCENARIOS = [
    scenario("times out of order", "ListOffsets", create("~t"), OUT_OF_ORDER, each(0, 13), **ONCE),
    scenario("the first of the latest", "ListOffsets", create("~t"), OUT_OF_ORDER, at(-3), versions="7+"),
    *(
        scenario(
            f"times within batches of codec {codec}",
            "ListOffsets",
            create("~t"),
            batch(5, 3, 9, 9, 2, codec=codec),
            batch(8, 20, 10, 20, codec=codec),
            each(2, 21),
            at(-3),
            **ONCE,
        )
        for codec in (1, 2, 3, 4)
    ),
    scenario(
        "times of several segments",
        "ListOffsets",
        create("~t", **A_SEGMENT_EACH),
        batch(0, 2),
        batch(10, 4),
        batch(30, 30),
        batch(20),
        batch(30),
        batch(29, 30),
        each(0, 31),
        at(-1, -2, -3, -4),
        **ONCE,
    ),
    scenario(
        "segments with the same latest time",
        "ListOffsets",
        create("~t", **A_SEGMENT_EACH),
        batch(0),
        batch(30, 30),
        batch(10, 30),
        at(-3),
        versions="7+",
    ),
    scenario(
        "records without a time",
        "ListOffsets",
        create("~t"),
        seed("~t", R(b"v"), R(b"w"), base_timestamp=-1),
        at(-3, 0, T0),
        batch(4),
        seed("~t", R(b"v"), base_timestamp=-1),
        at(-3, 0, 1, T0, T0 + 4, T0 + 5),
        **ONCE,
    ),
    scenario(
        "some records of a batch without a time",
        "ListOffsets",
        create("~t"),
        seed("~t", R(b"v"), R(b"w", timestamp_delta=5), R(b"x"), base_timestamp=-1),
        at(-3, 0, 4, 5),
        **ONCE,
    ),
    *(
        scenario(
            f"times after records before {offset} were deleted",
            "ListOffsets",
            create("~t"),
            OUT_OF_ORDER,
            removed(offset, quiet=True),
            each(0, 13),
            at(-1, -2, -4),
            **ONCE,
        )
        for offset in (1, 2, 5, 7, 8, 11, 12)
    ),
    *(
        scenario(
            f"the latest after records before {offset} were deleted",
            "ListOffsets",
            create("~t"),
            OUT_OF_ORDER,
            removed(offset, quiet=True),
            at(-3),
            **ONCE,
        )
        for offset in (2, 6, 7, 9, 12)
    ),
    scenario(
        "the latest after a segment was deleted",
        "ListOffsets",
        create("~t", **A_SEGMENT_EACH),
        batch(30, 30),
        batch(10),
        batch(20),
        removed(2, quiet=True),
        at(-3, T0, T0 + 21, T0 + 30),
        **ONCE,
    ),
    scenario(
        "the latest in the middle of a batch that was deleted",
        "ListOffsets",
        create("~t"),
        batch(9, 30, 8),
        batch(10),
        removed(2, quiet=True),
        at(-3, T0, T0 + 8, T0 + 9, T0 + 10, T0 + 11),
        **ONCE,
    ),
    scenario(
        "LogAppendTime of compressed batches",
        "ListOffsets",
        create("~t", message_timestamp_type="LogAppendTime"),
        batch(5, 3, codec=4),
        at(0, T0, -3),
        **ONCE,
    ),
    scenario(
        "both isolation levels",
        "ListOffsets",
        create("~t"),
        OUT_OF_ORDER,
        *(at(-1, -2, -3, -4, -5, -6, T0, T0 + 12, T0 + 13, IsolationLevel=level) for level in (0, 1)),
        **ONCE,
    ),
    scenario(
        "unknown special times in every version", "ListOffsets", create("~t"), at(*range(-12, 0), -(2**31), -(2**63))
    ),
    scenario(
        "epochs around those there are",
        "OffsetForLeaderEpoch",
        create("~t"),
        epoch((0, -1)),
        OUT_OF_ORDER,
        epoch(*((each, -1) for each in (-(2**31), -2, -1, 0, 1, 2**31 - 1))),
        removed(7, quiet=True),
        epoch((0, -1), (0, 0), (-1, 0), (1, 0)),
        removed(12, quiet=True),
        epoch((0, -1)),
    ),
    scenario(
        "directories that are not there",
        "AlterReplicaLogDirs",
        create("~t", 3),
        *(
            ask("AlterReplicaLogDirs", Dirs=[{"Path": path, "Topics": [{"Name": "~t", "Partitions": [0, 1, 2]}]}])
            for path in ("/nope", "relative", "", "/")
        ),
        ask("AlterReplicaLogDirs", Dirs=[{"Path": "/nope", "Topics": [{"Name": "~none", "Partitions": [0]}]}]),
        ask("AlterReplicaLogDirs", Dirs=[]),
        ask("AlterReplicaLogDirs", Dirs=[{"Path": "/nope", "Topics": []}]),
        ask("AlterReplicaLogDirs", Dirs=[{"Path": "/nope", "Topics": [{"Name": "~t", "Partitions": []}]}]),
    ),
    scenario(
        "to where it is",
        "AlterReplicaLogDirs",
        create("~t"),
        ask("DescribeLogDirs", v=4, quiet=True, Topics=[], save={"$directory": "Results.0.LogDir"}),
        *(
            ask("AlterReplicaLogDirs", Dirs=[{"Path": "$directory", "Topics": [{"Name": name, "Partitions": indexes}]}])
            for name, indexes in (
                ("~t", [0]),
                ("~t", [7, -1]),
                ("~none", [0]),
                ("a b", [0]),
                ("", [0]),
                ("__cluster_metadata", [0]),
                ("x" * 250, [0]),
                ("x" * 213, [0]),
                ("x" * 214, [0]),
            )
        ),
    ),
]

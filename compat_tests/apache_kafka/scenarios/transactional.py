"""Records in transactions: Produce, markers, Fetch, descriptions; and topics that are deleted meanwhile."""

from typing import Any

from ..batches import R
from ..play import Step
from ..steps import ask, create, gone, produce, published, scenario
from ..transaction_steps import (
    CONTROL,
    TRANSACTIONAL,
    add,
    begin,
    described,
    end,
    ended,
    ends,
    finished,
    mark,
    marker,
    producers,
    read,
    send,
    transaction,
)

TURNS = "3,8,10,11,12,13"
"""The versions of Produce with a different response, or a different error for a partition that was not added."""

ADDED = add(quiet=True, v=3)

PRODUCED = [
    scenario(
        "in a transaction",
        "Produce",
        create("~t", 2),
        begin(),
        add(topics=[("~t", (0, 1))], quiet=True, v=3),
        send("a", "b"),
        send("c", sequence=2),
        send("d", partition=1),
        producers(),
        read(v=11),
        end(v=4, quiet=True),
        ended(),
        read(v=11),
        read(v=11, partition=1),
        producers(),
    ),
    scenario(
        "what was not added",
        "Produce",
        create("~t"),
        begin(),
        send("a"),
        described(),
        read(v=11, committed=False),
        versions=TURNS,
    ),
    scenario(
        "another partition than was added",
        "Produce",
        create("~t", 2),
        begin(),
        ADDED,
        send("a", partition=1),
        send("b"),
        described(),
        versions=TURNS,
    ),
    *(
        scenario(
            f"after a transaction that was {word}, {client}",
            "Produce",
            create("~t"),
            begin(),
            transaction("a", commit=commit, old=old),
            send("b", sequence=1),
            send("c", epoch=1, sequence=1),
            send("d", epoch=1),
            send("e", epoch=1, sequence=1),
            send("f", sequence=1),
            described(),
            producers(),
            read(v=11, committed=False),
            versions=TURNS,
        )
        for word, commit in (("committed", True), ("aborted", False))
        for client, old in (("by an old client", True), ("by a new client", False))
    ),
    *(
        scenario(
            f"epoch {epoch}, in {'a transaction' if inside else 'none'}",
            "Produce",
            create("~t"),
            begin(),
            ADDED if inside else [],
            send("a", quiet=True, v=12) if inside else [],
            send("b", epoch=epoch, sequence=int(inside)),
            send("c", epoch=epoch),
            described(),
            versions=TURNS,
        )
        for epoch in (1, -1, 32767)
        for inside in (True, False)
    ),
    scenario(
        "after somebody else took the id",
        "Produce",
        create("~t"),
        begin(),
        ADDED,
        send("a", quiet=True, v=12),
        begin(),
        described(),
        send("b", sequence=1),
        [send("c", epoch=each) for each in (1, 2)],
        described(),
        read(v=11, committed=False),
        versions=TURNS,
    ),
    scenario(
        "with another's id, or none",
        "Produce",
        create("~t"),
        begin(),
        begin("~y", save="q"),
        ADDED,
        send("a", txn="~y"),
        send("b", txn="~none"),
        send("c", txn=""),
        send("d", txn=None),
        send("e", pid="$q"),
        send("f", pid=123456789),
        described("~x", "~y"),
        versions=TURNS,
    ),
    scenario(
        "in a transaction and beside it",
        "Produce",
        create("~t", 2),
        begin(),
        send("plain, before", attributes=0),
        add(topics=[("~t", (0, 1))], quiet=True, v=3),
        send("plain, after it was added", sequence=1, attributes=0),
        send("a", sequence=2),
        send("plain, in it", sequence=3, attributes=0),
        send("plain, elsewhere", partition=1, attributes=0),
        produce("~t", "of nobody"),
        described(),
        producers(),
        end(v=4, quiet=True),
        ended(),
        read(v=11),
        versions=TURNS,
    ),
    scenario(
        "control batches of a client",
        "Produce",
        create("~t"),
        begin(),
        ADDED,
        send(R(bytes(6), bytes(4)), attributes=TRANSACTIONAL | CONTROL),
        send(R(bytes(6), bytes.fromhex("00000001")), attributes=CONTROL),
        read(v=11, committed=False),
        versions=TURNS,
    ),
    scenario(
        "transactional, without a producer",
        "Produce",
        create("~t"),
        begin(),
        send("a", pid=-1, epoch=-1, sequence=-1),
        send("b", sequence=-1),
        send("c", epoch=-1),
        send("d", txn=None, pid=-1, epoch=-1, sequence=-1),
        read(v=11, committed=False),
        versions=TURNS,
    ),
    scenario(
        "duplicates in a transaction",
        "Produce",
        create("~t"),
        begin(),
        ADDED,
        [send(sequence=n) for n in (0, 1, 0, 1, 3, 2)],
        end(v=4, quiet=True),
        ended(),
        [send(sequence=n) for n in (2, 0)],
        read(v=11),
        versions=TURNS,
    ),
    scenario(
        "sequences from anywhere",
        "Produce",
        create("~t", 3),
        begin(),
        add(topics=[("~t", (0, 1, 2))], quiet=True, v=3),
        send("a", sequence=5),
        send("b", sequence=6),
        send("c", partition=1, sequence=2147483647),
        send("d", partition=1, sequence=0),
        producers(),
        versions=TURNS,
    ),
    scenario(
        "a new client's transactions, one after the other",
        "Produce",
        create("~t"),
        begin(),
        [
            each
            for epoch in range(4)
            for each in (
                send(b"%d" % epoch, epoch=epoch),
                send(b"%d more" % epoch, epoch=epoch, sequence=1),
                end(epoch % 2 == 0, epoch=epoch, quiet=True, v=5),
                ended(epoch % 2 == 0),
            )
        ],
        described(),
        producers(),
        read(v=11),
        versions="12+",
    ),
    scenario(
        "too late",
        "Produce",
        create("~t"),
        begin(timeout=300),
        ADDED,
        send("lost", quiet=True, v=12),
        ended(False),
        send("late", sequence=1),
        [send("later", epoch=each) for each in (0, 1, 2)],
        described(),
        read(v=11, committed=False),
        versions=TURNS,
    ),
]


def beside(commit: bool) -> list[Step]:
    """Makes two concurrent transactions, one ended and one open, with other records between them."""
    return [
        begin(),
        begin("~y", save="q"),
        send("a", "b", quiet=True, v=12),
        produce("~t", "plain", quiet=True, v=12),
        send("c", pid="$q", txn="~y", quiet=True, v=12),
        end(commit, quiet=True, v=5),
        ended(commit),
        produce("~t", "more", quiet=True, v=12),
    ]


def side_by_side(api: str, *steps: Any, what: str = "", versions: str = "") -> list[Any]:
    return [
        scenario(
            f"{what}beside an open transaction one that was {word}",
            api,
            create("~t"),
            beside(commit),
            *steps,
            versions=versions,
        )
        for word, commit in (("committed", True), ("aborted", False))
    ]


READ = [
    *side_by_side(
        "Fetch",
        [read(offset=each, committed=committed) for committed in (True, False) for each in (0, 1, 2, 3, 4, 5, 6, 7)],
        end(False, "~y", pid="$q", quiet=True, v=5),
        ended(False, "~y"),
        [read(offset=each) for each in (0, 2, 3, 4, 6)],
        read(PartitionMaxBytes=100),
        read(offset=1, MaxBytes=1),
    ),
    *side_by_side(
        "ListOffsets",
        ends(times=(-1, -2)),
        ends(times=(-1, -2), committed=False),
        end(True, "~y", pid="$q", quiet=True, v=5),
        ended(True, "~y"),
        ends(times=(-1, -2)),
        versions="2+",
    ),
    *side_by_side(
        "ListOffsets",
        ends(times=(-3, 1_700_000_000_000)),
        ends(times=(-3,), committed=False),
        what="by time, ",
        versions="7+",
    ),
    scenario(
        "transactions that were aborted, one after the other",
        "Fetch",
        create("~t"),
        begin(),
        [transaction("a", "b", epoch=epoch, commit=epoch % 3 == 0) for epoch in range(5)],
        [read(offset=each) for each in range(0, 15, 2)],
        read(committed=False),
    ),
    scenario(
        "an open transaction, and nothing else",
        "Fetch",
        create("~t"),
        begin(),
        send("a", quiet=True, v=12),
        read(),
        read(MaxWaitMs=30, MinBytes=1),
        read(committed=False),
    ),
    scenario(
        "of an open transaction",
        "DescribeProducers",
        create("~t", 2),
        begin(),
        add(quiet=True),
        producers(),
        send("a", quiet=True),
        send("b", sequence=1, quiet=True),
        producers(),
        produce("~t", "plain"),
        finished(),
        producers(),
        send("c", epoch=1, quiet=True),
        producers(),
        finished(False, epoch=1),
        producers(),
    ),
]

MARKED = [
    *(
        scenario(
            f"a {word}, epoch {epoch}, version {version}",
            "WriteTxnMarkers",
            create("~t"),
            begin(),
            ADDED,
            send("a", quiet=True, v=12),
            mark(marker(commit, epoch=epoch, version=version)),
            read(v=11),
            producers(),
            send("b", sequence=1, v=11),
            mark(marker(commit, epoch=epoch, version=version)),
            producers(),
        )
        for word, commit, epoch, version in (
            *(("commit", True, epoch, version) for epoch in (0, 1, -1, 32767) for version in (0, 1, 2)),
            *(("abort", False, epoch, 0) for epoch in (0, 1)),
        )
    ),
    scenario(
        "of a producer that nobody knows",
        "WriteTxnMarkers",
        create("~t", 2),
        mark(marker(pid=123456789)),
        mark(marker(pid=123456789, epoch=5, version=2)),
        mark(marker(pid=123456790, epoch=5, version=2, topics=[("~t", (1,))])),
        mark(marker(pid=-1, epoch=-1)),
        mark(marker(pid=123456791, version=3)),
        mark(marker(pid=123456791, version=-1)),
        read(v=11, committed=False),
        producers(),
        producers(partition=1),
    ),
    scenario(
        "for what is not there",
        "WriteTxnMarkers",
        create("~t"),
        begin(),
        mark(marker(topics=[("~none", (0,)), ("~t", (5, 0, -1))])),
        mark(marker(topics=[("~none", (0,))])),
        mark(marker(topics=[("", (0,))])),
        mark(marker(topics=[])),
        mark(marker(topics=[("~t", ())])),
    ),
    scenario("nothing", "WriteTxnMarkers", mark(on="b", within=1.0)),
    scenario(
        "coordinators",
        "WriteTxnMarkers",
        create("~t"),
        begin(),
        ADDED,
        send("a", quiet=True, v=12),
        [mark(marker(coordinator=each)) for each in (5, 5, 4, 6, 0, -1, 2**31 - 1, -(2**31))],
        producers(),
        read(v=11, committed=False),
    ),
    scenario(
        "several at once",
        "WriteTxnMarkers",
        create("~t", 2),
        create("~u"),
        begin(),
        begin("~y", save="q"),
        add(topics=[("~t", (0, 1)), ("~u", (0,))], quiet=True, v=3),
        add("~y", topics=[("~t", (0, 1))], pid="$q", quiet=True, v=3),
        send("a", quiet=True, v=12),
        send("b", topic="~u", quiet=True, v=12),
        send("c", pid="$q", txn="~y", quiet=True, v=12),
        mark(
            marker(topics=[("~t", (0, 1)), ("~u", (0,))]),
            marker(False, topics=[("~t", (0, 7))], pid="$q"),
        ),
        mark(marker(), marker(False)),
        [read(v=11, topic=each) for each in ("~t", "~u")],
    ),
    scenario(
        "for internal topics",
        "WriteTxnMarkers",
        begin(),
        mark(marker(topics=[("__consumer_offsets", (49,)), ("__transaction_state", (1,))])),
        mark(marker(topics=[("__consumer_offsets", (50,))])),
    ),
]

WITHOUT_TOPIC = [
    scenario(
        f"of a topic in a transaction, then {word}",
        "DeleteTopics",
        create("~t"),
        create("~u"),
        begin(),
        add(topics=[("~t", (0,)), ("~u", (0,))], quiet=True, v=3),
        send("a", quiet=True, v=12),
        send("b", topic="~u", quiet=True, v=12),
        ask("DeleteTopics", v=5, TopicNames=["~t"], TimeoutMs=5000),
        gone("~t"),
        published(),
        described(),
        end(commit, quiet=True, v=5),
        ended(commit),
        described(),
        read(v=11, topic="~u"),
        send("c", topic="~u", epoch=1, v=12),
        versions="5",
    )
    for word, commit in (("a commit", True), ("an abort", False))
]

SCENARIOS = [*PRODUCED, *READ, *MARKED, *WITHOUT_TOPIC]

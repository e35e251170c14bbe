"""The transaction coordinator: InitProducerId with ids, AddPartitionsToTxn, AddOffsetsToTxn, EndTxn."""

from collections.abc import Callable

from ..play import Step
from ..steps import Scenario, create, scenario
from ..transaction_steps import (
    add,
    add_offsets,
    batched,
    begin,
    described,
    end,
    ended,
    finished,
    init,
    pending,
    producers,
    read,
    send,
    transaction,
)

STATES: dict[str, list[Step]] = {
    "empty": [],
    "ongoing": [add(quiet=True, v=3)],
    "committed by an old client": transaction(old=True),
    "aborted by an old client": transaction(old=True, commit=False),
    "committed": transaction(),
    "aborted": transaction(commit=False),
    "ongoing again": [*transaction(), add(epoch=1, quiet=True, v=3)],
}
"""The states of a transactional id: the steps to each from a new id at epoch 0."""

AT_EPOCH_1 = {"committed", "aborted", "ongoing again"}

STRANGERS = ({"epoch": -1}, {"epoch": 2}, {"epoch": 32767}, {"pid": 123456789}, {"pid": -1}, {"txn": "~y"}, {"txn": ""})
"""Producers that are unknown in all of these states."""


TELLING = {
    "AddOffsetsToTxn": "1,2,4",
    "AddPartitionsToTxn": "1,2,3,4,5",
    "EndTxn": "1,2,4,5",
    "TxnOffsetCommit": "1,3,4,5",
}
"""Versions with different errors. Successful requests are played in all versions, elsewhere."""


def in_each_state(api: str, make: Callable[..., Step], what: str = "") -> list[Scenario]:
    """Sends requests of unknown producers and of the former or next epoch, which change nothing; then current ones."""
    made = []
    for state, steps in STATES.items():
        now = int(state in AT_EPOCH_1)
        requests = [make(**{"txn": "~x", **stranger}) for stranger in STRANGERS]
        requests += [make(txn="~x", epoch=1 - now), described(), make(txn="~x", epoch=now), described()]
        made.append(scenario(f"{what}{state}", api, create("~t"), begin(), steps, requests, versions=TELLING[api]))
    return made


IDS = [
    scenario(
        "an id, again and again",
        "InitProducerId",
        [init(save="p"), described()] * 3,
        init(timeout=7000),
        described(),
    ),
    scenario(
        "time-outs of a transaction",
        "InitProducerId",
        [init(timeout=each) for each in (0, -1, -(2**31), 900_001, 2**31 - 1)],
        described(),
        init(timeout=1),
        init(timeout=900_000),
        described(),
    ),
    scenario(
        "odd transactional ids",
        "InitProducerId",
        [init("~" + each) for each in (" ", "ä", "a b", "x" * 300, "/")],
        init("~x", timeout=0, pid=5, epoch=5),
    ),
    *(
        scenario(f"the id of one that is {state}", "InitProducerId", create("~t"), begin(), steps, init(), described())
        for state, steps in STATES.items()
    ),
    *(
        scenario(
            f"with its own id and epoch, {state}",
            "InitProducerId",
            create("~t"),
            begin(),
            steps,
            [each for epoch in (0, 0, 1, 1, 2, 2) for each in (init(pid="$p", epoch=epoch), described())],
            versions="3+",
        )
        for state, steps in STATES.items()
    ),
    scenario(
        "with what is nobody's",
        "InitProducerId",
        begin(),
        init(pid="$p", epoch=3),
        init(pid="$p", epoch=-1),
        init(pid=-1, epoch=0),
        init(pid=123456789, epoch=0),
        init(pid=123456789, epoch=-1),
        init(pid=-2, epoch=-2),
        init(pid="$p", epoch=-2),
        init(pid="$p", epoch=32767),
        described(),
        versions="3+",
    ),
    *(
        scenario(
            f"a new id with producer {pid} and epoch {epoch}",
            "InitProducerId",
            init(pid=pid, epoch=epoch),
            init(pid=pid, epoch=epoch),
            described(),
            versions="3+",
        )
        for pid, epoch in ((0, 0), (123456789, 3), (5, 32766), (5, 32767), (-1, -1))
    ),
    scenario(
        "what it leaves of a transaction",
        "InitProducerId",
        create("~t"),
        begin(),
        send("lost", quiet=True, v=12),
        init(save="p"),
        described(),
        read(v=11),
        read(v=11, committed=False),
        producers(),
        [end(epoch=each) for each in (0, 1, 2)],
        [send("late", epoch=each, v=12) for each in (0, 1, 2)],
        described(),
    ),
    scenario(
        "what it leaves of a transaction, by its own id and epoch",
        "InitProducerId",
        create("~t"),
        begin(),
        send("lost", quiet=True, v=12),
        init(pid="$p", epoch=0),
        described(),
        read(v=11),
        [init(pid="$p", epoch=each) for each in (0, 1, 2)],
        described(),
        versions="3+",
    ),
]

ADD = [
    *in_each_state("AddPartitionsToTxn", add),
    scenario(
        "partitions",
        "AddPartitionsToTxn",
        create("~t", 3),
        create("~u", 1),
        begin(),
        add(),
        described(),
        add(topics=[("~t", (0, 2)), ("~u", (0,))]),
        add(topics=[("~t", (2,))]),
        described(),
        end(v=4, quiet=True),
        ended(),
        described(),
    ),
    scenario(
        "partitions that are not there",
        "AddPartitionsToTxn",
        create("~t", 2),
        begin(),
        add(topics=[("~t", (0, 5, -1))]),
        add(topics=[("~none", (0,)), ("~t", (1,))]),
        add(topics=[("a b", (0,)), ("", (0,))]),
        described(),
        add(topics=[("~none", (0,))], txn="~y"),
        add(topics=[("~none", (0,))], epoch=4),
    ),
    scenario(
        "nothing, and things twice",
        "AddPartitionsToTxn",
        create("~t", 2),
        begin(),
        add(topics=[]),
        described(),
        add(topics=[("~t", ())]),
        described(),
        add(topics=[("~t", (0, 0))]),
        add(topics=[("~t", (1,)), ("~t", (0,))]),
        described(),
    ),
    scenario(
        "internal topics",
        "AddPartitionsToTxn",
        begin(),
        add(topics=[("__consumer_offsets", (3,)), ("__transaction_state", (1,))]),
        add(topics=[("__cluster_metadata", (0,))]),
        described(),
        end(False, v=4),
        described(),
    ),
    scenario(
        "many at once",
        "AddPartitionsToTxn",
        create("~t", 2),
        begin(),
        begin("~y", save="q"),
        batched(("~x", [("~t", (0,))], 0, False), ("~none", [("~t", (1,))], 0, False)),
        batched(("~x", [("~t", (1,))], 3, False), ("~y", [("~t", (0,))], 0, False), ("", [("~t", (0,))], 0, False)),
        batched(("~y", [("~t", (0, 1))], 0, False), pid="$q"),
        described("~x", "~y"),
        versions="4+",
    ),
    *(
        scenario(
            f"verified, {state}",
            "AddPartitionsToTxn",
            create("~t", 2),
            begin(),
            steps,
            [batched(("~x", [("~t", (0, 1))], epoch, True)) for epoch in (0, 1, 2, -1)],
            batched(("~x", [("~t", (7,)), ("~none", (0,))], 0, True)),
            batched(("~x", [("~t", (0,))], 0, True), pid=123456789),
            batched(("~x", [("~t", (0,))], 0, True), ("~none", [("~t", (0,))], 0, True), ("", [("~t", (0,))], 0, True)),
            batched(("~x", [], 0, True)),
            described(),
            versions="4+",
        )
        for state, steps in STATES.items()
    ),
]

OFFSETS = [
    *in_each_state("AddOffsetsToTxn", add_offsets),
    scenario(
        "groups",
        "AddOffsetsToTxn",
        begin(),
        add_offsets(),
        described(),
        add_offsets(),
        add_offsets(group=""),
        add_offsets(group="~ä"),
        end(False, v=4, quiet=True),
        ended(False),
        described(),
    ),
]

END = [
    *in_each_state("EndTxn", end, "committing, "),
    *in_each_state("EndTxn", lambda **who: end(False, **who), "aborting, "),
    *(
        scenario(
            f"{word} after {word}, by an old client",
            "EndTxn",
            create("~t"),
            begin(),
            add(quiet=True, v=3),
            finished(commit, v=4),
            end(commit),
            described(),
            end(not commit),
            described(),
            end(commit),
            end(commit, epoch=1),
            described(),
        )
        for word, commit in (("a commit", True), ("an abort", False))
    ),
    *(
        scenario(
            f"{word} once more",
            "EndTxn",
            create("~t"),
            begin(),
            send(quiet=True, v=12),
            end(commit),
            ended(commit),
            end(commit),
            described(),
            end(not commit),
            described(),
        )
        for word, commit in (("a commit", True), ("an abort", False))
    ),
    *(
        scenario(
            f"a late {word}, when the next transaction has begun",
            "EndTxn",
            create("~t"),
            begin(),
            transaction("first", commit=commit),
            send("second", epoch=1, quiet=True, v=12),
            end(commit),
            end(not commit),
            described(),
            read(v=11),
            finished(epoch=1),
            read(v=11),
        )
        for word, commit in (("commit", True), ("abort", False))
    ),
    scenario(
        "aborts of nothing, one after the other",
        "EndTxn",
        begin(),
        [each for epoch in (0, 1, 1, 2) for each in (end(False, epoch=epoch), described())],
        [end(False, epoch=each) for each in (0, 3)],
        end(True, epoch=3),
    ),
    scenario(
        "an end by a zombie, after an old client's abort raised no epoch",
        "EndTxn",
        create("~t"),
        begin(),
        transaction("the zombie's first"),
        init(quiet=True, v=4),
        add(epoch=2, quiet=True, v=3),
        send("aborted", epoch=2, quiet=True, v=11),
        [end(False, epoch=2, quiet=True, v=4), ended(False)],
        # KIP-890: to a client of transactions version 2 that is one epoch behind, a completed end is its own, repeated:
        # the zombie is given the epoch of its successor, and its write is taken for that one's.
        [end(commit, epoch=1) for commit in (True, False)],
        described(),
        send("the zombie's second", epoch=2, v=12),
        described(),
        read(v=11, committed=False),
        producers(),
    ),
    scenario(
        "of all that was in it",
        "EndTxn",
        create("~t", 2),
        create("~u"),
        begin(),
        add(topics=[("~t", (0, 1)), ("~u", (0,))], quiet=True, v=3),
        add_offsets(quiet=True, v=3),
        send("a", v=11, quiet=True),
        send("b", v=11, topic="~u", quiet=True),
        pending(v=3, quiet=True),
        end(),
        ended(),
        described(),
        [read(v=11, topic=each) for each in ("~t", "~u")],
        read(v=11, partition=1),
        [producers(topic) for topic in ("~t", "~u")],
    ),
    *(
        scenario(
            f"by an old client of what a new one did, {word}" if old else f"by a new one of what an old did, {word}",
            "EndTxn",
            create("~t"),
            begin(),
            [send("a", v=12, quiet=True)] if old else [add(quiet=True, v=3), send("a", v=11, quiet=True)],
            end(commit),
            ended(commit),
            described(),
            read(v=11),
            [send("b", v=12, epoch=epoch, sequence=sequence) for epoch, sequence in ((0, 1), (1, 1), (1, 0))],
            described(),
        )
        for old in (True, False)
        for word, commit in (("committed", True), ("aborted", False))
    ),
    scenario(
        "too late",
        "EndTxn",
        create("~t"),
        begin(timeout=300),
        send("lost", v=12, quiet=True),
        ended(False),
        described(),
        end(),
        end(False),
        [end(epoch=each) for each in (1, 2)],
        [send("more", v=12, epoch=each) for each in (0, 1, 2)],
        init(save="p", v=4),
        described(),
        read(v=11),
    ),
    scenario(
        "too late, of an old client",
        "EndTxn",
        create("~t"),
        begin(timeout=300),
        add(quiet=True, v=3),
        send("lost", v=11, quiet=True),
        ended(False),
        described(),
        end(),
        end(False),
        [end(epoch=each) for each in (1, 2)],
        add(v=3),
        send("more", sequence=1, v=11),
        init(save="p", v=3),
        init(save="p", v=4),
        described(),
        read(v=11),
        versions="0-4",
    ),
]

SCENARIOS = [*IDS, *ADD, *OFFSETS, *END]

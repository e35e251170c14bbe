"""Offsets that groups commit in transactions: TxnOffsetCommit, their visibility before and after it, and errors."""

from typing import Any

from ..steps import ask, commit, committed, create, gone, join, published, scenario, stable, sync
from ..transaction_steps import add, add_offsets, begin, described, end, ended, finished, pending
from .transactions import in_each_state

ADDED = add_offsets(quiet=True, v=3)
ALL = committed("~g", None, v=7)
STABLE = [
    committed("~g", "~t", v=7, RequireStable=True, patient=False),
    committed("~g", None, v=9, RequireStable=True, patient=False),
]
PENDING = [begin(), ADDED, pending(quiet=True, v=3)]
"""One offset that does not exist yet."""

COMMIT = [
    *(
        scenario(
            f"then {word}",
            "TxnOffsetCommit",
            create("~t"),
            commit(v=7, offset=3, quiet=True),
            begin(),
            ADDED,
            pending(),
            ALL,
            STABLE,
            ended_by,
            ALL,
            STABLE,
            ask("DescribeGroups", v=5, Groups=["~g"]),
        )
        for word, ended_by in (
            ("committed", finished(v=4)),
            ("aborted", finished(False, v=4)),
            ("committed by a new client", finished(v=5)),
            ("left open", []),
        )
    ),
    scenario(
        "without its group having been added",
        "TxnOffsetCommit",
        create("~t"),
        begin(),
        pending(),
        described(),
        STABLE,
        add(quiet=True, v=3),
        pending(),
        described(),
        STABLE,
    ),
    scenario(
        "of another group than was added",
        "TxnOffsetCommit",
        create("~t"),
        begin(),
        ADDED,
        pending(group="~h other"),
        described(),
    ),
    *in_each_state("TxnOffsetCommit", pending),
    scenario(
        "with the group added, by others",
        "TxnOffsetCommit",
        create("~t"),
        begin(),
        ADDED,
        [pending(epoch=each) for each in (1, -1, 32767, 0)],
        pending(pid=123456789),
        pending(txn="~y"),
        pending(txn=""),
        pending(group=""),
        finished(v=4),
        ALL,
    ),
    scenario(
        "what cannot be committed",
        "TxnOffsetCommit",
        create("~t"),
        begin(),
        ADDED,
        pending(topic="~none"),
        pending(partition=7),
        pending(partition=-1),
        pending(topic="a b"),
        pending(topic=""),
        [pending(each) for each in (-1, -2, 2**62)],
        [pending(metadata=each) for each in (None, "", "x" * 200, "x" * 201)],
        pending(Topics=[]),
        pending(Topics=[{"Name": "~t", "Partitions": []}]),
        finished(v=4),
        ALL,
    ),
    scenario(
        "good and bad, and things twice",
        "TxnOffsetCommit",
        create("~t", 2),
        begin(),
        ADDED,
        pending(
            Topics=[
                {
                    "Name": "~t",
                    "Partitions": [
                        {"PartitionIndex": index, "CommittedOffset": offset, "CommittedMetadata": None}
                        for index, offset in ((1, 3), (8, 3), (0, 4), (1, 5))
                    ],
                },
                {"Name": "~none", "Partitions": [{"PartitionIndex": 0, "CommittedOffset": 3}]},
                {"Name": "~t", "Partitions": [{"PartitionIndex": 0, "CommittedOffset": 6}]},
            ]
        ),
        finished(v=4),
        ALL,
    ),
    scenario(
        "leader epochs",
        "TxnOffsetCommit",
        create("~t"),
        begin(),
        ADDED,
        pending(
            Topics=[
                {"Name": "~t", "Partitions": [{"PartitionIndex": 0, "CommittedOffset": 3, "CommittedLeaderEpoch": 4}]}
            ]
        ),
        finished(v=4),
        committed("~g", "~t", v=7),
        versions="2+",
    ),
    scenario(
        "of a member",
        "TxnOffsetCommit",
        create("~t"),
        stable(),
        begin(),
        ADDED,
        pending(MemberId="$m", GenerationId="$m.generation"),
        pending(MemberId="$m", GenerationId=9),
        pending(MemberId="$m"),
        pending(MemberId="nobody", GenerationId=1),
        pending(MemberId="", GenerationId=1),
        pending(MemberId="nobody"),
        pending(8),
        pending(MemberId="$m", GenerationId=-2),
        finished(v=4),
        ALL,
        versions="3+",
    ),
    scenario(
        "of an unknown group's member",
        "TxnOffsetCommit",
        create("~t"),
        begin(),
        ADDED,
        pending(MemberId="nobody", GenerationId=1),
        pending(MemberId="nobody"),
        pending(GenerationId=0),
        versions="3+",
    ),
    scenario(
        "of a static member",
        "TxnOffsetCommit",
        create("~t"),
        join(v=5, quiet=True, GroupInstanceId="~i"),
        sync(v=3, quiet=True, GroupInstanceId="~i"),
        begin(),
        ADDED,
        pending(MemberId="$m", GenerationId=1, GroupInstanceId="~i"),
        pending(MemberId="other", GenerationId=1, GroupInstanceId="~i"),
        pending(MemberId="$m", GenerationId=1, GroupInstanceId="unknown"),
        pending(MemberId="other", GroupInstanceId="~i"),
        versions="3+",
    ),
    scenario(
        "of two transactions",
        "TxnOffsetCommit",
        create("~t"),
        begin(),
        begin("~y", save="q"),
        ADDED,
        add_offsets("~y", pid="$q", quiet=True, v=3),
        pending(5),
        pending(6, "~y", pid="$q"),
        STABLE,
        finished(v=4),
        ALL,
        STABLE,
        finished(False, "~y", pid="$q", v=4),
        ALL,
        STABLE,
    ),
    *(
        scenario(
            f"beside a plain commit, then {word}",
            "TxnOffsetCommit",
            create("~t"),
            begin(),
            ADDED,
            pending(5),
            commit(offset=9, v=7),
            ALL,
            finished(is_commit, v=4),
            ALL,
        )
        for word, is_commit in (("committed", True), ("aborted", False))
    ),
    scenario(
        "again in the same transaction",
        "TxnOffsetCommit",
        create("~t", 2),
        begin(),
        ADDED,
        pending(5),
        pending(6),
        pending(7, partition=1),
        finished(v=4),
        ALL,
    ),
]


def with_pending(api: str, *steps: Any, versions: str = "") -> Any:
    return scenario("with offsets of an open transaction", api, create("~t"), PENDING, *steps, versions=versions)


MEANWHILE = [
    with_pending(
        "OffsetFetch",
        [
            ask(
                "OffsetFetch",
                patient=False,
                GroupId="~g",
                Topics=None if topics is None else [{"Name": "~t", "PartitionIndexes": [0, 1]}],
                Groups=[
                    {
                        "GroupId": "~g",
                        "Topics": None
                        if topics is None
                        else [{"Name": "~t", "TopicId": "$id ~t", "PartitionIndexes": [0, 1]}],
                    }
                ],
                RequireStable=stable_only,
            )
            for topics in (None, ["~t"])
            for stable_only in (True, False)
        ],
        versions="7+",
    ),
    scenario(
        "with offsets of an open transaction, which is all the same",
        "OffsetFetch",
        create("~t"),
        PENDING,
        committed(),
        committed("~g", "~t", 1),
        versions="1-6",
    ),
    with_pending(
        "DeleteGroups",
        ask("DeleteGroups", GroupsNames=["~g"]),
        ask("DescribeGroups", v=5, Groups=["~g"]),
        ask("ListGroups", v=4, mine=True),
        finished(v=4),
        ALL,
        ask("DeleteGroups", GroupsNames=["~g"]),
        ALL,
    ),
    with_pending(
        "OffsetDelete",
        commit(offset=2, v=7),
        ask("OffsetDelete", GroupId="~g", Topics=[{"Name": "~t", "Partitions": [{"PartitionIndex": 0}]}]),
        ALL,
        STABLE,
        finished(v=4),
        ALL,
    ),
    with_pending(
        "DeleteTopics",
        ask("DeleteTopics", v=5, TopicNames=["~t"], TimeoutMs=5000),
        gone("~t"),
        published(),
        committed("~g", None, v=7, RequireStable=True, patient=False),
        end(v=4, quiet=True),
        ended(),
        ALL,
        versions="5",
    ),
]

SCENARIOS = [*COMMIT, *MEANWHILE]

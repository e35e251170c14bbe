"""OffsetCommit, OffsetFetch and OffsetDelete: the offsets of groups."""

from ..play import Step
from ..steps import (
    ask,
    commit,
    commit_body,
    committed,
    create,
    gone,
    join,
    join_body,
    published,
    rebalancing,
    scenario,
    send,
    stable,
    sync,
)

STATIC = {"GroupInstanceId": "~i"}


def all_of(group: str = "~g") -> Step:
    return committed(group, None, v=7)


COMMIT = [
    scenario("without a member", "OffsetCommit", create("~t"), commit(), commit("~t", 9), all_of()),
    scenario(
        "of a member",
        "OffsetCommit",
        create("~t"),
        stable(),
        commit(MemberId="$m", GenerationIdOrMemberEpoch="$m.generation"),
        all_of(),
    ),
    scenario(
        "a stale generation",
        "OffsetCommit",
        create("~t"),
        stable(),
        [commit(MemberId="$m", GenerationIdOrMemberEpoch=n) for n in (0, 2, -1, -2)],
        all_of(),
    ),
    scenario(
        "an unknown member",
        "OffsetCommit",
        create("~t"),
        stable(),
        commit(MemberId="nobody", GenerationIdOrMemberEpoch=1),
        commit(MemberId="", GenerationIdOrMemberEpoch=1),
        commit(),
        all_of(),
    ),
    scenario(
        "an unknown group with a generation",
        "OffsetCommit",
        create("~t"),
        commit(MemberId="nobody", GenerationIdOrMemberEpoch=1),
        commit(MemberId="", GenerationIdOrMemberEpoch=1),
        commit(MemberId="nobody"),
        commit(group=""),
        ask("DeleteGroups", v=1, GroupsNames=[""]),
        alone=True,
    ),
    scenario(
        "before the assignment",
        "OffsetCommit",
        create("~t"),
        join(v=3, quiet=True),
        commit(MemberId="$m", GenerationIdOrMemberEpoch="$m.generation"),
        all_of(),
    ),
    scenario(
        "during a rebalance",
        "OffsetCommit",
        create("~t"),
        stable(),
        send("JoinGroup", on="n", v=3, **join_body()),
        rebalancing(),
        commit(MemberId="$m", GenerationIdOrMemberEpoch="$m.generation"),
        all_of(),
    ),
    scenario(
        "an unknown topic",
        "OffsetCommit",
        create("~t"),
        commit("~none"),
        commit("~none", MemberId="nobody", GenerationIdOrMemberEpoch=4),
        commit("a b"),
        commit(""),
        all_of(),
        versions="2-9",
    ),
    scenario(
        "an unknown topic id",
        "OffsetCommit",
        ask(
            "OffsetCommit",
            **{
                **commit_body(),
                "Topics": [
                    {
                        "TopicId": b"\5" * 16,
                        "Partitions": [{"PartitionIndex": 0, "CommittedOffset": 4, "CommittedMetadata": None}],
                    }
                ],
            },
        ),
        ask(
            "OffsetCommit",
            **{
                **commit_body(),
                "Topics": [{"TopicId": bytes(16), "Partitions": [{"PartitionIndex": 0, "CommittedOffset": 4}]}],
            },
        ),
        versions="10",
    ),
    scenario("an unknown partition", "OffsetCommit", create("~t"), commit(partition=5), commit(partition=-1), all_of()),
    scenario(
        "offsets that are odd",
        "OffsetCommit",
        create("~t"),
        [each for n in (-1, -2, 2**62, 0) for each in (commit("~t", n), all_of())],
    ),
    scenario(
        "metadata",
        "OffsetCommit",
        create("~t"),
        [
            each
            for text in (None, "", "ä", "x" * 200, "x" * 201, "ä" * 101)
            for each in (commit(CommittedMetadata=text), all_of())
        ],
    ),
    scenario(
        "leader epochs",
        "OffsetCommit",
        create("~t"),
        [each for n in (-1, 0, 5, -2) for each in (commit(CommittedLeaderEpoch=n), all_of())],
        versions="6+",
    ),
    scenario(
        "retention",
        "OffsetCommit",
        create("~t"),
        commit(RetentionTimeMs=0),
        commit(RetentionTimeMs=100000),
        all_of(),
        versions="2-4",
    ),
    scenario(
        "good and bad together",
        "OffsetCommit",
        create("~t", 2),
        ask(
            "OffsetCommit",
            GroupId="~g",
            Topics=[
                {
                    "Name": "~t",
                    "TopicId": "$id ~t",
                    "Partitions": [
                        {"PartitionIndex": 1, "CommittedOffset": 3},
                        {"PartitionIndex": 8, "CommittedOffset": 3},
                        {"PartitionIndex": 0, "CommittedOffset": 4, "CommittedMetadata": "y" * 300},
                    ],
                },
                {"Name": "~none", "TopicId": b"\1" * 16, "Partitions": [{"PartitionIndex": 0, "CommittedOffset": 3}]},
            ],
        ),
        all_of(),
    ),
    scenario(
        "a partition twice",
        "OffsetCommit",
        create("~t"),
        ask(
            "OffsetCommit",
            GroupId="~g",
            Topics=[
                {
                    "Name": "~t",
                    "TopicId": "$id ~t",
                    "Partitions": [
                        {"PartitionIndex": 0, "CommittedOffset": 3},
                        {"PartitionIndex": 0, "CommittedOffset": 5},
                    ],
                }
            ],
        ),
        all_of(),
    ),
    scenario(
        "nothing",
        "OffsetCommit",
        create("~t"),
        ask("OffsetCommit", GroupId="~g", Topics=[]),
        ask("DescribeGroups", v=5, Groups=["~g"]),
        ask("OffsetCommit", GroupId="~g", Topics=[{"Name": "~t", "TopicId": "$id ~t", "Partitions": []}]),
        ask("OffsetCommit", GroupId="~g", GenerationIdOrMemberEpoch=5, MemberId="nobody", Topics=[]),
    ),
    scenario(
        "a fenced instance",
        "OffsetCommit",
        create("~t"),
        join(v=5, quiet=True, **STATIC),
        sync(v=3, quiet=True, **STATIC),
        commit(MemberId="$m", GenerationIdOrMemberEpoch="$m.generation", **STATIC),
        commit(MemberId="other", GenerationIdOrMemberEpoch=1, **STATIC),
        commit(MemberId="$m", GenerationIdOrMemberEpoch=1, GroupInstanceId="unknown"),
        commit(MemberId="other", GenerationIdOrMemberEpoch=-1, **STATIC),
        all_of(),
        versions="7+",
    ),
    scenario(
        "after the members left",
        "OffsetCommit",
        create("~t"),
        stable(),
        ask("LeaveGroup", v=2, GroupId="~g", MemberId="$m"),
        commit(),
        commit(MemberId="$m", GenerationIdOrMemberEpoch=1),
        all_of(),
    ),
]

FETCH = [
    scenario("of an unknown group", "OffsetFetch", create("~t"), committed(), committed("")),
    scenario(
        "of a group",
        "OffsetFetch",
        create("~t", 2),
        commit(v=7, quiet=True),
        committed("~g", "~t", 0, 1),
        committed("~g", "~t", 5, -1),
    ),
    scenario(
        "of all topics",
        "OffsetFetch",
        create("~t", 2),
        create("~u"),
        commit(v=7, quiet=True, partition=1),
        commit("~u", 3, v=7, quiet=True),
        committed("~g", None),
        committed("~none", None),
        versions="2+",
    ),
    scenario(
        "of an unknown topic",
        "OffsetFetch",
        create("~t"),
        commit(v=7, quiet=True),
        committed("~g", "~none"),
        committed("~g", "a b"),
        committed("~none", "~none"),
        versions="1-9",
    ),
    scenario(
        "of an unknown topic id",
        "OffsetFetch",
        create("~t"),
        commit(v=7, quiet=True),
        ask(
            "OffsetFetch",
            Groups=[
                {
                    "GroupId": "~g",
                    "Topics": [
                        {"TopicId": b"\5" * 16, "PartitionIndexes": [0]},
                        {"TopicId": "$id ~t", "PartitionIndexes": [0]},
                    ],
                }
            ],
        ),
        ask("OffsetFetch", Groups=[{"GroupId": "~g", "Topics": [{"TopicId": bytes(16), "PartitionIndexes": [0]}]}]),
        versions="10",
    ),
    scenario("a partition twice", "OffsetFetch", create("~t"), commit(v=7, quiet=True), committed("~g", "~t", 0, 0)),
    scenario(
        "no partitions",
        "OffsetFetch",
        create("~t"),
        commit(v=7, quiet=True),
        ask(
            "OffsetFetch",
            GroupId="~g",
            Topics=[{"Name": "~t", "PartitionIndexes": []}],
            Groups=[{"GroupId": "~g", "Topics": [{"Name": "~t", "TopicId": "$id ~t", "PartitionIndexes": []}]}],
        ),
        ask("OffsetFetch", GroupId="~g", Topics=[], Groups=[{"GroupId": "~g", "Topics": []}]),
    ),
    scenario(
        "null topics in the oldest way", "OffsetFetch", ask("OffsetFetch", GroupId="~g", Topics=None), versions="1"
    ),
    scenario(
        "many groups",
        "OffsetFetch",
        create("~t"),
        commit(v=7, quiet=True),
        commit(v=7, quiet=True, group="~h", offset=9),
        ask(
            "OffsetFetch",
            Groups=[
                {"GroupId": name, "Topics": [{"Name": "~t", "TopicId": "$id ~t", "PartitionIndexes": [0]}]}
                for name in ("~h", "~none", "~g", "~h")
            ],
        ),
        ask("OffsetFetch", Groups=[{"GroupId": name, "Topics": None} for name in ("~h", "~none", "~g")]),
        ask("OffsetFetch", Groups=[]),
        versions="8+",
    ),
    scenario(
        "a member's",
        "OffsetFetch",
        create("~t"),
        stable(),
        commit(v=7, quiet=True, MemberId="$m", GenerationIdOrMemberEpoch=1),
        committed(MemberId="$m", MemberEpoch=1),
        committed(MemberId="$m", MemberEpoch=7),
        committed(MemberId="nobody", MemberEpoch=1),
        committed(MemberId="nobody", MemberEpoch=-1),
        committed("~none", MemberId="nobody", MemberEpoch=3),
        versions="9+",
    ),
    scenario(
        "only stable ones",
        "OffsetFetch",
        create("~t"),
        commit(v=7, quiet=True),
        committed(RequireStable=True),
        versions="7+",
    ),
    scenario(
        "of a topic that is gone",
        "OffsetFetch",
        create("~t"),
        commit(v=7, quiet=True),
        ask("DeleteTopics", v=5, TopicNames=["~t"], TimeoutMs=5000),
        gone("~t"),
        published(),
        committed("~g", "~t"),
        versions="2-9",
    ),
    scenario(
        "metadata of null",
        "OffsetFetch",
        create("~t"),
        commit(v=7, quiet=True, CommittedMetadata=None, CommittedLeaderEpoch=3),
        committed(),
    ),
]


def removed(*topics: tuple[str, list[int]], group: str = "~g") -> Step:
    entries = [
        {"Name": name, "Partitions": [{"PartitionIndex": each} for each in partitions]} for name, partitions in topics
    ]
    return ask("OffsetDelete", GroupId=group, Topics=entries)


REMOVE = [
    scenario(
        "of an empty group",
        "OffsetDelete",
        create("~t", 2),
        create("~u"),
        commit(v=7, quiet=True),
        commit("~u", 2, v=7, quiet=True),
        removed(("~t", [0, 1])),
        all_of(),
        removed(("~t", [0])),
        removed(("~u", [0])),
        ask("DescribeGroups", v=5, Groups=["~g"]),
    ),
    scenario(
        "unknown",
        "OffsetDelete",
        create("~t"),
        removed(("~t", [0]), group="~none"),
        removed(("~t", [0]), group=""),
        commit(v=7, quiet=True),
        removed(("~none", [0])),
        removed(("a b", [0])),
        removed(("~t", [9, -1])),
        removed(),
        removed(("~t", [])),
    ),
    scenario(
        "of a group with members",
        "OffsetDelete",
        create("~t"),
        stable(),
        commit(v=7, quiet=True, MemberId="$m", GenerationIdOrMemberEpoch=1),
        removed(("~t", [0])),
        all_of(),
    ),
    scenario(
        "of a group of another type",
        "OffsetDelete",
        create("~t"),
        stable(ProtocolType="connect", Protocols=[{"Name": "d", "Metadata": b"x"}]),
        removed(("~t", [0])),
    ),
    scenario(
        "twice and mixed",
        "OffsetDelete",
        create("~t"),
        commit(v=7, quiet=True),
        removed(("~t", [0, 0, 5]), ("~none", [0]), ("~t", [0])),
        all_of(),
    ),
]

SCENARIOS = [*COMMIT, *FETCH, *REMOVE]

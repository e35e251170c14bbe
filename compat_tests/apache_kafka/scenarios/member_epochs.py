"""Commits and fetches of members of the newer groups, and the responses of the older APIs about these groups."""

from collections.abc import Iterable
from typing import Any

from ..play import Step
from ..steps import ask, commit, committed, create, join, scenario, stable
from ..transaction_steps import add_offsets, begin, finished, pending
from . import streams

NEWER = ("consumer", "share", "streams")
BEATS = {"consumer": "ConsumerGroupHeartbeat", "share": "ShareGroupHeartbeat"}


def member(kind: str, member_id: str = "~m", *, topics: Iterable[str] = ("~t",), **more: Any) -> Step:
    """Joins ``~g``; saves the member epoch as ``$~m.epoch``."""
    if kind == "streams":
        return streams.enter(member_id, streams.subtopology(source=topics), v=0, quiet=True)
    wanted = {"RebalanceTimeoutMs": 60000, "TopicPartitions": []} if kind == "consumer" else {}
    return beat(kind, member_id, 0, SubscribedTopicNames=list(topics), **wanted, **more)


def beat(kind: str, member_id: str = "~m", epoch: Any = None, **more: Any) -> Step:
    if kind == "streams":
        return streams.beat(member_id, epoch, v=0, quiet=True)
    body = {
        "GroupId": "~g",
        "MemberId": member_id,
        "MemberEpoch": f"${member_id}.epoch" if epoch is None else epoch,
        "RebalanceTimeoutMs": -1,
        **more,
    }
    if kind == "share":
        del body["RebalanceTimeoutMs"]
    return ask(BEATS[kind], v=1, quiet=True, save={f"${member_id}.epoch": "MemberEpoch"}, **body)


def leave(kind: str, member_id: str = "~m") -> Step:
    return beat(kind, member_id, -1)


def by(epoch: Any = "$~m.epoch", member_id: str = "~m", **more: Any) -> dict[str, Any]:
    """Returns the member's fields of a commit."""
    return {"MemberId": member_id, "GenerationIdOrMemberEpoch": epoch, **more}


def raised(kind: str = "consumer") -> list[Step]:
    """Saves ``$old`` and ``$~m.epoch``: the epochs of ``~m`` before and after another joined. Its partitions stay."""
    return [
        member(kind),
        ask(
            BEATS[kind],
            v=1,
            quiet=True,
            save={"$old": "MemberEpoch"},
            until=("Assignment.TopicPartitions.0.Partitions.0", 0),
            GroupId="~g",
            MemberId="~m",
            MemberEpoch="$~m.epoch",
            RebalanceTimeoutMs=60000,
            SubscribedTopicNames=["~t"],
            TopicPartitions=[],
        ),
        member(kind, "~n", topics=["~u"]),
        beat(kind),
    ]


SHAPES = [
    by(),
    by(0),
    by(99),
    by(-1),
    by(-2),
    by(1, "nobody"),
    by(1, ""),
    by(-1, "nobody"),
    by(-1, ""),
    by("$~m.epoch", "~m", GroupInstanceId="~i"),
]

COMMIT = [
    *(
        scenario(f"in a {kind} group", "OffsetCommit", create("~t"), member(kind), [commit(**each) for each in SHAPES])
        for kind in NEWER
    ),
    *(
        scenario(
            f"in a {kind} group that is empty",
            "OffsetCommit",
            create("~t"),
            member(kind),
            leave(kind),
            [commit(**each) for each in (by(1), by(-1), by(0), by(-1, ""), by(1, "nobody"))],
            committed("~g", None, v=8),
        )
        for kind in NEWER
    ),
    scenario(
        "of a static member of a consumer group",
        "OffsetCommit",
        create("~t"),
        member("consumer", InstanceId="~i"),
        commit(**by(GroupInstanceId="~i")),
        commit(**by(GroupInstanceId="other")),
        commit(**by()),
        beat("consumer", "~m", -2, InstanceId="~i"),
        commit(**by(GroupInstanceId="~i")),
        commit(**by(-2, GroupInstanceId="~i")),
        member("consumer", "~n", InstanceId="~i"),
        commit(**by(GroupInstanceId="~i")),
        commit(**by("$~n.epoch", "~n", GroupInstanceId="~i")),
    ),
    scenario(
        "in the epoch before, of a partition that stayed",
        "OffsetCommit",
        create("~t"),
        create("~u"),
        raised(),
        commit(**by("$old")),
        commit("~u", **by("$old")),
        commit(**by()),
        commit("~u", **by()),
        commit(partition=1, **by("$old")),
    ),
    scenario(
        "with a member's epoch in a classic group",
        "OffsetCommit",
        create("~t"),
        stable(),
        [commit(**by(each, "$m")) for each in (0, 1, 2, -1)],
    ),
]

FETCH = [
    *(
        scenario(
            f"of a {kind} group",
            "OffsetFetch",
            create("~t"),
            member(kind),
            commit(v=9, **by()),
            committed(),
            committed("~g", None),
            [
                committed(MemberId=member_id, MemberEpoch=epoch)
                for member_id, epoch in (
                    ("~m", "$~m.epoch"),
                    ("~m", 0),
                    ("~m", 99),
                    ("~m", -1),
                    ("nobody", 1),
                    ("nobody", -1),
                    ("", -1),
                    ("", 1),
                    (None, 1),
                )
            ],
            committed("~g", None, MemberId="~m", MemberEpoch=99),
            leave(kind),
            committed(MemberId="~m", MemberEpoch=1),
            committed(MemberId=None, MemberEpoch=-1),
            committed(MemberId=None, MemberEpoch=1),
            versions="8-10",
        )
        for kind in NEWER
    ),
    scenario(
        "by a member of a classic group, or of none",
        "OffsetFetch",
        create("~t"),
        committed(MemberId="~m", MemberEpoch=1),
        stable(),
        [
            committed(MemberId=member_id, MemberEpoch=epoch)
            for member_id, epoch in (("$m", 1), ("$m", 5), ("nobody", -1), ("nobody", 3), (None, 3))
        ],
        versions="9-10",
    ),
    scenario(
        "in an epoch before",
        "OffsetFetch",
        create("~t"),
        create("~u"),
        raised(),
        committed(MemberId="~m", MemberEpoch="$old"),
        committed(MemberId="~m", MemberEpoch="$~m.epoch"),
        versions="9-10",
    ),
]

IN_TRANSACTIONS = [
    *(
        scenario(
            f"by a member of a {kind} group",
            "TxnOffsetCommit",
            create("~t"),
            member(kind),
            begin(),
            add_offsets(quiet=True, v=3),
            [pending(GenerationId=epoch, MemberId=member_id) for member_id, epoch in MEMBERS],
            pending(GenerationId="$~m.epoch", MemberId="~m", GroupInstanceId="~i"),
            finished(v=3),
            versions="3-5",
        )
        for MEMBERS in [[("~m", "$~m.epoch"), ("~m", 0), ("~m", 99), ("~m", -1), ("nobody", 1), ("", 1), ("", -1)]]
        for kind in NEWER
    ),
    scenario(
        "in the epoch before",
        "TxnOffsetCommit",
        create("~t"),
        create("~u"),
        raised(),
        begin(),
        add_offsets(quiet=True, v=3),
        pending(GenerationId="$old", MemberId="~m"),
        pending(GenerationId="$~m.epoch", MemberId="~m"),
        versions="3-5",
    ),
    *(
        scenario(
            f"by older producers into a {kind} group",
            "TxnOffsetCommit",
            create("~t"),
            member(kind),
            begin(),
            add_offsets(quiet=True, v=2),
            pending(),
            leave(kind),
            pending(),
            versions="0-2",
        )
        for kind in NEWER
    ),
]


def deleted_offsets(*topics: str) -> Step:
    entries = [{"Name": topic, "Partitions": [{"PartitionIndex": 0}]} for topic in topics]
    return ask("OffsetDelete", v=0, GroupId="~g", Topics=entries)


OLDER = [
    *(
        scenario(
            f"of a {kind} group",
            "OffsetDelete",
            create("~t"),
            create("~u"),
            member(kind),
            commit(v=9, **by()),
            commit("~u", v=9, **by()),
            deleted_offsets("~t", "~u", "~none"),
            committed("~g", None, v=8),
            leave(kind),
            deleted_offsets("~t", "~u"),
            committed("~g", None, v=8),
        )
        for kind in NEWER
    ),
    *(
        scenario(f"a {kind} group", "DescribeGroups", create("~t"), member(kind), ask("DescribeGroups", Groups=["~g"]))
        for kind in NEWER
    ),
    *(
        scenario(
            f"a {kind} group",
            "DeleteGroups",
            create("~t"),
            member(kind),
            commit(v=9, quiet=True, **by()),
            ask("DeleteGroups", GroupsNames=["~g"]),
            leave(kind),
            ask("DeleteGroups", GroupsNames=["~g"]),
            ask("ListGroups", v=5, mine=True, StatesFilter=[], TypesFilter=[]),
            committed("~g", None, v=8),
            ask("DeleteGroups", GroupsNames=["~g"]),
        )
        for kind in NEWER
    ),
    *(
        scenario(
            f"a {kind} group",
            "ListGroups",
            create("~t"),
            member(kind),
            [
                ask("ListGroups", mine=True, StatesFilter=states, TypesFilter=types)
                for states, types in (
                    ([], []),
                    ([], ["consumer"]),
                    ([], ["Share"]),
                    ([], ["classic"]),
                    ([], ["nothing"]),
                    (["Stable"], []),
                    (["stable", "Reconciling", "assigning"], []),
                    (["Empty"], []),
                    (["Empty"], ["share", "consumer"]),
                )
            ],
            leave(kind),
            [
                ask("ListGroups", mine=True, StatesFilter=states, TypesFilter=[])
                for states in ([], ["Empty"], ["Stable"], ["Dead"])
            ],
            versions="0,4,5",
        )
        for kind in NEWER
    ),
    *(
        scenario(
            f"in a {kind} group",
            "Heartbeat",
            create("~t"),
            member(kind),
            ask("Heartbeat", GroupId="~g", GenerationId="$~m.epoch", MemberId="~m"),
            ask("Heartbeat", GroupId="~g", GenerationId=99, MemberId="~m"),
            ask("Heartbeat", GroupId="~g", GenerationId=1, MemberId="nobody"),
            versions="4",
        )
        for kind in NEWER
    ),
    *(
        scenario(
            f"in a {kind} group",
            "LeaveGroup",
            create("~t"),
            member(kind),
            ask("LeaveGroup", GroupId="~g", MemberId="~m", Members=[{"MemberId": "~m"}, {"MemberId": "nobody"}]),
            ask("ListGroups", v=5, mine=True, StatesFilter=["Stable", "Empty"], TypesFilter=[]),
            versions="2,5",
        )
        for kind in NEWER
    ),
    scenario("into a share group", "JoinGroup", create("~t"), member("share"), join(), join("nobody"), versions="4,9"),
]

SCENARIOS = [*COMMIT, *FETCH, *IN_TRANSACTIONS, *OLDER]

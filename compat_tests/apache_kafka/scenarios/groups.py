"""The classic group protocol: JoinGroup, SyncGroup, Heartbeat, LeaveGroup, and how groups are described."""

from typing import Any

from ..play import Step
from ..steps import (
    CHANGED,
    SUBSCRIPTION,
    ask,
    becomes,
    commit,
    create,
    hang_up,
    join,
    join_body,
    pause,
    rebalancing,
    receive,
    scenario,
    send,
    stable,
    sync,
    sync_body,
)


def beat(
    member: Any = "$m",
    generation: Any = None,
    *,
    group: str = "~g",
    v: int | None = None,
    on: str = "main",
    **more: Any,
) -> Step:
    wanted = f"{member}.generation" if generation is None else generation
    return ask("Heartbeat", v=v, on=on, GroupId=group, GenerationId=wanted, MemberId=member, **more)


def leave(*members: str | dict[str, Any], group: str = "~g", v: int | None = None, on: str = "main") -> Step:
    states = [each if isinstance(each, dict) else {"MemberId": each} for each in members]
    first = states[0]["MemberId"] if states else ""
    return ask("LeaveGroup", v=v, on=on, GroupId=group, MemberId=first, Members=states)


def shown(*groups: str, v: int | None = None, **more: Any) -> Step:
    return ask("DescribeGroups", v=v, Groups=list(groups or ("~g",)), **more)


def protocols(*named: tuple[str, bytes]) -> list[dict[str, Any]]:
    return [{"Name": name, "Metadata": metadata} for name, metadata in named]


def two(v: int = 3, **more: Any) -> list[Step]:
    """Makes a stable group of ``$m`` (its leader) and ``$n``, each on its own connection."""
    return [
        *stable(),
        send("JoinGroup", v=v, on="n", **join_body(**more)),
        rebalancing(),
        join("$m", v=v, quiet=True, **more),
        receive(on="n", save={"$n": "MemberId", "$n.generation": "GenerationId"}, quiet=True),
        send("SyncGroup", v=v, on="n", **sync_body(member="$n", Assignments=[])),
        sync("$m", "$n", v=v, quiet=True),
        receive(on="n", quiet=True),
    ]


STATIC = {"GroupInstanceId": "~i"}

FIRST_JOIN = [
    scenario("the first member", "JoinGroup", join(), versions="0-3"),
    scenario("the first member, told its id", "JoinGroup", join(), join("$m"), join("$m"), versions="4+"),
    scenario("the first member, static", "JoinGroup", join(**STATIC), join("$m", **STATIC), versions="5+"),
    scenario("a member id nobody gave", "JoinGroup", join("nobody"), join("nobody", **STATIC)),
    scenario("a reason", "JoinGroup", join(Reason="because"), join("$m", Reason=None), versions="8+"),
    scenario(
        "session time-outs out of range", "JoinGroup", [join(SessionTimeoutMs=ms) for ms in (499, 1800001, 0, -1)]
    ),
    scenario(
        "rebalance time-outs that are odd",
        "JoinGroup",
        [join(RebalanceTimeoutMs=ms, GroupId=f"~g{ms}") for ms in (0, -1)],
        versions="1+",
    ),
    scenario("no protocols", "JoinGroup", join(Protocols=[])),
    scenario("no protocols, with an id", "JoinGroup", join("somebody", Protocols=[])),
    scenario("an empty protocol type", "JoinGroup", join(ProtocolType="")),
    scenario("an empty group", "JoinGroup", join(GroupId="")),
    scenario(
        "another protocol type",
        "JoinGroup",
        join(GroupId="~connect", ProtocolType="connect", Protocols=protocols(("default", b"\0\1\2"))),
        versions="0-3",
    ),
    scenario("several protocols", "JoinGroup", join(Protocols=protocols(("range", b"r"), ("roundrobin", b"")))),
    scenario("an empty instance id", "JoinGroup", join(GroupInstanceId=""), versions="5+"),
    scenario(
        "an illegal instance id",
        "JoinGroup",
        join(GroupInstanceId="a b"),
        join(GroupId="~long", GroupInstanceId="a" * 250),
        versions="5+",
    ),
]

JOINED = [
    scenario(
        "a second member",
        "JoinGroup",
        stable(),
        send("JoinGroup", on="n", v=3, **join_body()),
        rebalancing(),
        beat(v=3),
        shown(v=3),
        join("$m"),
        receive(on="n", save={"$n": "MemberId", "$n.generation": "GenerationId"}),
        send("SyncGroup", on="n", v=3, **sync_body(member="$n", Assignments=[])),
        pause(0.02),
        shown(v=3),
        sync("$m", "$n", v=3),
        receive(on="n"),
        beat("$m", v=3),
        beat("$n", v=3),
        shown(v=3),
    ),
    scenario("the leader joins again", "JoinGroup", stable(), join("$m"), shown(v=4)),
    scenario(
        "the leader joins again with other protocols",
        "JoinGroup",
        stable(),
        join("$m", Protocols=protocols(("range", b"new"))),
        shown(v=4),
        sync(v=3),
        shown(v=4),
    ),
    scenario("a follower joins again", "JoinGroup", two(), join("$n", on="n"), beat(v=3), shown(v=4)),
    scenario(
        "a follower joins again with other protocols",
        "JoinGroup",
        two(),
        send("JoinGroup", on="n", **join_body(member="$n", Protocols=protocols(("range", b"new")))),
        rebalancing(),
        beat(v=3),
        join("$m"),
        receive(on="n"),
        shown(v=4),
    ),
    scenario(
        "protocols that do not fit",
        "JoinGroup",
        stable(),
        join("", on="n", Protocols=protocols(("other", b""))),
        join("", on="n", ProtocolType="connect"),
        join("$m", ProtocolType="connect"),
        shown(v=4),
    ),
    scenario(
        "a protocol that all know",
        "JoinGroup",
        stable(Protocols=protocols(("a", b"1"), ("b", b"2"))),
        send("JoinGroup", on="n", v=3, **join_body(Protocols=protocols(("c", b""), ("b", b"3")))),
        rebalancing(),
        join("$m", Protocols=protocols(("a", b"1"), ("b", b"2"))),
        receive(on="n"),
    ),
    scenario(
        "a vote",
        "JoinGroup",
        stable(Protocols=protocols(("a", b"1"), ("b", b"2"))),
        send("JoinGroup", on="n", v=3, **join_body(Protocols=protocols(("b", b"3"), ("a", b"4")))),
        rebalancing(),
        join("$m", Protocols=protocols(("b", b"1"), ("a", b"2"))),
        receive(on="n"),
    ),
    scenario("more members than may be", "JoinGroup", two(), join(on="third", save="o"), versions="0-3"),
    scenario(
        "more members than may be, told their ids",
        "JoinGroup",
        two(),
        join(on="third", save="o"),
        join("$o", on="third", save="p"),
        join(on="third", **STATIC),
        beat(v=3),
        versions="4+",
    ),
    scenario("a wrong id in a group with members", "JoinGroup", stable(), join("nobody"), beat(v=3)),
    scenario(
        "a rebalance that one misses",
        "JoinGroup",
        stable(RebalanceTimeoutMs=400, SessionTimeoutMs=10000),
        send("JoinGroup", on="n", v=3, **join_body(RebalanceTimeoutMs=400)),
        receive(on="n", save={"$n": "MemberId", "$n.generation": "GenerationId"}),
        beat(v=3),
        shown(v=4),
        versions="3-3",
    ),
    scenario(
        "a session that runs out",
        "JoinGroup",
        join(v=3, quiet=True, SessionTimeoutMs=1000),
        sync(v=3, quiet=True),
        becomes("Empty"),
        beat(v=3),
        shown(v=4),
        join("$m"),
        versions="3-4",
    ),
    scenario(
        "a connection that goes away while joining",
        "JoinGroup",
        stable(),
        send("JoinGroup", on="n", v=3, **join_body()),
        rebalancing(),
        hang_up("n"),
        beat(v=3),
        versions="3-3",
    ),
]

STATIC_MEMBERS = [
    scenario(
        "a static member comes back",
        "JoinGroup",
        join(v=5, quiet=True, **STATIC),
        sync(v=3, quiet=True, **STATIC),
        join("", save="again", **STATIC),
        beat("$m", v=3, **STATIC),
        beat("$again", v=3, **STATIC),
        beat("$again", v=3),
        shown(v=4),
        sync("$again", v=5, **STATIC),
        versions="5+",
    ),
    scenario(
        "a static member comes back with other protocols",
        "JoinGroup",
        join(v=5, quiet=True, **STATIC),
        sync(v=3, quiet=True, **STATIC),
        join("", save="again", Protocols=protocols(("range", b"new")), **STATIC),
        shown(v=4),
        versions="5+",
    ),
    scenario(
        "a static member with a wrong id",
        "JoinGroup",
        join(v=5, quiet=True, **STATIC),
        sync(v=3, quiet=True, **STATIC),
        join("nobody", **STATIC),
        join("$m", GroupInstanceId="~other"),
        join("$m", **STATIC),
        versions="5+",
    ),
    scenario(
        "a static follower comes back",
        "JoinGroup",
        stable(),
        send("JoinGroup", on="n", v=5, **join_body(**STATIC)),
        rebalancing(),
        join("$m", v=3, quiet=True),
        receive(on="n", save={"$n": "MemberId", "$n.generation": "GenerationId"}, quiet=True),
        send("SyncGroup", on="n", v=3, **sync_body(member="$n", Assignments=[], **STATIC)),
        sync("$m", "$n", v=3, quiet=True),
        receive(on="n", quiet=True),
        join("", on="n2", save="again", **STATIC),
        beat("$m", v=3),
        sync("$again", v=3, Assignments=[], **STATIC),
        versions="5+",
    ),
]

NEVER_ANSWERED = [
    scenario(
        "a protocol twice",
        "JoinGroup",
        ask("JoinGroup", within=1.0, on="b", **join_body(Protocols=protocols(("range", b"1"), ("range", b"2")))),
    ),
]

LIVES = [
    scenario(
        "an emptied group goes on",
        "JoinGroup",
        stable(),
        leave("$m", v=2),
        join(v=3, save="again", ProtocolType="connect", Protocols=protocols(("other", b"x"))),
        sync("$again", v=3),
        shown(v=4),
    ),
    scenario(
        "the leader leaves while another waits for him",
        "SyncGroup",
        stable(),
        send("JoinGroup", on="n", v=3, **join_body()),
        rebalancing(),
        join("$m", v=3, quiet=True),
        receive(on="n", save={"$n": "MemberId", "$n.generation": "GenerationId"}, quiet=True),
        send("SyncGroup", on="n", **sync_body(member="$n", Assignments=[])),
        pause(0.05),
        leave("$m", v=2),
        receive(on="n"),
        beat("$n", v=3),
        join("$n", v=3, on="n"),
        shown(v=4),
    ),
    scenario(
        "a join while an assignment is waited for",
        "JoinGroup",
        join(v=3, quiet=True),
        send("JoinGroup", on="n", v=3, **join_body()),
        rebalancing(),
        beat(v=3),
        sync(v=3),
        join("$m"),
        receive(on="n"),
        shown(v=4),
    ),
    scenario(
        "a join again while an assignment is waited for",
        "JoinGroup",
        join(v=3, quiet=True),
        join("$m"),
        join("$m", Protocols=protocols(("range", CHANGED))),
        sync("$m", v=3, generation=2),
        shown(v=4),
    ),
    scenario(
        "a pending member",
        "JoinGroup",
        join(save="p"),
        beat("$p", 0, v=3),
        beat("$p", -1, v=3),
        shown(v=5),
        ask("ListGroups", v=4, mine=True),
        sync("$p", v=3, generation=0),
        ask("DeleteGroups", v=1, GroupsNames=["~g"]),
        versions="4+",
    ),
    scenario(
        "a pending member in another group",
        "JoinGroup",
        join(save="p"),
        join("$p", GroupId="~other"),
        join("$p"),
        versions="4+",
    ),
    scenario(
        "a follower's session runs out",
        "Heartbeat",
        stable(),
        send("JoinGroup", on="n", v=3, **join_body(SessionTimeoutMs=1000)),
        rebalancing(),
        join("$m", v=3, quiet=True),
        receive(on="n", save={"$n": "MemberId", "$n.generation": "GenerationId"}, quiet=True),
        sync("$m", "$n", v=3, quiet=True),
        rebalancing(),
        beat(),
        beat("$n"),
        join("$m", v=3),
        shown(v=4),
        versions="3-4",
    ),
    scenario(
        "an assignment that never comes",
        "SyncGroup",
        stable(RebalanceTimeoutMs=500),
        send("JoinGroup", on="n", v=3, **join_body(RebalanceTimeoutMs=500)),
        rebalancing(),
        join("$m", v=3, quiet=True, RebalanceTimeoutMs=500),
        receive(on="n", save={"$n": "MemberId", "$n.generation": "GenerationId"}, quiet=True),
        ask("SyncGroup", on="n", **sync_body(member="$n", Assignments=[])),
        shown(v=4),
        versions="4-5",
    ),
    scenario(
        "a member that missed the rebalance comes back",
        "JoinGroup",
        stable(RebalanceTimeoutMs=400),
        send("JoinGroup", on="n", v=3, **join_body(RebalanceTimeoutMs=400)),
        receive(on="n", save={"$n": "MemberId", "$n.generation": "GenerationId"}, quiet=True),
        beat(v=3),
        ask("LeaveGroup", v=2, GroupId="~g", MemberId="$m"),
        join("$m", RebalanceTimeoutMs=400),
        versions="3-5",
    ),
    scenario(
        "two static members, one twice",
        "JoinGroup",
        stable(),
        send("JoinGroup", on="n", v=5, **join_body(**STATIC)),
        rebalancing(),
        join("$m", v=3, quiet=True),
        receive(on="n", save={"$n": "MemberId", "$n.generation": "GenerationId"}, quiet=True),
        send("SyncGroup", on="n", v=5, **sync_body(member="$n", Assignments=[], **STATIC)),
        sync("$m", "$n", v=3, quiet=True),
        receive(on="n", quiet=True),
        leave({"MemberId": "$n", "GroupInstanceId": "unknown"}, {"MemberId": "", **STATIC}, v=3),
        beat(v=3),
        shown(v=4),
        versions="5-5",
    ),
    scenario(
        "empty names of members",
        "LeaveGroup",
        stable(),
        leave({"MemberId": "", "GroupInstanceId": None}),
        leave({"MemberId": "$m", "GroupInstanceId": "~i"}),
        shown(v=4),
        versions="3+",
    ),
    scenario(
        "client ids that are odd",
        "JoinGroup",
        ask("JoinGroup", client_id=None, save={"$m": "MemberId"}, **join_body(GroupId="~null")),
        ask("JoinGroup", client_id="", save={"$n": "MemberId"}, **join_body(GroupId="~empty")),
        ask("DescribeGroups", v=5, Groups=["~null", "~empty"]),
        versions="0-3",
    ),
]

SYNC = [
    scenario("the leader's", "SyncGroup", join(v=3, quiet=True), sync(), sync(), shown(v=4)),
    scenario("without assignments", "SyncGroup", join(v=3, quiet=True), sync(Assignments=[]), shown(v=4)),
    scenario(
        "for strangers",
        "SyncGroup",
        join(v=3, quiet=True),
        sync(Assignments=[{"MemberId": "stranger", "Assignment": b"x"}]),
        shown(v=4),
    ),
    scenario("a stale generation", "SyncGroup", stable(), [sync(generation=n) for n in (0, 2, -1)]),
    scenario("an unknown member", "SyncGroup", stable(), sync("nobody", generation=1), sync("", generation=1)),
    scenario(
        "an unknown group",
        "SyncGroup",
        sync("nobody", generation=1),
        ask("SyncGroup", **sync_body("", "nobody", generation=1)),
    ),
    scenario(
        "while others join",
        "SyncGroup",
        stable(),
        send("JoinGroup", on="n", v=3, **join_body()),
        rebalancing(),
        sync(),
    ),
    scenario(
        "other protocols",
        "SyncGroup",
        stable(),
        sync(ProtocolType="connect"),
        sync(ProtocolName="other"),
        sync(ProtocolType=None),
        sync(ProtocolName=None),
        sync(ProtocolName=None, generation=9),
        sync("nobody", generation=9, ProtocolType=None),
        versions="5",
    ),
    scenario(
        "a fenced instance",
        "SyncGroup",
        join(v=5, quiet=True, **STATIC),
        sync(**STATIC),
        sync("other", generation=1, **STATIC),
        sync(GroupInstanceId="unknown"),
        versions="3+",
    ),
    scenario(
        "two members",
        "SyncGroup",
        stable(),
        send("JoinGroup", on="n", v=3, **join_body()),
        rebalancing(),
        join("$m", v=3, quiet=True),
        receive(on="n", save={"$n": "MemberId", "$n.generation": "GenerationId"}, quiet=True),
        send("SyncGroup", on="n", **sync_body(member="$n", Assignments=[])),
        pause(0.05),
        sync("$m", "$n"),
        receive(on="n"),
        sync("$n", on="n", Assignments=[]),
    ),
]

HEARTBEAT = [
    scenario("in a stable group", "Heartbeat", stable(), beat(), beat()),
    scenario("before the assignment", "Heartbeat", join(v=3, quiet=True), beat()),
    scenario("a stale generation", "Heartbeat", stable(), [beat(generation=n) for n in (0, 2, -1)]),
    scenario("an unknown member", "Heartbeat", stable(), beat("nobody", 1), beat("", 1)),
    scenario("an unknown group", "Heartbeat", beat("nobody", 1), beat("nobody", 1, group="")),
    scenario(
        "during a rebalance",
        "Heartbeat",
        stable(),
        send("JoinGroup", on="n", v=3, **join_body()),
        rebalancing(),
        beat(),
        beat(generation=9),
    ),
    scenario(
        "a fenced instance",
        "Heartbeat",
        join(v=5, quiet=True, **STATIC),
        sync(v=3, quiet=True, **STATIC),
        beat(**STATIC),
        beat("other", 1, **STATIC),
        beat(GroupInstanceId="unknown"),
        versions="3+",
    ),
    scenario(
        "in a group without members",
        "Heartbeat",
        create("~t"),
        commit(quiet=True, v=7, GenerationIdOrMemberEpoch=-1),
        beat("nobody", 1),
        beat("nobody", -1),
    ),
]

LEAVE = [
    scenario("the only member", "LeaveGroup", stable(), leave("$m"), shown(v=4), beat(v=3), leave("$m")),
    scenario("an unknown member", "LeaveGroup", stable(), leave("nobody"), leave(""), shown(v=4)),
    scenario("an unknown group", "LeaveGroup", leave("nobody"), leave("nobody", group="")),
    scenario("several", "LeaveGroup", two(), leave("$n", "nobody", "$m", "$n"), shown(v=4), versions="3+"),
    scenario("nobody", "LeaveGroup", stable(), ask("LeaveGroup", GroupId="~g", Members=[]), versions="3+"),
    scenario(
        "a static member",
        "LeaveGroup",
        join(v=5, quiet=True, **STATIC),
        sync(v=3, quiet=True, **STATIC),
        leave({"MemberId": "other", **STATIC}),
        leave({"MemberId": "", "GroupInstanceId": "unknown"}),
        leave({"MemberId": "", **STATIC}),
        shown(v=4),
        leave({"MemberId": "", **STATIC}),
        versions="3+",
    ),
    scenario(
        "with a reason",
        "LeaveGroup",
        stable(),
        ask("LeaveGroup", GroupId="~g", Members=[{"MemberId": "$m", "Reason": "done"}]),
        versions="5",
    ),
    scenario(
        "one of two", "LeaveGroup", two(), leave("$n", on="n"), beat(v=3), shown(v=4), join("$m", v=3), shown(v=4)
    ),
    scenario(
        "a pending member",
        "LeaveGroup",
        ask("JoinGroup", v=4, save={"$m": "MemberId"}, **join_body()),
        leave("$m"),
        leave("$m"),
        join("$m", v=4),
    ),
]

DESCRIBE = [
    scenario("stable", "DescribeGroups", stable(), shown(), shown(IncludeAuthorizedOperations=True)),
    scenario(
        "static members", "DescribeGroups", join(v=5, quiet=True, **STATIC), sync(v=3, quiet=True, **STATIC), shown()
    ),
    scenario("waiting for the assignment", "DescribeGroups", join(v=3, quiet=True), shown()),
    scenario(
        "unknown, empty, twice",
        "DescribeGroups",
        shown("~none"),
        shown(""),
        shown("~none", "~none"),
        ask("DescribeGroups", Groups=[]),
    ),
    scenario("emptied", "DescribeGroups", stable(), leave("$m", v=2), shown()),
    scenario(
        "only offsets", "DescribeGroups", create("~t"), commit(quiet=True, v=7, GenerationIdOrMemberEpoch=-1), shown()
    ),
    scenario(
        "of another type",
        "DescribeGroups",
        join(v=3, quiet=True, ProtocolType="connect", Protocols=protocols(("default", b"x"))),
        sync(v=3, quiet=True, ProtocolType="connect"),
        shown(),
    ),
    scenario("several", "DescribeGroups", stable(), shown("~none", "~g", "")),
]


def listed(**more: Any) -> Step:
    return ask("ListGroups", mine=True, **more)


LIST = [
    scenario("all", "ListGroups", create("~t"), stable(), commit(quiet=True, v=7, group="~simple"), listed()),
    scenario(
        "by state",
        "ListGroups",
        create("~t"),
        stable(),
        commit(quiet=True, v=7, group="~simple"),
        [
            listed(StatesFilter=states)
            for states in (
                ["Stable"],
                ["stable"],
                ["Empty"],
                ["EMPTY", "Stable"],
                ["Dead"],
                ["PreparingRebalance", "CompletingRebalance"],
                ["Unknown"],
                ["no such"],
                [""],
            )
        ],
        versions="4+",
    ),
    scenario(
        "by type",
        "ListGroups",
        create("~t"),
        stable(),
        commit(quiet=True, v=7, group="~simple"),
        [
            listed(TypesFilter=types)
            for types in (
                ["classic"],
                ["Classic"],
                ["consumer"],
                ["share"],
                ["streams"],
                ["unknown"],
                ["no such"],
                [""],
                ["classic", "consumer"],
            )
        ],
        versions="5",
    ),
    scenario(
        "by both",
        "ListGroups",
        stable(),
        listed(TypesFilter=["classic"], StatesFilter=["Stable"]),
        listed(TypesFilter=["classic"], StatesFilter=["Empty"]),
        versions="5",
    ),
    scenario("not stable", "ListGroups", join(v=3, quiet=True), listed(), leave("$m", v=2), listed()),
]


def removed(*groups: str) -> Step:
    return ask("DeleteGroups", GroupsNames=list(groups))


REMOVE = [
    scenario(
        "only offsets",
        "DeleteGroups",
        create("~t"),
        commit(quiet=True, v=7),
        removed("~g"),
        ask("OffsetFetch", v=5, GroupId="~g", Topics=None),
        shown(v=5),
        removed("~g"),
    ),
    scenario("with members", "DeleteGroups", stable(), removed("~g"), leave("$m", v=2), removed("~g"), shown(v=5)),
    scenario(
        "unknown, empty, twice, none",
        "DeleteGroups",
        removed("~none"),
        removed(""),
        removed("~none", "~none"),
        removed(),
    ),
    scenario(
        "several",
        "DeleteGroups",
        create("~t"),
        stable(),
        commit(quiet=True, v=7, group="~simple"),
        removed("~simple", "~g", "~none"),
    ),
]

_ = (SUBSCRIPTION,)

SCENARIOS = [
    *FIRST_JOIN,
    *JOINED,
    *STATIC_MEMBERS,
    *NEVER_ANSWERED,
    *LIVES,
    *SYNC,
    *HEARTBEAT,
    *LEAVE,
    *DESCRIBE,
    *LIST,
    *REMOVE,
]

"""How classic groups are described, listed and deleted."""

from typing import Any

from ..play import Step
from ..steps import ask, commit, create, join, scenario, stable, sync
from .groups import STATIC, leave, protocols, shown

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

SCENARIOS = [*DESCRIBE, *LIST, *REMOVE]

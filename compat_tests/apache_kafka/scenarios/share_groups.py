"""Share groups at the coordinator: heartbeats, descriptions, and start offsets (KIP-932)."""

from collections.abc import Iterable
from typing import Any

from ..play import Step
from ..steps import ask, commit, committed, create, join, pause, published, scenario, seed, stable

BEAT, SHOWN = "ShareGroupHeartbeat", "ShareGroupDescribe"
WHERE, ALTER, FORGET = "DescribeShareGroupOffsets", "AlterShareGroupOffsets", "DeleteShareGroupOffsets"
GROUP_RESOURCE = 32

HEARD = published()
"""Apache Kafka's group coordinator gets topics and configs a moment later."""


def beat(member: str = "~m", epoch: Any = None, group: str = "~g", **more: Any) -> Step:
    """Sends a heartbeat with the epoch of the last response to this member, and saves the new epoch."""
    found = f"${member}.epoch" if epoch is None else epoch
    options = {name: more.pop(name) for name in ("until", "quiet", "on") if name in more}
    return ask(
        BEAT,
        v=1,
        save={f"${member}.epoch": "MemberEpoch"},
        **options,
        **{"GroupId": group, "MemberId": member, "MemberEpoch": found, **more},
    )


def refused(member: str = "~m", epoch: Any = 0, group: str = "~g", **more: Any) -> Step:
    """Sends a heartbeat whose response has no usable epoch."""
    return ask(BEAT, v=1, **{"GroupId": group, "MemberId": member, "MemberEpoch": epoch, **more})


def enter(*topics: str, member: str = "~m", group: str = "~g", **more: Any) -> Step:
    return beat(member, 0, group, SubscribedTopicNames=list(topics or ("~t",)), **more)


def leave(member: str = "~m", group: str = "~g") -> Step:
    return refused(member, -1, group)


def shown(*groups: str, **more: Any) -> Step:
    return ask(SHOWN, v=1, **{"GroupIds": list(groups or ("~g",)), "IncludeAuthorizedOperations": False, **more})


def listed() -> Step:
    return ask("ListGroups", v=5, mine=True, StatesFilter=[], TypesFilter=[])


def where(
    *partitions: int, topic: str = "~t", group: str = "~g", every: bool = False, v: int | None = None, **more: Any
) -> Step:
    topics = None if every else [{"TopicName": topic, "Partitions": list(partitions or (0,))}]
    return ask(WHERE, v=v, Groups=[{"GroupId": group, "Topics": topics}], **more)


def alter(starts: dict[int, int], topic: str = "~t", group: str = "~g", **more: Any) -> Step:
    partitions = [{"PartitionIndex": index, "StartOffset": start} for index, start in starts.items()]
    return ask(ALTER, v=0, GroupId=group, Topics=[{"TopicName": topic, "Partitions": partitions}], **more)


def forget(*topics: str, group: str = "~g") -> Step:
    return ask(FORGET, v=0, GroupId=group, Topics=[{"TopicName": name} for name in topics or ("~t",)])


def delete(group: str = "~g") -> Step:
    return ask("DeleteGroups", v=2, GroupsNames=[group])


def settings(**configs: str) -> list[Step]:
    """Sets configs of the group ``~g``."""
    changes = [
        {"Name": "share." + name.replace("_", "."), "ConfigOperation": 0, "Value": value}
        for name, value in configs.items()
    ]
    resource = {"ResourceType": GROUP_RESOURCE, "ResourceName": "~g", "Configs": changes}
    return [ask("IncrementalAlterConfigs", v=1, quiet=True, Resources=[resource], ValidateOnly=False), HEARD]


def initialized(*topics: str) -> Step:
    """Waits until each of the topics has share state."""
    last = f"Groups.0.Topics.{len(topics or ('~t',)) - 1}.Partitions.0.ErrorCode"
    return where(every=True, v=0, quiet=True, until=(last, 0))


AT_ONCE = settings(assignment_interval_ms="0")
"""Assignments without delay."""


def joined(*topics: str, partitions: int = 1) -> list[Step | Iterable[Any]]:
    """Makes a member that reads all of its topics."""
    names = topics or ("~t",)
    made = [create(name, partitions) for name in names]
    return [*made, AT_ONCE, enter(*names, quiet=True), initialized(*names), beat(quiet=True)]


HEARTBEATS = [
    scenario(
        "what is refused whatever the group is",
        BEAT,
        refused("", SubscribedTopicNames=["~t"]),
        refused(" ", SubscribedTopicNames=["~t"]),
        refused("m" * 37, SubscribedTopicNames=["~t"]),
        refused("m" * 37, -1),
        refused(group="", SubscribedTopicNames=["~t"]),
        refused(group=" ", SubscribedTopicNames=["~t"]),
        refused(RackId="", SubscribedTopicNames=["~t"]),
        refused(RackId=" ", SubscribedTopicNames=["~t"]),
        refused(),
        refused(SubscribedTopicNames=[]),
        refused(epoch=-2, SubscribedTopicNames=["~t"]),
        refused(epoch=1),
        refused(epoch=-1),
        listed(),
    ),
    scenario(
        "a member comes, stays and leaves",
        BEAT,
        create("~t", 3),
        AT_ONCE,
        enter(),
        initialized(),
        shown(),
        beat(),
        beat(),
        beat(SubscribedTopicNames=["~t"]),
        enter(),
        shown(IncludeAuthorizedOperations=True),
        listed(),
        refused("~nobody", 1),
        refused("~nobody", -1),
        leave(),
        shown(),
        refused(epoch=3),
        enter(),
        shown(),
    ),
    scenario(
        "epochs that do not fit",
        BEAT,
        joined(),
        refused(epoch=2),
        refused(epoch=1),
        refused(epoch=4),
        refused(epoch=3),
    ),
    scenario(
        "two on one partition",
        BEAT,
        joined(),
        enter(member="~n", RackId="a rack"),
        beat(),
        beat("~n"),
        shown(),
        beat("~n", RackId="another"),
        shown(),
        leave(),
        beat("~n"),
    ),
    scenario(
        "an assignment that has to wait",
        BEAT,
        create("~t"),
        settings(assignment_interval_ms="15000"),
        enter(),
        initialized(),
        beat(),
        beat(),
        enter(member="~n"),
        shown(),
        leave(),
        shown(),
    ),
    scenario(
        "subscriptions change",
        BEAT,
        joined("~t", "~u"),
        beat(SubscribedTopicNames=["~t", "~t"]),
        beat(SubscribedTopicNames=["~u", "~nosuch"]),
        beat(SubscribedTopicNames=[]),
        beat(),
        shown(),
    ),
    scenario(
        "less is wanted before it is assigned anew",
        BEAT,
        create("~t"),
        create("~u"),
        settings(assignment_interval_ms="1500"),
        enter("~t", "~u", quiet=True),
        initialized("~t", "~u"),
        pause(1.6),
        beat(),
        beat(SubscribedTopicNames=["~t"]),
        shown(),
    ),
    scenario(
        "topics come, grow and go",
        BEAT,
        AT_ONCE,
        enter("~t"),
        create("~t"),
        HEARD,
        beat(),
        initialized(),
        beat(),
        ask(
            "CreatePartitions",
            v=3,
            quiet=True,
            Topics=[{"Name": "~t", "Count": 2, "Assignments": None}],
            TimeoutMs=10000,
            ValidateOnly=False,
        ),
        HEARD,
        beat(),
        where(every=True, v=0, quiet=True, until=("Groups.0.Topics.0.Partitions.1.ErrorCode", 0)),
        beat(),
        ask("DeleteTopics", v=5, quiet=True, TopicNames=["~t"], TimeoutMs=10000),
        HEARD,
        beat(),
        shown(),
        where(every=True),
    ),
    scenario(
        "groups of other kinds",
        BEAT,
        create("~t"),
        stable(),
        refused(SubscribedTopicNames=["~t"]),
        refused(epoch=1),
        refused(epoch=-1),
        shown(),
        commit(group="~h", v=8, quiet=True),
        refused(group="~h", SubscribedTopicNames=["~t"]),
        listed(),
    ),
    scenario(
        "what others say to a share group",
        BEAT,
        joined(),
        join(v=9),
        ask("Heartbeat", v=4, GroupId="~g", GenerationId=1, MemberId="~m"),
        commit(v=9),
        commit(v=8, MemberId="~m", GenerationIdOrMemberEpoch=3),
        committed(v=9, patient=False),
        ask("OffsetDelete", v=0, GroupId="~g", Topics=[{"Name": "~t", "Partitions": [{"PartitionIndex": 0}]}]),
        ask("DescribeGroups", v=5, Groups=["~g"], IncludeAuthorizedOperations=False),
        ask("DescribeGroups", v=6, Groups=["~g"], IncludeAuthorizedOperations=False),
    ),
]

DESCRIBED = [
    scenario(
        "groups that there are not",
        SHOWN,
        shown("~nosuch", ""),
        shown(),
        ask(SHOWN, v=1, GroupIds=[], IncludeAuthorizedOperations=True),
    ),
    scenario("a group that is there", SHOWN, joined(), shown(), shown(IncludeAuthorizedOperations=True)),
]

OFFSETS = [
    scenario(
        "of groups that there are not",
        WHERE,
        create("~t"),
        where(every=True),
        where(0),
        where(0, 1, topic="~nosuch"),
        where(every=True, group=""),
        ask(WHERE, Groups=[]),
        ask(WHERE, Groups=[{"GroupId": "~g", "Topics": []}]),
    ),
    scenario("of a group of another kind", WHERE, create("~t"), stable(), where(every=True), where(0)),
    scenario(
        "of one that has read nothing",
        WHERE,
        joined(partitions=2),
        where(every=True),
        where(1, 0),
        ask(
            WHERE,
            Groups=[
                {"GroupId": "~nosuch", "Topics": None},
                {"GroupId": "~g", "Topics": None},
                {"GroupId": "~g", "Topics": [{"TopicName": "~t", "Partitions": [0]}]},
            ],
        ),
    ),
    scenario(
        "that are to be others",
        WHERE,
        create("~t", 2),
        HEARD,
        seed("~t", *"abc"),
        alter({0: 1, 1: 0}),
        where(every=True),
        alter({0: 3}),
        where(0),
        alter({0: -1}),
        where(0),
    ),
    scenario("a name that no group has", WHERE, create("~t"), where(0, group="")),
    scenario(
        "no partitions",
        WHERE,
        create("~t"),
        ask(WHERE, Groups=[{"GroupId": "~g", "Topics": [{"TopicName": "~t", "Partitions": []}]}]),
    ),
    scenario(
        "of a group that nobody has joined",
        ALTER,
        create("~t", 2),
        HEARD,
        alter({0: 3}),
        shown(),
        listed(),
        alter({0: 5, 1: -1, 7: 1}),
        where(every=True, v=0),
        enter(),
        beat(),
        alter({0: 1}),
        alter({0: 1}, "~nosuch"),
        leave(),
        alter({0: 1}),
        where(every=True, v=0),
        delete(),
        where(every=True, v=0),
        listed(),
    ),
    scenario(
        "topics that there are not",
        ALTER,
        create("~t"),
        HEARD,
        ask(
            ALTER,
            GroupId="~g",
            Topics=[
                {"TopicName": "~t", "Partitions": [{"PartitionIndex": 0, "StartOffset": 2}]},
                {"TopicName": "~nosuch", "Partitions": [{"PartitionIndex": 0, "StartOffset": 2}]},
            ],
        ),
        where(every=True, v=0),
        ask(ALTER, GroupId="~g", Topics=[]),
        ask(ALTER, GroupId="~h", Topics=[]),
        ask(ALTER, GroupId="", Topics=[]),
        alter({0: 1}, group=""),
        stable(GroupId="~c")[:1],
        alter({0: 1}, group="~c"),
    ),
    scenario(
        "of topics that it has, and has not",
        FORGET,
        create("~t", 2),
        create("~u"),
        HEARD,
        forget(),
        alter({0: 3, 1: 1}),
        alter({0: 4}, "~u"),
        forget("~nosuch"),
        forget("~t", "~nosuch"),
        where(every=True, v=0),
        forget("~t"),
        forget("~t", "~u"),
        where(every=True, v=0),
        ask(FORGET, GroupId="~g", Topics=[]),
        enter(),
        forget(),
        leave(),
        forget(group=""),
        stable(GroupId="~c")[:1],
        forget(group="~c"),
    ),
    scenario(
        "a group with all that it has",
        "DeleteGroups",
        joined("~t", "~u"),
        delete(),
        leave(),
        delete(),
        delete(),
        shown(),
        where(every=True, v=0),
        where(0, v=0),
        enter("~t"),
        shown(),
        versions="2",
    ),
]

SCENARIOS = [*HEARTBEATS, *DESCRIBED, *OFFSETS]

"""Consumer groups: heartbeats, and descriptions (KIP-848)."""

from collections.abc import Mapping, Sequence
from typing import Any

from ..play import Step
from ..steps import ask, commit, committed, create, gone, join, pause, published, scenario, stable

BEAT, SHOWN = "ConsumerGroupHeartbeat", "ConsumerGroupDescribe"
GROUP_RESOURCE = 32

HEARD = published()
"""Apache Kafka's group coordinator gets topics and configs a moment later."""

RESOLVED = pause(0.3)
"""Apache Kafka resolves a pattern in the background."""

REGEX_INTERVAL = pause(10.2)
"""The interval in which a pattern is resolved once."""

Owned = Mapping[str, Sequence[int]] | None


def partitions(owned: Owned) -> list[dict[str, Any]] | None:
    if owned is None:
        return None
    return [{"TopicId": f"$id {topic}", "Partitions": list(indexes)} for topic, indexes in owned.items()]


def body(member: str, epoch: Any, owned: Owned = None, **more: Any) -> dict[str, Any]:
    said = {"RebalanceTimeoutMs": -1, "TopicPartitions": partitions(owned)}
    return {"GroupId": "~g", "MemberId": member, "MemberEpoch": epoch, **said, **more}


def beat(member: str = "~a", epoch: Any = None, owned: Owned = None, **more: Any) -> Step:
    """Sends a heartbeat with the epoch of the last response to this member, and saves the new epoch."""
    found = f"${member}.epoch" if epoch is None else epoch
    options = {name: more.pop(name) for name in ("until", "quiet", "on", "v") if name in more}
    return ask(BEAT, save={f"${member}.epoch": "MemberEpoch"}, **options, **body(member, found, owned, **more))


def refused(member: str = "~a", epoch: Any = 0, owned: Owned = None, **more: Any) -> Step:
    """Sends a heartbeat whose response has no usable epoch."""
    return ask(BEAT, **body(member, epoch, owned, **more))


def enter(member: str = "~a", *topics: str, timeout: int = 60000, **more: Any) -> Step:
    subscribed = {"SubscribedTopicNames": list(topics or ("~t",))} if "SubscribedTopicRegex" not in more else {}
    return beat(member, 0, {}, **{"RebalanceTimeoutMs": timeout, **subscribed, **more})


def leave(member: str = "~a", epoch: int = -1, **more: Any) -> Step:
    return refused(member, epoch, **more)


def shown(*groups: str, **more: Any) -> Step:
    more = {"v": 1, **more}
    return ask(SHOWN, **{"GroupIds": list(groups or ("~g",)), "IncludeAuthorizedOperations": False, **more})


def listed() -> Step:
    return ask("ListGroups", v=5, mine=True, StatesFilter=[], TypesFilter=[])


def settings(**configs: str) -> list[Step]:
    """Sets configs of the group ``~g``."""
    changes = [
        {"Name": "consumer." + name.replace("_", "."), "ConfigOperation": 0, "Value": value}
        for name, value in configs.items()
    ]
    resource = {"ResourceType": GROUP_RESOURCE, "ResourceName": "~g", "Configs": changes}
    return [ask("IncrementalAlterConfigs", v=1, quiet=True, Resources=[resource], ValidateOnly=False), HEARD]


def more_partitions(topic: str, count: int) -> list[Step]:
    return [
        ask(
            "CreatePartitions",
            v=3,
            Topics=[{"Name": topic, "Count": count, "Assignments": None}],
            TimeoutMs=10000,
            ValidateOnly=False,
        ),
        HEARD,
    ]


def drop(topic: str) -> list[Step]:
    return [ask("DeleteTopics", v=5, TopicNames=[topic], TimeoutMs=10000), gone(topic), HEARD]


AT_ONCE = settings(assignment_interval_ms="0")
"""Assignments without delay."""

JOINING = {"RebalanceTimeoutMs": 60000, "SubscribedTopicNames": ["~t"]}

SHAPES = [
    scenario(
        "a shape that cannot be meant",
        BEAT,
        create("~t", 2),
        [
            refused(**each)
            for each in (
                {"GroupId": "", "owned": {}, **JOINING},
                {"GroupId": " ", "owned": {}, **JOINING},
                {"member": "", "owned": {}, "v": 1, **JOINING},
                {"member": " ", "epoch": 3},
                {"member": "", "epoch": 3},
                {"member": "", "epoch": -1},
                {"InstanceId": "", "owned": {}, **JOINING},
                {"InstanceId": "\t", "epoch": 3},
                {"RackId": "", "owned": {}, **JOINING},
                {},
                {"RebalanceTimeoutMs": 60000},
                {"RebalanceTimeoutMs": 60000, "owned": {}},
                {"owned": {"~t": [0]}, **JOINING},
                dict(JOINING),
                {"epoch": -2},
                {"epoch": -3},
                {"epoch": -2147483648},
                {"owned": {}, "ServerAssignor": "odd", **JOINING},
                {"owned": {}, "ServerAssignor": "", **JOINING},
                {"epoch": -1, "ServerAssignor": "odd"},
                {"epoch": 4, "ServerAssignor": "odd"},
            )
        ],
        listed(),
    ),
    scenario(
        "a pattern that RE2 does not take",
        BEAT,
        [
            refused(owned={}, RebalanceTimeoutMs=60000, SubscribedTopicRegex=each)
            for each in ("[", "(", "(?=x)", "\\1", "*", "a{2,1}")
        ],
        refused(owned={}, RebalanceTimeoutMs=60000, SubscribedTopicRegex="[", SubscribedTopicNames=["~t"]),
        listed(),
        versions="1",
    ),
    scenario(
        "a group that is not there",
        BEAT,
        [refused(epoch=each, InstanceId="~i") for each in (1, -1, -2)],
        [refused(epoch=each) for each in (1, -1)],
    ),
    scenario(
        "who is not a member, or not in that epoch",
        BEAT,
        create("~t", 2),
        HEARD,
        enter(),
        [refused(epoch=each) for each in (1, 3, 2147483647)],
        [refused(epoch=1, owned=each) for each in ({}, {"~t": [0]})],
        refused("nobody", 2),
        refused("nobody", -1),
        refused(epoch=2, InstanceId="~i"),
        refused(epoch=-1, InstanceId="~i"),
        beat(),
        shown(),
    ),
    scenario(
        "a member id of the broker's making",
        BEAT,
        create("~t", 2),
        HEARD,
        enter("", MemberId=""),
        enter("~chosen"),
        listed(),
        versions="0",
    ),
]

MEMBERS = [
    scenario(
        "two members share",
        BEAT,
        create("~t", 4),
        AT_ONCE,
        enter("~a"),
        beat("~a"),
        beat("~a", owned={"~t": [0, 1, 2, 3]}),
        enter("~b"),
        beat("~b"),
        shown(),
        beat("~a"),
        beat("~a"),
        beat("~a", owned={"~t": [0, 1, 2]}),
        shown(),
        beat("~b"),
        beat("~a", owned={"~t": [0, 1]}),
        beat("~b"),
        beat("~b", owned={"~t": [2, 3]}),
        shown(),
        leave("~a"),
        shown(),
        beat("~b"),
        leave("~b"),
        shown(),
        listed(),
    ),
    scenario(
        "an answer that was lost",
        BEAT,
        create("~t", 4),
        AT_ONCE,
        enter("~a"),
        enter("~b"),
        beat("~a"),
        beat("~a", owned={"~t": [0, 1]}),
        [refused("~a", 2, each) for each in (None, {"~t": [3]}, {"~t": [0, 1]}, {"~t": [1]}, {})],
        refused("~a", 1, {}),
        beat("~a", owned={"~t": [0, 1]}, **JOINING),
        beat("~a", owned={"~t": [0, 1]}, SubscribedTopicNames=["~t"]),
        enter("~a"),
        shown(),
    ),
    scenario(
        "until the next assignment",
        BEAT,
        create("~t", 4),
        settings(assignment_interval_ms="1500"),
        enter("~a"),
        enter("~b"),
        shown(),
        beat("~b"),
        refused("~b", 3),
        pause(1.6),
        beat("~b"),
        shown(),
        leave("~b"),
        leave("~a"),
        enter("~c"),
        shown(),
    ),
    scenario(
        "static members",
        BEAT,
        create("~t", 3),
        create("~u", 1),
        AT_ONCE,
        enter("~a", InstanceId="~i"),
        enter("~b", InstanceId="~j"),
        [refused(each, 0, {}, InstanceId="~i", **JOINING) for each in ("~a", "~c")],
        refused("~c", 2, InstanceId="~i"),
        leave("~c", InstanceId="~i"),
        leave("~c", -2, InstanceId="~i"),
        leave("~a", -2, InstanceId="~i"),
        shown(),
        refused("~a", 2, InstanceId="~i"),
        leave("~a", -2, InstanceId="~i"),
        beat("~b", InstanceId="~j"),
        enter("~c", InstanceId="~i"),
        shown(),
        beat("~b", InstanceId="~j"),
        beat("~b"),
        leave("~c", -2, InstanceId="~i"),
        enter("~d", "~u", InstanceId="~i"),
        shown(),
        beat("~b"),
        leave("~b"),
        leave("~d", InstanceId="~i"),
        shown(),
    ),
    scenario(
        "what they subscribe to changes",
        BEAT,
        create("~t", 2),
        create("~u", 2),
        AT_ONCE,
        enter("~a", "~t", "~u", RackId="here"),
        beat("~a", owned={"~t": [0, 1]}, SubscribedTopicNames=["~t"]),
        beat("~a", SubscribedTopicNames=["~u"]),
        shown(),
        beat("~a", owned={}, SubscribedTopicNames=["~u", "~u"]),
        beat("~a", owned={"~u": [0, 1]}, SubscribedTopicNames=[], RackId="there", ServerAssignor="range"),
        beat("~a", owned={}),
        shown(),
        enter("~nothing", SubscribedTopicNames=[]),
        enter("~odd", "no topic's name", ""),
        shown(),
    ),
    scenario(
        "a member of nothing",
        BEAT,
        enter(SubscribedTopicNames=[]),
        shown(),
        beat(),
        enter("~b", SubscribedTopicNames=[]),
        leave(),
        shown(),
        leave("~b"),
        shown(),
    ),
    scenario(
        "assignors that members ask for",
        BEAT,
        create("~t", 5),
        AT_ONCE,
        enter("~a", ServerAssignor="range"),
        shown(),
        enter("~b", ServerAssignor="uniform"),
        shown(),
        enter("~c", ServerAssignor="range"),
        shown(),
        beat("~a", ServerAssignor="uniform"),
        shown(),
        leave("~b"),
        shown(),
    ),
    scenario(
        "the interval of heartbeats is the group's own",
        BEAT,
        create("~t"),
        settings(heartbeat_interval_ms="7000"),
        enter(),
        beat(),
        leave(),
    ),
    scenario(
        "a session, and a time for giving up, that are over",
        BEAT,
        create("~t", 2),
        AT_ONCE,
        enter("~a", timeout=3000),
        enter("~b"),
        beat("~a"),
        pause(1.0),
        beat("~a"),
        pause(2.3),
        refused("~a", 2),
        beat("~b"),
        shown(),
        versions="1",
    ),
]

TOPICS = [
    scenario(
        "topics that come, grow and go",
        BEAT,
        AT_ONCE,
        enter("~a", "~t", "~u"),
        shown(),
        create("~t", 2),
        HEARD,
        beat(),
        more_partitions("~t", 4),
        beat(),
        beat(owned={"~t": [0, 1, 2, 3]}),
        drop("~t"),
        beat(),
        shown(),
        beat(owned={}),
        shown(),
        create("~t", 1),
        HEARD,
        beat(),
        beat(owned={"~t": [0]}),
        shown(),
        versions="1",
    ),
    scenario(
        "by a pattern",
        BEAT,
        create("~r-1", 2),
        create("~other", 1),
        AT_ONCE,
        enter("~a", SubscribedTopicRegex="~r-.*"),
        RESOLVED,
        shown(),
        beat("~a"),
        enter("~b", SubscribedTopicRegex="~r-.*"),
        beat("~a"),
        beat("~a", owned={"~r-1": [0]}),
        beat("~b"),
        beat("~b", owned={}, SubscribedTopicRegex="~nothing"),
        shown(),
        beat("~b", SubscribedTopicRegex="", SubscribedTopicNames=["~other"]),
        RESOLVED,
        shown(),
        leave("~a"),
        shown(),
        versions="1",
    ),
    scenario(
        "a pattern that is looked up again",
        BEAT,
        create("~r-1", 2),
        AT_ONCE,
        enter("~a", SubscribedTopicRegex="~r-.*"),
        RESOLVED,
        beat("~a"),
        create("~r-2", 1),
        HEARD,
        beat("~a"),
        REGEX_INTERVAL,
        beat("~a"),
        RESOLVED,
        beat("~a"),
        drop("~r-1"),
        beat("~a", owned={"~r-2": [0]}),
        beat("~a", owned={"~r-2": [0]}),
        shown(),
        versions="1",
    ),
]

OTHERS = [
    scenario(
        "a group that only keeps offsets gives way",
        BEAT,
        create("~t", 2),
        AT_ONCE,
        commit(v=9),
        shown(),
        refused(epoch=1),
        refused(epoch=-1),
        enter(),
        shown(),
        committed("~g", None),
        leave(),
        ask("DeleteGroups", v=2, GroupsNames=["~g"]),
        shown(),
    ),
    scenario(
        "groups of the other kinds",
        BEAT,
        create("~t", 2),
        ask(
            "ShareGroupHeartbeat",
            v=1,
            quiet=True,
            GroupId="~g",
            MemberId="~s",
            MemberEpoch=0,
            SubscribedTopicNames=["~t"],
        ),
        [refused(epoch=each) for each in (1, -1)],
        refused(owned={}, **JOINING),
        shown(),
        stable("~classic"),
        [refused(epoch=each, GroupId="~classic") for each in (1, -1)],
        shown("~classic"),
        join(ProtocolType="connect", GroupId="~connect"),
        refused(epoch=1, GroupId="~connect"),
    ),
    scenario(
        "too many members",
        BEAT,
        create("~t", 2),
        AT_ONCE,
        [enter(f"~{each}") for each in "abcd"],
        [refused(each, 0, {}, **JOINING) for each in ("~e", "~f")],
        refused("~e", 3),
        refused("~e", -1),
        enter("~a"),
        versions="1",
    ),
]

DESCRIPTIONS = [
    scenario(
        "groups that are there and others",
        SHOWN,
        create("~t", 3),
        create("~u", 1),
        AT_ONCE,
        enter("~a", "~t", "~u", v=1, InstanceId="~i", RackId="r"),
        enter("~b", "~t", v=1),
        commit(v=9, GroupId="~simple"),
        shown("~g", "~nowhere", "~simple", "", v=None),
        shown("~g", "~nowhere", v=None, IncludeAuthorizedOperations=True),
        shown(v=None, GroupIds=[]),
        drop("~t"),
        shown(v=None),
    ),
    scenario(
        "the order of members",
        SHOWN,
        create("~t", 2),
        [enter(f"~m{each}", v=1) for each in range(4)],
        shown(v=None),
    ),
]

SCENARIOS = [*SHAPES, *MEMBERS, *TOPICS, *OTHERS, *DESCRIPTIONS]

"""StreamsGroupHeartbeat and StreamsGroupDescribe: applications of Kafka Streams, without Kafka Streams (KIP-1071)."""

from collections.abc import Iterable
from typing import Any

from ..play import Step
from ..steps import ask, commit, create, join, published, ready, scenario, stable

BEAT, SHOWN = "StreamsGroupHeartbeat", "StreamsGroupDescribe"
GROUP_RESOURCE = 32


def subtopology(number: str = "0", source: Iterable[str] = ("~t",), **more: Any) -> dict[str, Any]:
    return {
        "SubtopologyId": number,
        "SourceTopics": list(source),
        "SourceTopicRegex": [],
        "StateChangelogTopics": [],
        "RepartitionSinkTopics": [],
        "RepartitionSourceTopics": [],
        "CopartitionGroups": [],
        **more,
    }


def internal(name: str, partitions: int = 0, replication: int = 0, **configs: str) -> dict[str, Any]:
    listed = [{"Key": key.replace("_", "."), "Value": value} for key, value in configs.items()]
    return {"Name": name, "Partitions": partitions, "ReplicationFactor": replication, "TopicConfigs": listed}


def copartition(sources: Iterable[int] = (), repartitions: Iterable[int] = ()) -> dict[str, Any]:
    return {
        "SourceTopics": list(sources),
        "SourceTopicRegex": [],
        "RepartitionSourceTopics": list(repartitions),
    }


def topology(*subtopologies: dict[str, Any], epoch: int = 0) -> dict[str, Any]:
    return {"Epoch": epoch, "Subtopologies": list(subtopologies or [subtopology()])}


def tasks(*partitions: int, of: str = "0") -> list[dict[str, Any]]:
    return [{"SubtopologyId": of, "Partitions": list(partitions)}] if partitions else []


def owning(*active: int) -> dict[str, Any]:
    return {"ActiveTasks": tasks(*active), "StandbyTasks": [], "WarmupTasks": []}


def beat(member: str = "~m", epoch: Any = None, group: str = "~g", **more: Any) -> Step:
    """Sends a heartbeat with the epoch of the last response to this member, and saves the new epoch."""
    options = {name: more.pop(name) for name in ("until", "within", "quiet", "patient", "on", "v") if name in more}
    body = {
        "GroupId": group,
        "MemberId": member,
        "MemberEpoch": f"${member}.epoch" if epoch is None else epoch,
        "EndpointInformationEpoch": 0,
        "RebalanceTimeoutMs": -1,
        "ShutdownApplication": False,
        **more,
    }
    return ask(BEAT, save={f"${member}.epoch": "MemberEpoch"}, **options, **body)


def enter(member: str = "~m", *subtopologies: dict[str, Any], group: str = "~g", **more: Any) -> Step:
    """Sends the heartbeat of a member that joins or rejoins."""
    return beat(
        member,
        0,
        group,
        **{
            "RebalanceTimeoutMs": 10_000,
            "Topology": topology(*subtopologies),
            "ProcessId": f"{member}-process",
            "ClientTags": [],
            **owning(),
            **more,
        },
    )


def shown(group: str = "~g", **more: Any) -> Step:
    return ask(SHOWN, GroupIds=[group], IncludeAuthorizedOperations=False, **more)


def listed() -> Step:
    return ask("ListGroups", v=5, mine=True, StatesFilter=[], TypesFilter=[])


def group_configs(**configs: str) -> list[Step]:
    """Sets configs of the group ``~g``, and waits until they are in force."""
    changes = [
        {"Name": "streams." + name.replace("_", "."), "ConfigOperation": 0, "Value": value}
        for name, value in configs.items()
    ]
    resource = {"ResourceType": GROUP_RESOURCE, "ResourceName": "~g"}
    return [
        ask(
            "IncrementalAlterConfigs",
            v=1,
            quiet=True,
            Resources=[{**resource, "Configs": changes}],
            ValidateOnly=False,
        ),
        published(),
    ]


JOINED = [create("~t", 4), enter()]

SHAPES = [
    scenario(
        "what is refused whatever the group is",
        BEAT,
        create("~t"),
        enter(MemberId=""),
        enter(GroupId=""),
        enter(GroupId="  "),
        enter(InstanceId="~i"),
        enter(InstanceId=""),
        enter(RackId=""),
        enter(RebalanceTimeoutMs=-1),
        enter(ActiveTasks=None),
        enter(StandbyTasks=None),
        enter(WarmupTasks=None),
        enter(ActiveTasks=tasks(0)),
        enter(WarmupTasks=tasks(0)),
        enter(Topology=None),
        enter(TaskOffsets=[]),
        enter(TaskEndOffsets=[]),
        [beat("~m", epoch) for epoch in (-1, -2, -3, 1)],
        beat("~m", -2, InstanceId="~i"),
        beat("~m", 1, ActiveTasks=[]),
        beat("~m", 1, Topology=topology()),
        beat("~m", 1, **owning()),
    ),
    scenario(
        "topologies that there cannot be",
        BEAT,
        create("~t", 2),
        enter("~m", subtopology(StateChangelogTopics=[internal("~c", 3)])),
        enter("~m", subtopology(source=["__consumer_offsets"])),
        enter("~m", subtopology(source=["no/name"])),
        enter("~m", subtopology(RepartitionSinkTopics=[""])),
        enter("~m", subtopology(StateChangelogTopics=[internal("__transaction_state")])),
        enter("~m", subtopology(SourceTopicRegex=["a.*"])),
        enter("~m", subtopology(RepartitionSourceTopics=[internal("~r")])),
        enter(
            "~m",
            subtopology(RepartitionSinkTopics=["~r"]),
            subtopology("1", [], RepartitionSourceTopics=[internal("~x")]),
        ),
        enter(
            "~m",
            subtopology("0", [], RepartitionSourceTopics=[internal("~a")], RepartitionSinkTopics=["~b"]),
            subtopology("1", [], RepartitionSourceTopics=[internal("~b")], RepartitionSinkTopics=["~a"]),
        ),
        shown(),
    ),
    scenario(
        "groups of other kinds",
        BEAT,
        create("~t"),
        stable(),
        enter(),
        beat("~m", -1),
        shown(),
    ),
    scenario(
        "an empty classic group gives way",
        BEAT,
        create("~t"),
        commit(v=8),
        listed(),
        enter(),
        beat(),
        listed(),
        ask(
            "JoinGroup",
            v=9,
            GroupId="~g",
            SessionTimeoutMs=10000,
            RebalanceTimeoutMs=10000,
            MemberId="",
            ProtocolType="consumer",
            Protocols=[{"Name": "range", "Metadata": b""}],
            save={"$m": "MemberId"},
        ),
        join("$m", v=9),
        ask("DescribeGroups", v=6, Groups=["~g"], IncludeAuthorizedOperations=False),
    ),
]

LIVES = [
    scenario(
        "a member comes, stays and leaves",
        BEAT,
        JOINED,
        shown(),
        beat(),
        beat(**owning(0, 1, 2, 3)),
        shown(),
        listed(),
        enter(),
        beat("~m", -1),
        shown(),
        listed(),
        beat("~m", -1),
        beat(),
        beat("~m", 0, group="~other"),
        beat("~m", 7, group="~other"),
        enter(),
        beat(),
    ),
    scenario(
        "an empty streams group gives way",
        BEAT,
        JOINED,
        beat("~m", -1),
        join(v=3),
        listed(),
        enter(),
        shown(),
        ask("DescribeGroups", v=6, Groups=["~g"], IncludeAuthorizedOperations=False),
    ),
    scenario(
        "fencing",
        BEAT,
        JOINED,
        beat(),
        [beat("~m", epoch) for epoch in (1, 2, 3, 4, 100)],
        beat("~m", 1, **owning(0, 1)),
        beat("~m", 1, **owning(7)),
        beat("~m", 1, ActiveTasks=tasks(0, of="9"), StandbyTasks=[], WarmupTasks=[]),
        beat("~nobody", 1),
        beat("~nobody", -1),
        beat(**owning(4)),
        beat(ActiveTasks=tasks(0, of="9"), StandbyTasks=[], WarmupTasks=[]),
        beat(),
        shown(),
    ),
    scenario(
        "two members share the tasks",
        BEAT,
        JOINED,
        beat(**owning(0, 1, 2, 3)),
        enter("~n"),
        shown(),
        beat("~n"),
        beat("~m"),
        beat("~m", **owning(0, 1, 2, 3)),
        beat("~n"),
        beat("~m", **owning(0, 1)),
        beat("~m", **owning(0, 1)),
        beat("~n"),
        beat("~m"),
        shown(),
        beat("~m", -1),
        beat("~n"),
        beat("~n", **owning(0, 1, 2, 3)),
        shown(),
    ),
    scenario(
        "an answer that is lost",
        BEAT,
        JOINED,
        beat(**owning(0, 1, 2, 3)),
        enter("~n"),
        beat("~m"),
        beat("~m", **owning(0, 1)),
        beat("~n"),
        beat("~n", **owning()),
        beat("~n", **owning(2, 3)),
        shown(),
    ),
    scenario(
        "a member leaves while it has to give up tasks",
        BEAT,
        JOINED,
        beat(**owning(0, 1, 2, 3)),
        enter("~n"),
        beat("~m"),
        beat("~m", -1),
        beat("~n"),
        beat("~n"),
        shown(),
    ),
    scenario(
        "two threads of a process",
        BEAT,
        create("~t", 3),
        enter("~m", subtopology(StateChangelogTopics=[internal("~g-c")]), ProcessId="~p"),
        ready("~g-c", 3),
        beat("~m", until=("Status", []), quiet=True),
        enter("~n", subtopology(StateChangelogTopics=[internal("~g-c")]), ProcessId="~p"),
        beat("~m"),
        beat("~m", **owning(0, 1)),
        beat("~n"),
        beat("~m"),
        shown(),
    ),
    scenario(
        "as many members as there may be",
        BEAT,
        create("~t"),
        [enter(f"~m{n}") for n in range(5)],
        enter("~m0"),
        beat("~m0"),
    ),
    scenario(
        "more about a member",
        BEAT,
        JOINED,
        beat(RackId="r", ProcessId="~other", ClientTags=[{"Key": "zone", "Value": "a"}, {"Key": "b", "Value": "c"}]),
        beat(RebalanceTimeoutMs=77),
        shown(),
        beat(RackId="s"),
        beat(client_id="other"),
        shown(),
    ),
    scenario(
        "little is said",
        BEAT,
        create("~t", 2),
        enter("~m", ProcessId=None, ClientTags=None),
        beat("~m"),
        enter("~n", ProcessId="", ClientTags=[{"Key": "", "Value": ""}, {"Key": "a", "Value": "b"}]),
        beat("~m"),
        beat("~m", **owning(0)),
        beat("~n"),
        shown(),
        enter("~m", group="~h", Topology={"Epoch": 0, "Subtopologies": []}),
        beat("~m", group="~h"),
        shown("~h"),
        enter("~m", subtopology(source=[]), group="~i"),
        enter("~m", subtopology(), subtopology(), group="~i"),
        enter("~m", subtopology(CopartitionGroups=[copartition([1])]), group="~i"),
        enter("~m", subtopology(source=["~t", "~t"], CopartitionGroups=[copartition()]), group="~i"),
        shown("~i"),
    ),
    scenario(
        "the application is to stop",
        BEAT,
        JOINED,
        enter("~n"),
        beat("~m", ShutdownApplication=True),
        beat("~n"),
        beat("~n", ShutdownApplication=True),
        beat("~m", -1),
        beat("~n"),
        beat("~n", -1),
        enter("~m"),
        enter("~n"),
        beat("~n", -1, ShutdownApplication=True),
        beat("~m"),
    ),
    scenario(
        "endpoints",
        BEAT,
        create("~t", 2),
        create("~u", 1),
        enter("~m", subtopology(source=["~t", "~u"]), UserEndpoint={"Host": "h", "Port": 8080}),
        beat("~m"),
        beat("~m", EndpointInformationEpoch=1),
        beat("~m", EndpointInformationEpoch=-1),
        enter("~n", subtopology(source=["~t", "~u"])),
        beat("~m", EndpointInformationEpoch=1),
        beat("~m", EndpointInformationEpoch=1, **owning(0)),
        beat("~m", EndpointInformationEpoch=2, **owning(0)),
        beat("~n", EndpointInformationEpoch=1),
        beat("~n", EndpointInformationEpoch=2),
        shown(),
    ),
]

CONFIGS = [
    scenario(
        "standby tasks",
        BEAT,
        create("~t", 3),
        group_configs(num_standby_replicas="1"),
        enter("~m", subtopology(StateChangelogTopics=[internal("~g-c")])),
        ready("~g-c", 3),
        beat("~m", until=("Status", []), quiet=True),
        enter("~n", subtopology(StateChangelogTopics=[internal("~g-c")])),
        beat("~m", **owning(0, 1, 2)),
        beat("~m", **owning(0, 1)),
        beat("~n"),
        beat("~m"),
        shown(),
        group_configs(num_standby_replicas="0"),
        beat("~m"),
        beat("~m", **owning(0, 1)),
        beat("~n", ActiveTasks=tasks(2), StandbyTasks=[], WarmupTasks=[]),
        shown(),
    ),
    scenario(
        "the first assignment waits",
        BEAT,
        create("~t", 2),
        group_configs(initial_rebalance_delay_ms="700"),
        enter("~m"),
        beat("~m"),
        enter("~n"),
        shown(),
        beat("~m", until=("Status", []), quiet=True),
        beat("~n"),
        beat("~m"),
        shown(),
    ),
    scenario(
        "the next assignment waits",
        BEAT,
        create("~t", 2),
        group_configs(assignment_interval_ms="1500"),
        enter("~m"),
        beat("~m", **owning(0, 1)),
        enter("~n"),
        beat("~m"),
        shown(),
        beat("~m", until=("Status", []), quiet=True),
        beat("~m", **owning(0)),
        beat("~n"),
        shown(),
    ),
]

OFFSETS = [
    scenario(
        "offsets of members",
        BEAT,
        JOINED,
        beat(**owning(0, 1, 2, 3)),
        [commit(v=9, MemberId="~m", GenerationIdOrMemberEpoch=epoch) for epoch in ("$~m.epoch", 1, 0, -1, 100)],
        commit(v=9),
        commit(v=9, MemberId="~nobody", GenerationIdOrMemberEpoch=2),
        commit(v=8, MemberId="~m", GenerationIdOrMemberEpoch="$~m.epoch"),
        enter("~n"),
        beat("~m"),
        [
            commit(v=9, MemberId="~m", GenerationIdOrMemberEpoch=epoch, partition=part)
            for epoch in (1, 2, 3)
            for part in range(4)
        ],
        beat("~m", **owning(0, 1)),
        [
            commit(v=9, MemberId="~m", GenerationIdOrMemberEpoch=epoch, partition=part)
            for epoch in (1, 2, 3)
            for part in range(4)
        ],
        ask(
            "OffsetFetch",
            v=9,
            Groups=[
                {
                    "GroupId": "~g",
                    "MemberId": "~m",
                    "MemberEpoch": 3,
                    "Topics": [{"Name": "~t", "PartitionIndexes": [0, 1, 2, 3]}],
                }
            ],
            RequireStable=False,
        ),
        ask(
            "OffsetFetch",
            v=9,
            Groups=[{"GroupId": "~g", "MemberId": "~m", "MemberEpoch": 2, "Topics": None}],
            RequireStable=False,
        ),
        ask(
            "OffsetFetch",
            v=9,
            Groups=[{"GroupId": "~g", "MemberId": "~nobody", "MemberEpoch": 2, "Topics": None}],
            RequireStable=False,
        ),
        ask("OffsetDelete", v=0, GroupId="~g", Topics=[{"Name": "~t", "Partitions": [{"PartitionIndex": 0}]}]),
        ask("DeleteGroups", v=2, GroupsNames=["~g"]),
        beat("~m", -1),
        beat("~n", -1),
        listed(),
        ask("OffsetDelete", v=0, GroupId="~g", Topics=[{"Name": "~t", "Partitions": [{"PartitionIndex": 0}]}]),
        ask("DeleteGroups", v=2, GroupsNames=["~g"]),
        shown(),
        listed(),
    ),
]

DESCRIBED = [
    scenario(
        "groups that are none",
        SHOWN,
        create("~t"),
        stable(),
        ask(SHOWN, GroupIds=["~nobody", "", "~g"], IncludeAuthorizedOperations=False),
        ask(SHOWN, GroupIds=[], IncludeAuthorizedOperations=False),
        ask(SHOWN, GroupIds=["~nobody"], IncludeAuthorizedOperations=True),
    ),
    scenario(
        "what may be done",
        SHOWN,
        JOINED,
        ask(SHOWN, GroupIds=["~g", "~g"], IncludeAuthorizedOperations=True),
        ask("DescribeGroups", v=6, Groups=["~g"], IncludeAuthorizedOperations=False),
        ask("DescribeGroups", v=5, Groups=["~g"], IncludeAuthorizedOperations=False),
        ask("ListGroups", v=5, mine=True, StatesFilter=["stable"], TypesFilter=[]),
        ask("ListGroups", v=5, mine=True, StatesFilter=["Empty"], TypesFilter=["streams"]),
        ask("ListGroups", v=5, mine=True, StatesFilter=[], TypesFilter=["Streams"]),
        ask("ListGroups", v=4, mine=True, StatesFilter=[]),
    ),
]

SCENARIOS = [*SHAPES, *LIVES, *CONFIGS, *OFFSETS, *DESCRIBED]

"""The cluster itself: brokers, quorum, log directories, elections and reassignments."""

from typing import Any

from ..play import Step
from ..steps import ask, create, scenario, seed

CLUSTER = [
    scenario(
        "plain",
        "DescribeCluster",
        ask("DescribeCluster"),
        ask("DescribeCluster", IncludeClusterAuthorizedOperations=True),
    ),
    scenario(
        "endpoint types",
        "DescribeCluster",
        [ask("DescribeCluster", EndpointType=kind) for kind in (0, 1, 2, 3, -1)],
        versions="1+",
    ),
    scenario("fenced brokers", "DescribeCluster", ask("DescribeCluster", IncludeFencedBrokers=True), versions="2"),
]


def quorum(*topics: tuple[str, list[int]]) -> Step:
    entries = [
        {"TopicName": name, "Partitions": [{"PartitionIndex": each} for each in partitions]}
        for name, partitions in topics
    ]
    return ask("DescribeQuorum", Topics=entries)


QUORUM = [
    scenario("of the metadata", "DescribeQuorum", quorum(("__cluster_metadata", [0]))),
    scenario(
        "of what has none",
        "DescribeQuorum",
        create("~t"),
        quorum(("~t", [0])),
        quorum(("__cluster_metadata", [1])),
        quorum(("__cluster_metadata", [0, 1])),
        quorum(),
        quorum(("__cluster_metadata", [])),
    ),
]


def directories(*topics: tuple[str, list[int]]) -> Step:
    return ask("DescribeLogDirs", Topics=[{"Topic": name, "Partitions": partitions} for name, partitions in topics])


DIRECTORIES = [
    scenario(
        "of a topic",
        "DescribeLogDirs",
        create("~t", 2),
        seed("~t", "one", "two"),
        directories(("~t", [0, 1])),
        directories(("~t", [1])),
    ),
    scenario("of all", "DescribeLogDirs", create("~t", 2), ask("DescribeLogDirs", mine=True, Topics=None)),
    scenario(
        "of what is not there",
        "DescribeLogDirs",
        create("~t"),
        directories(("~t", [9])),
        directories(("~none", [0])),
        directories(),
        directories(("~t", [])),
    ),
]


def election(*topics: tuple[str, list[int]], kind: int = 0) -> Step:
    entries = [{"Topic": name, "Partitions": partitions} for name, partitions in topics]
    return ask("ElectLeaders", ElectionType=kind, TopicPartitions=entries, TimeoutMs=5000)


ELECTIONS = [
    scenario("not needed", "ElectLeaders", create("~t", 2), election(("~t", [0, 1])), election(("~t", [1]), kind=1)),
    scenario(
        "of what is not there",
        "ElectLeaders",
        create("~t"),
        election(("~none", [0])),
        election(("~t", [7])),
        election(("~t", [0, 7]), ("~none", [0])),
        election(("a b", [0])),
        election(),
    ),
    scenario(
        "of kinds that there are not",
        "ElectLeaders",
        create("~t"),
        election(("~t", [0]), kind=2),
        election(("~t", [0]), kind=-1),
        versions="1+",
    ),
    scenario(
        "no time",
        "ElectLeaders",
        create("~t"),
        [ask("ElectLeaders", TopicPartitions=[{"Topic": "~t", "Partitions": [0]}], TimeoutMs=ms) for ms in (0, -1)],
    ),
    scenario(
        "of all", "ElectLeaders", create("~t"), ask("ElectLeaders", mine=True, TopicPartitions=None, TimeoutMs=5000)
    ),
]


def reassigned(*topics: tuple[str, list[tuple[int, list[int] | None]]], **more: Any) -> Step:
    entries = [
        {"Name": name, "Partitions": [{"PartitionIndex": index, "Replicas": replicas} for index, replicas in each]}
        for name, each in topics
    ]
    return ask("AlterPartitionReassignments", **{"TimeoutMs": 5000, "Topics": entries, **more})


MOVES = [
    scenario("to where it is", "AlterPartitionReassignments", create("~t", 2), reassigned(("~t", [(0, [1])]))),
    scenario("a cancel of none", "AlterPartitionReassignments", create("~t"), reassigned(("~t", [(0, None)]))),
    scenario(
        "that cannot be",
        "AlterPartitionReassignments",
        create("~t"),
        [reassigned(("~t", [(0, replicas)])) for replicas in ([], [9], [1, 1], [1, 9], [-1])],
    ),
    scenario(
        "of what is not there",
        "AlterPartitionReassignments",
        create("~t"),
        reassigned(("~none", [(0, [1])])),
        reassigned(("~t", [(9, [1])])),
        reassigned(("~t", [(0, [1]), (9, [1])]), ("~none", [(0, None)])),
        reassigned(),
    ),
    scenario(
        "no time",
        "AlterPartitionReassignments",
        create("~t"),
        [reassigned(("~t", [(0, [1])]), TimeoutMs=ms) for ms in (0, -1)],
    ),
    scenario(
        "replication must not change",
        "AlterPartitionReassignments",
        create("~t"),
        reassigned(("~t", [(0, [1])]), AllowReplicationFactorChange=False),
        reassigned(("~t", [(0, [1, 9])]), AllowReplicationFactorChange=False),
        versions="1",
    ),
    scenario(
        "twice",
        "AlterPartitionReassignments",
        create("~t"),
        reassigned(("~t", [(0, [1]), (0, [1])])),
        reassigned(("~t", [(0, [1])]), ("~t", [(0, [1])])),
    ),
]

MOVING = [
    scenario(
        "of none",
        "ListPartitionReassignments",
        create("~t"),
        ask("ListPartitionReassignments", Topics=None),
        ask("ListPartitionReassignments", Topics=[]),
        ask("ListPartitionReassignments", Topics=[{"Name": "~t", "PartitionIndexes": [0]}]),
    ),
    scenario(
        "of what is not there",
        "ListPartitionReassignments",
        create("~t"),
        ask("ListPartitionReassignments", Topics=[{"Name": "~none", "PartitionIndexes": [0]}]),
        ask("ListPartitionReassignments", Topics=[{"Name": "~t", "PartitionIndexes": [8]}]),
    ),
]

SCENARIOS = [*CLUSTER, *QUORUM, *DIRECTORIES, *ELECTIONS, *MOVES, *MOVING]

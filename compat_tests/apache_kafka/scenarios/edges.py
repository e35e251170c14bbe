"""Each field of each request at its limits: a valid request, except for one value in it.

Made from the schemas, for the oldest and the newest version of each API.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..batches import records
from ..codec import ZERO_UUID, Field, message
from ..play import Step
from ..steps import ADVERTISED, Scenario, ask, create, fetch_body, join_body, produce_body, scenario, seed
from .framing import PLAIN

EDGES: dict[str, list[Any]] = {
    "bool": [False, True],
    "int8": [0, -1, 1, 2, 127, -128],
    "int16": [0, -1, 1, 2, 32767, -32768],
    "int32": [0, -1, 1, 2, 2147483647, -2147483648],
    "int64": [0, -1, -2, 1, 2**63 - 1, -(2**63)],
    "float64": [0.0, -1.0, 0.5, 1.0, 1e300, float("inf"), float("-inf"), float("nan")],
    "string": ["", "~a b", "~none", "~t", "~..", "~ä"],
    "uuid": [ZERO_UUID, b"\7" * 16, bytes(15) + b"\1"],
    "bytes": [b"", b"\0"],
    "records": [b"", b"\0", b"x" * 30],
}

LEFT_OUT: dict[str, set[Any]] = {
    "MaxWaitMs": {2147483647},  # the wait would be too long
    "Count": {2147483647},  # Apache Kafka starts a reassignment
    "TimeoutMs": {1, 2},  # a race with either result
    "timeoutMs": {1, 2},
    "Metadata": {b"", b"\0"},  # Apache Kafka fails on an invalid subscription, and sends no response
}

LIKE_ANY_OTHER: dict[str, dict[str, Any]] = PLAIN | {
    "AlterClientQuotas": {
        "Entries": [
            {
                "Entity": [{"EntityType": "user", "EntityName": "~nobody"}],
                "Ops": [{"Key": "producer_byte_rate", "Value": 1.0, "Remove": False}],
            }
        ],
        "ValidateOnly": True,
    },
    "AlterConfigs": {
        "Resources": [
            {"ResourceType": 2, "ResourceName": "~t", "Configs": [{"Name": "retention.ms", "Value": "7000"}]},
        ],
        "ValidateOnly": True,
    },
    "AlterReplicaLogDirs": {"Dirs": [{"Path": "/nope", "Topics": [{"Name": "~t", "Partitions": [0]}]}]},
    "AlterPartitionReassignments": {
        "TimeoutMs": 5000,
        "Topics": [{"Name": "~t", "Partitions": [{"PartitionIndex": 0, "Replicas": [1]}]}],
    },
    "CreatePartitions": {
        "Topics": [{"Name": "~t", "Count": 3, "Assignments": None}],
        "TimeoutMs": 5000,
        "ValidateOnly": True,
    },
    "CreateTopics": {
        "Topics": [
            {
                "Name": "~n",
                "NumPartitions": 1,
                "ReplicationFactor": 1,
                "Configs": [{"Name": "retention.ms", "Value": "5000"}],
            }
        ],
        "timeoutMs": 5000,
        "validateOnly": True,
    },
    "DescribeLogDirs": {"Topics": [{"Topic": "~t", "Partitions": [0]}]},
    "DescribeQuorum": {"Topics": [{"TopicName": "__cluster_metadata", "Partitions": [{"PartitionIndex": 0}]}]},
    "Fetch": fetch_body("~t", MaxWaitMs=20, ForgottenTopicsData=[{"Topic": "~none", "Partitions": [3]}]),
    "IncrementalAlterConfigs": {
        "Resources": [
            {
                "ResourceType": 2,
                "ResourceName": "~t",
                "Configs": [{"Name": "retention.ms", "Value": "7000", "ConfigOperation": 0}],
            }
        ],
        "ValidateOnly": True,
    },
    "JoinGroup": join_body(RebalanceTimeoutMs=300),
    "ListPartitionReassignments": {"TimeoutMs": 5000, "Topics": [{"Name": "~t", "PartitionIndexes": [0]}]},
    "Produce": produce_body("~t", records("x"), acks=1),
}

AMONG_OTHERS = {
    "DescribeClientQuotas",
    "ElectLeaders",
    "DescribeLogDirs",
    "ListConfigResources",
    "ListGroups",
    "ListTransactions",
    "Metadata",
}
"""APIs for which a null or an empty list means everything; only the scenario's own entries are compared."""

NOT_DOUBLED = {
    ("AddPartitionsToTxn", "Transactions"),
    ("AlterConfigs", "Resources"),
    ("JoinGroup", "Protocols"),
    ("Produce", "PartitionData"),
    ("UpdateFeatures", "FeatureUpdates"),
}
"""Where Apache Kafka never answers a doubling, answers one of the two and does the other, or names one of two errors,
which is that of the first in a hash map."""


WITHOUT_SIDE_EFFECTS = {"Metadata": 4}
"""Before this version each named topic is created, which takes Apache Kafka a while."""


def bodies(api: str, fields: Sequence[Field], body: Mapping[str, Any], version: int) -> Iterator[dict[str, Any]]:
    """Yields the body repeatedly, each time with another value in one place."""
    for field in fields:
        if version in field.versions:
            for value in values(api, field, body.get(field.name, field.default), version):
                yield {**body, field.name: value}


def values(api: str, field: Field, now: Any, version: int) -> Iterator[Any]:
    """Returns the replacements of the current value."""
    if version in field.nullable and field.kind != "records":
        yield None
    if not field.is_array:
        if field.fields:
            yield from bodies(api, field.fields, now, version) if now else ()
        else:
            yield from (value for value in EDGES[field.kind] if value not in LEFT_OUT.get(field.name, ()))
        return
    if (api, field.name) not in NOT_EMPTY:
        yield []
    may_double = (api, field.name) not in NOT_DOUBLED
    if not field.fields:
        yield from ([value] for value in EDGES[field.kind])
        yield from ([*(now or []), value] for value in EDGES[field.kind] if may_double)
    elif now:
        first, *others = now
        for other in bodies(api, field.fields, first, version):
            yield [other, *others]
            if may_double:
                yield [first, other]


def requests_of(api: str, version: int) -> list[Step]:
    mine = api in AMONG_OTHERS
    steps = []
    for number, body in enumerate(bodies(api, message(f"{api}Request").fields, LIKE_ANY_OTHER[api], version)):
        if api == "Metadata":
            body = {**body, "AllowAutoTopicCreation": False}
        if api == "JoinGroup" and body["GroupId"] == "~g":
            body = {**body, "GroupId": f"~g{number}"}
        if api == "Produce" and body["Acks"] == 0:
            continue
        steps.append(ask(api, mine=mine, **body))
    return steps


def edges_of(api: str) -> list[Scenario]:
    made = []
    oldest, newest = ADVERTISED[api]
    for version in sorted({max(oldest, WITHOUT_SIDE_EFFECTS.get(api, oldest)), newest}):
        if steps := requests_of(api, version):
            name = f"a field at its edges ({version})"
            made.append(scenario(name, api, create("~t", 2), seed("~t", "one", "two"), steps, versions=str(version)))
    return made


NOT_EMPTY = {("AddPartitionsToTxn", "Transactions")}
"""Requests that Apache Kafka does not answer if they are empty."""

WITHOUT = {"DescribeTopicPartitions"}
"""Pages of all topics, which depend on other scenarios."""

SCENARIOS = [each for api in ADVERTISED if api not in WITHOUT for each in edges_of(api)]

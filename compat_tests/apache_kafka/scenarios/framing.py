"""Frames, headers and versions: responses, and errors that close the connection."""

import struct
from typing import Any

from ..codec import Raw, message
from ..share_state_steps import NOBODY, delete, initialize, read, summary, write
from ..share_steps import acknowledge, share_fetch
from ..steps import (
    ADVERTISED,
    ask,
    commit_body,
    committed_body,
    create,
    fetch_body,
    join_body,
    pause,
    raw,
    scenario,
    sync_body,
)
from ..transaction_steps import add_body, marker, pending

PLAIN: dict[str, dict[str, Any]] = {
    "DescribeAcls": {
        **dict.fromkeys(("ResourceTypeFilter", "PatternTypeFilter", "Operation", "PermissionType"), 1),
        **dict.fromkeys(("ResourceNameFilter", "PrincipalFilter", "HostFilter")),
    },
    "CreateAcls": {"Creations": []},
    "DeleteAcls": {"Filters": []},
    "Produce": {"Acks": 1, "TimeoutMs": 1000, "TopicData": []},
    "Fetch": {**fetch_body("~t"), "MaxWaitMs": 0},
    "ListOffsets": {
        "ReplicaId": -1,
        "Topics": [{"Name": "~t", "Partitions": [{"PartitionIndex": 0, "Timestamp": -1}]}],
    },
    "Metadata": {"Topics": [{"Name": "~t"}], "AllowAutoTopicCreation": False},
    "OffsetCommit": commit_body(),
    "OffsetFetch": committed_body(),
    "FindCoordinator": {"Key": "~g", "CoordinatorKeys": ["~g"]},
    "JoinGroup": join_body(),
    "Heartbeat": {"GroupId": "~g", "GenerationId": 1, "MemberId": "nobody"},
    "LeaveGroup": {"GroupId": "~g", "MemberId": "nobody", "Members": [{"MemberId": "nobody"}]},
    "SyncGroup": sync_body(member="nobody", generation=1),
    "DescribeGroups": {"Groups": ["~g"]},
    "ListGroups": {},
    "ApiVersions": {"ClientSoftwareName": "compat", "ClientSoftwareVersion": "1.0"},
    "CreateTopics": {"Topics": [{"Name": "a b", "NumPartitions": 1, "ReplicationFactor": 1}], "timeoutMs": 5000},
    "DeleteTopics": {"Topics": [{"Name": "~none"}], "TopicNames": ["~none"], "TimeoutMs": 5000},
    "DeleteRecords": {
        "Topics": [{"Name": "~t", "Partitions": [{"PartitionIndex": 0, "Offset": 0}]}],
        "TimeoutMs": 1000,
    },
    "InitProducerId": {"TransactionalId": None, "TransactionTimeoutMs": 1000},
    "OffsetForLeaderEpoch": {
        "ReplicaId": -1,
        "Topics": [{"Topic": "~t", "Partitions": [{"Partition": 0, "LeaderEpoch": 0}]}],
    },
    "AddPartitionsToTxn": add_body(pid=5),
    "AddOffsetsToTxn": {"TransactionalId": "~x", "ProducerId": 5, "GroupId": "~g"},
    "EndTxn": {"TransactionalId": "~x", "ProducerId": 5},
    "WriteTxnMarkers": {"Markers": [marker(pid=5, topics=[("~none", [0])])]},
    "TxnOffsetCommit": pending(pid=5).body,
    "CreateDelegationToken": {"Renewers": [], "MaxLifetimeMs": -1},
    "RenewDelegationToken": {"Hmac": b"none", "RenewPeriodMs": 1},
    "ExpireDelegationToken": {"Hmac": b"none", "ExpiryTimePeriodMs": 1},
    "DescribeDelegationToken": {"Owners": []},
    "DescribeConfigs": {
        "Resources": [{"ResourceType": 2, "ResourceName": "~t", "ConfigurationKeys": ["retention.ms"]}],
    },
    "AlterConfigs": {"Resources": [{"ResourceType": 2, "ResourceName": "~none", "Configs": []}]},
    "AlterReplicaLogDirs": {"Dirs": []},
    "DescribeLogDirs": {"Topics": []},
    "CreatePartitions": {"Topics": [{"Name": "~none", "Count": 3, "Assignments": None}], "TimeoutMs": 5000},
    "DeleteGroups": {"GroupsNames": ["~g"]},
    "ElectLeaders": {"TopicPartitions": [{"Topic": "~t", "Partitions": [0]}], "TimeoutMs": 5000},
    "IncrementalAlterConfigs": {"Resources": [{"ResourceType": 2, "ResourceName": "~none", "Configs": []}]},
    "AlterPartitionReassignments": {"Topics": []},
    "ListPartitionReassignments": {"Topics": []},
    "OffsetDelete": {"GroupId": "~g", "Topics": [{"Name": "~t", "Partitions": [{"PartitionIndex": 0}]}]},
    "DescribeClientQuotas": {
        "Components": [{"EntityType": "user", "MatchType": 0, "Match": "~nobody"}],
        "Strict": False,
    },
    "DescribeUserScramCredentials": {"Users": None},
    "AlterUserScramCredentials": {"Deletions": [], "Upsertions": []},
    "AlterClientQuotas": {
        "Entries": [{"Entity": [], "Ops": [{"Key": "producer_byte_rate", "Value": 1.0, "Remove": False}]}],
        "ValidateOnly": False,
    },
    "DescribeQuorum": {"Topics": []},
    "DescribeCluster": {},
    "UpdateFeatures": {
        "timeoutMs": 5000,
        "FeatureUpdates": [{"Feature": "nonsense", "MaxVersionLevel": 1}],
        "ValidateOnly": True,
    },
    "DescribeProducers": {"Topics": [{"Name": "~t", "PartitionIndexes": [0]}]},
    "DescribeTransactions": {"TransactionalIds": ["~x"]},
    "ListTransactions": {"StateFilters": ["Ongoing"]},
    "ListConfigResources": {"ResourceTypes": [16]},
    "DescribeTopicPartitions": {"Topics": [{"Name": "~t"}]},
    **{
        step.api: dict(step.body) for step in (make((NOBODY, 0)) for make in (initialize, read, write, delete, summary))
    },
    "ConsumerGroupHeartbeat": {"GroupId": "~g", "MemberId": "~m", "MemberEpoch": 1, "RebalanceTimeoutMs": -1},
    "ConsumerGroupDescribe": {"GroupIds": ["~g"], "IncludeAuthorizedOperations": False},
    "ShareGroupHeartbeat": {"GroupId": "~g", "MemberId": "~m", "MemberEpoch": 1},
    "ShareGroupDescribe": {"GroupIds": ["~g"], "IncludeAuthorizedOperations": False},
    "DescribeShareGroupOffsets": {"Groups": [{"GroupId": "~g", "Topics": None}]},
    "AlterShareGroupOffsets": {"GroupId": "~g", "Topics": []},
    "DeleteShareGroupOffsets": {"GroupId": "~g", "Topics": [{"TopicName": "~none"}]},
    "StreamsGroupHeartbeat": {
        "GroupId": "~g",
        "MemberId": "~m",
        "MemberEpoch": 1,
        "EndpointInformationEpoch": 0,
        "RebalanceTimeoutMs": -1,
        "ShutdownApplication": False,
    },
    "ShareFetch": dict(share_fetch(1, member="nobody").body),
    "ShareAcknowledge": dict(acknowledge(1, member="nobody").body),
    "StreamsGroupDescribe": {"GroupIds": ["~g"], "IncludeAuthorizedOperations": False},
}
"""A valid request of each API, in one form for all its versions."""


def without_last_byte(data: bytes) -> bytes:
    return data[:-1]


def with_more_behind(data: bytes) -> bytes:
    return data + b"more"


def with_odd_client_id(data: bytes) -> bytes:
    return data[:8] + b"\0\6\xff\xfe\xfd" + data[13:]


def with_client_id_length(length: int) -> Any:
    return lambda data: data[:8] + struct.pack(">h", length) + data[16:]


def frame(api_key: int, version: int, body: bytes = b"", *, flexible: bool = False) -> bytes:
    data = struct.pack(">hhih", api_key, version, 1, -1) + (b"\0" if flexible else b"") + body
    return struct.pack(">i", len(data)) + data


UNKNOWN_TAGS = [(200, b"from the future"), (201, b"")]


def of_every_api() -> list[Any]:
    """For each API: a truncated request, a too long one, unknown tags, other client ids."""
    made = []
    for api in ADVERTISED:
        body = PLAIN[api]
        needs_topic = create("~t") if "~t" in repr(body) else []
        mine = api in ("ListGroups", "ListTransactions")
        odd = [
            ask(api, correct=without_last_byte, **body),
            ask(api, mine=mine, correct=with_more_behind, **body),
            ask(api, mine=mine, correct=with_odd_client_id, **body),
            ask(api, mine=mine, client_id=None, **body),
            ask(api, mine=mine, tags=UNKNOWN_TAGS, **body),
        ]
        if api == "JoinGroup":  # each of these would add a member
            odd = [ask(api, correct=without_last_byte, **body)]
        made.append(scenario("frames that are odd", api, needs_topic, odd))
    return made


def out_of_range() -> list[Any]:
    made = []
    for api, (first, last) in ADVERTISED.items():
        if api != "ApiVersions":
            key, flexible = message(f"{api}Request").api_key, message(f"{api}Request").flexible
            versions = sorted({first - 1, last + 1, last + 100, -1, 0} - set(range(first, last + 1)))
            made.append(
                scenario(
                    "versions out of range",
                    api,
                    [
                        raw(frame(key or 0, v, bytes(40), flexible=v in flexible), on=f"v{v}", within=3)
                        for v in versions
                    ],
                    versions=str(last),
                )
            )
    return made


API_VERSIONS = [
    scenario(
        "asked for", "ApiVersions", ask("ApiVersions", ClientSoftwareName="some-client", ClientSoftwareVersion="1.2.3")
    ),
    scenario(
        "a version that nobody knows",
        "ApiVersions",
        raw(frame(18, 5, bytes.fromhex("0161026100"), flexible=True), api="ApiVersions", v=0),
        raw(frame(18, 99, b"\0"), api="ApiVersions", v=0),
        raw(frame(18, 32767), api="ApiVersions", v=0),
        raw(frame(18, -1), api="ApiVersions", v=0),
        versions="0",
    ),
    scenario(
        "names of client software",
        "ApiVersions",
        [
            ask("ApiVersions", ClientSoftwareName=name, ClientSoftwareVersion=version)
            for name, version in [
                ("", "1"),
                ("a", ""),
                ("a_b", "1"),
                ("a-b.c", "1-2.3"),
                ("-a", "1"),
                ("a-", "1"),
                (".a", "1"),
                ("a.", "1"),
                ("a", "-1"),
                ("a b", "1"),
                ("a" * 300, "1" * 300),
                ("ä", "1"),
                ("A9", "v1.0+b"),
            ]
        ],
        versions="3+",
    ),
]

CONNECTIONS = [
    scenario(
        "frames that end a connection",
        "Metadata",
        raw(struct.pack(">i", -1), on="negative length", within=3),
        raw(struct.pack(">i", 0x7FFFFFFF), on="length of 2 GB", within=3),
        raw(struct.pack(">i", 104857601), on="a byte too long", within=3),
        raw(struct.pack(">i", 0), on="empty", within=3),
        raw("00000003001200", on="short header", within=3),
        raw(frame(999, 0), on="unknown api", within=3),
        raw(frame(-1, 0), on="negative api", within=3),
        raw(frame(4, 0), on="gone api", within=3),
        raw(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", on="http", within=3),
        [
            raw(frame(key, 0, bytes(30)), on=f"controller's {key}", within=3)
            for key in (52, 53, 54, 56, 58, 59, 62, 63, 67, 70)
        ],
        raw(frame(7, 0, bytes(30)), on="controlled shutdown", within=3),
        versions="1",
    ),
    scenario(
        "counts that lie",
        "Metadata",
        ask("Metadata", Topics=Raw(struct.pack(">i", 0x7FFFFFFF))),
        ask("Metadata", Topics=Raw(struct.pack(">i", 1000) + b"\0\1a")),
        ask("Metadata", Topics=[{"Name": Raw(struct.pack(">h", 2000) + b"a")}]),
        ask("Metadata", Topics=[{"Name": Raw(struct.pack(">h", -1))}]),
        ask("Metadata", Topics=[{"Name": Raw(struct.pack(">h", -2))}]),
        versions="1-8",
    ),
    scenario(
        "negative counts",
        "Metadata",
        ask("Metadata", mine=True, Topics=Raw(struct.pack(">i", -2)), AllowAutoTopicCreation=False),
        ask("Metadata", mine=True, Topics=Raw(struct.pack(">i", -2147483648)), AllowAutoTopicCreation=False),
        versions="0-8",
    ),
    scenario(
        "counts that lie, compact",
        "Metadata",
        ask("Metadata", mine=True, Topics=Raw(bytes.fromhex("ffffffff0f"))),
        ask("Metadata", Topics=Raw(bytes.fromhex("ffffffffffffff"))),
        ask("Metadata", Topics=Raw(bytes.fromhex("ff07") + bytes(17))),
        ask("Metadata", Topics=[{"Name": Raw(bytes.fromhex("ff7f61"))}]),
        versions="9+",
    ),
    scenario(
        "a bool of two",
        "Metadata",
        ask(
            "Metadata",
            Topics=[{"Name": "~none"}],
            AllowAutoTopicCreation=False,
            IncludeTopicAuthorizedOperations=Raw(b"\2"),
        ),
        versions="8+",
    ),
    scenario(
        "null where it is not nullable",
        "DescribeGroups",
        ask("DescribeGroups", Groups=None),
        ask("DescribeGroups", Groups=[None]),
    ),
    scenario(
        "null arrays and names",
        "Produce",
        ask("Produce", Acks=1, TimeoutMs=1000, TopicData=None),
        ask("Produce", Acks=1, TimeoutMs=1000, TopicData=[{"Name": None, "PartitionData": []}]),
        ask("Produce", Acks=1, TimeoutMs=1000, TopicData=[{"Name": "~t", "PartitionData": None}]),
        versions="3-12",
    ),
    scenario(
        "names that are not UTF-8",
        "Metadata",
        ask("Metadata", Topics=[{"Name": b"\xff\xfe"}], AllowAutoTopicCreation=False),
    ),
    scenario(
        "tags out of order and twice",
        "Metadata",
        create("~t"),
        ask(
            "Metadata",
            Topics=Raw(bytes.fromhex("01")),
            AllowAutoTopicCreation=False,
            correct=lambda data: data[:-1] + bytes.fromhex("02 05 01 61 03 01 62".replace(" ", "")),
        ),
        ask(
            "Metadata",
            Topics=Raw(bytes.fromhex("01")),
            AllowAutoTopicCreation=False,
            correct=lambda data: data[:-1] + bytes.fromhex("02 05 01 61 05 01 62".replace(" ", "")),
        ),
        versions="9+",
    ),
    scenario(
        "several requests in one piece",
        "ApiVersions",
        raw(frame(18, 0) + frame(18, 0) + frame(18, 0), api="ApiVersions", v=0),
        raw(b"", api="ApiVersions", v=0),
        raw(b"", api="ApiVersions", v=0),
        versions="0",
    ),
    scenario(
        "a request in small pieces",
        "ApiVersions",
        *[each for n in range(0, 12, 3) for each in (raw(frame(18, 0)[n : n + 3], within=0.05), pause(0.01))],
        raw(frame(18, 0)[12:], api="ApiVersions", v=0),
        versions="0",
    ),
]

SCENARIOS = [*API_VERSIONS, *CONNECTIONS, *of_every_api(), *out_of_range()]

"""Requests to each API by a user without rights, with some rights, and by the administrator.

Data only: must not open a socket. A stranger and the administrator differ by the address of their connections,
``$host`` and 127.0.0.1: an ACL names a host. In ``rights_by_login.py`` the stranger logs in as ``$user`` instead. The
stranger gets rights on ``~t`` and ``~g``; ``~u`` and ``~h`` are hidden."""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

from .batches import records
from .play import Step
from .scenarios.streams import internal, subtopology
from .share_state_steps import found, initialize
from .steps import ask, commit, create, join_body, seed
from .transaction_steps import TRANSACTIONAL, add_body

TOPIC, GROUP, CLUSTER, TXN, TOKEN, USER = 2, 3, 4, 5, 6, 7
ALL, READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT = range(2, 13)
LITERAL, PREFIXED, DENY, ALLOW = 3, 4, 2, 3

Right = tuple[int, int, str]
"""A kind of resource, an operation, and a name."""


ANONYMOUS, THE_USER = "User:ANONYMOUS", "$principal"


def acl(
    kind: int, operation: int, name: str, *, host: str = "$host", principal: str = ANONYMOUS, allows: int = ALLOW
) -> dict[str, Any]:
    return {
        "ResourceType": kind,
        "ResourceName": "kafka-cluster" if kind == CLUSTER else name,
        "ResourcePatternType": LITERAL,
        "Principal": principal,
        "Host": host,
        "Operation": operation,
        "PermissionType": allows,
    }


def grant(*rights: Right, by_login: bool = False) -> list[Step]:
    """Grants rights to the stranger, and checks that they are in force."""
    whose = {"host": "*", "principal": THE_USER} if by_login else {"host": "$host", "principal": ANONYMOUS}
    any_of = dict.fromkeys(("ResourceTypeFilter", "PatternTypeFilter", "Operation", "PermissionType"), 1)
    kind, operation, _ = rights[-1]
    there = {
        "ResourceTypeFilter": kind,
        "ResourceNameFilter": None,
        "Operation": operation,
        "PrincipalFilter": whose["principal"],
        "HostFilter": whose["host"],
    }
    return [
        ask("CreateAcls", v=3, quiet=True, Creations=[acl(*right, **whose) for right in rights]),
        ask("DescribeAcls", v=3, quiet=True, until=("Resources.0.Acls.0.Host", whose["host"]), **(any_of | there)),
    ]


class Requested(NamedTuple):
    """The requests of an API, and the rights that count as some."""

    body: dict[str, Any]
    some: tuple[Right, ...]
    before: tuple[Step, ...] = ()
    versions: str = ""
    name: str = ""
    within: float = 10.0


def topics(*names: str, field: str = "Name", **more: Any) -> list[dict[str, Any]]:
    """Returns the topics of a request, by names and by ids."""
    return [{field: name, "TopicId": f"$id {name}", **more} for name in names]


def named(*names: str, **more: Any) -> list[dict[str, Any]]:
    """Returns the topics of a request that has names only."""
    return [{"Name": name, **more} for name in names]


def share_state(**partition: Any) -> dict[str, Any]:
    """Returns the body of a request between brokers about one share partition."""
    return {"GroupId": "~g", "Topics": [{"TopicId": "$id ~t", "Partitions": [{"Partition": 0, **partition}]}]}


T: Sequence[str] = ("~t", "~u", "~none")
BATCH = records("one")
IN_A_TRANSACTION = records("one", producer_id=900_000_001, producer_epoch=0, sequence=0, attributes=TRANSACTIONAL)
ON_CLUSTER = {
    "DescribeAcls": DESCRIBE,
    "AlterReplicaLogDirs": ALTER,
    "DescribeLogDirs": DESCRIBE,
    "ElectLeaders": ALTER,
    "AlterPartitionReassignments": ALTER,
    "ListPartitionReassignments": DESCRIBE,
    "DescribeQuorum": DESCRIBE,
    "ListConfigResources": DESCRIBE_CONFIGS,
    "WriteTxnMarkers": ALTER,
    "DescribeClientQuotas": DESCRIBE_CONFIGS,
    "DescribeUserScramCredentials": DESCRIBE,
    "AlterUserScramCredentials": ALTER,
    "InitializeShareGroupState": ACTION,
    "ReadShareGroupState": ACTION,
    "WriteShareGroupState": ACTION,
    "DeleteShareGroupState": ACTION,
    "ReadShareGroupStateSummary": ACTION,
}
ANY_ACL = {
    **dict.fromkeys(("ResourceTypeFilter", "PatternTypeFilter", "Operation", "PermissionType"), 1),
    "ResourceNameFilter": "~nothing",
    "PrincipalFilter": None,
    "HostFilter": None,
}
BODIES: dict[str, dict[str, Any]] = {
    "DescribeAcls": ANY_ACL,
    "AlterReplicaLogDirs": {"Dirs": [{"Path": "/nowhere", "Topics": named("~t", "~none", Partitions=[0])}]},
    "DescribeLogDirs": {"Topics": [{"Topic": "~t", "Partitions": [0]}]},
    "ElectLeaders": {"ElectionType": 0, "TopicPartitions": [{"Topic": "~t", "Partitions": [0]}], "TimeoutMs": 9000},
    "AlterPartitionReassignments": {
        "TimeoutMs": 9000,
        "Topics": [{"Name": "~t", "Partitions": [{"PartitionIndex": 0, "Replicas": [1]}]}],
    },
    "ListPartitionReassignments": {"TimeoutMs": 9000, "Topics": [{"Name": "~t", "PartitionIndexes": [0]}]},
    "DescribeQuorum": {"Topics": [{"TopicName": "__cluster_metadata", "Partitions": [{"PartitionIndex": 0}]}]},
    "ListConfigResources": {"ResourceTypes": [16]},
    "WriteTxnMarkers": {
        "Markers": [
            {
                "ProducerId": 900_000_001,
                "ProducerEpoch": 0,
                "TransactionResult": False,
                "CoordinatorEpoch": 0,
                "Topics": [{"Name": "~none", "PartitionIndexes": [0]}],
            }
        ]
    },
    "DescribeClientQuotas": {"Components": [{"EntityType": "user", "MatchType": 0, "Match": "~a"}], "Strict": True},
    "DescribeUserScramCredentials": {"Users": [{"Name": "~a"}]},
    "AlterUserScramCredentials": {"Deletions": [{"Name": "~a", "Mechanism": 1}], "Upsertions": []},
    "InitializeShareGroupState": share_state(StateEpoch=0, StartOffset=0),
    "ReadShareGroupState": share_state(LeaderEpoch=0),
    "WriteShareGroupState": share_state(
        StateEpoch=0, LeaderEpoch=0, StartOffset=0, DeliveryCompleteCount=0, StateBatches=[]
    ),
    "DeleteShareGroupState": share_state(),
    "ReadShareGroupStateSummary": share_state(LeaderEpoch=0),
}


def produced(*names: str, batch: Any = BATCH, **more: Any) -> dict[str, Any]:
    rows = [{"Index": 0, "Records": batch}]
    return {"Acks": 1, "TimeoutMs": 9000, "TopicData": topics(*names, PartitionData=rows), **more}


def fetched(*names: str, **more: Any) -> dict[str, Any]:
    rows = [{"Partition": 0, "FetchOffset": 0, "PartitionMaxBytes": 1 << 20}]
    wanted = {
        "MaxWaitMs": 100,
        "MinBytes": 0,
        "ReplicaId": -1,
        "Topics": topics(*names, field="Topic", Partitions=rows),
    }
    return wanted | more


def commits(*names: str, **more: Any) -> dict[str, Any]:
    rows = [{"PartitionIndex": 0, "CommittedOffset": 3, "CommittedMetadata": "m"}]
    return {"GroupId": "~g", "MemberId": "", "Topics": topics(*names, Partitions=rows), **more}


def created(*names: str) -> dict[str, Any]:
    wanted = {"NumPartitions": 1, "ReplicationFactor": 1, "Assignments": [], "Configs": []}
    return {"Topics": [{"Name": name, **wanted} for name in names], "timeoutMs": 9000}


def resources(*given: tuple[int, str], **more: Any) -> dict[str, Any]:
    return {"Resources": [{"ResourceType": kind, "ResourceName": name, **more} for kind, name in given]}


def heartbeat(**more: Any) -> dict[str, Any]:
    defaults = {"GroupId": "~n", "MemberId": "m", "MemberEpoch": 0, "RebalanceTimeoutMs": 9000}
    return {**defaults, "TopicPartitions": [], "SubscribedTopicNames": ["~t"], **more}


OFFSETS = (commit("~t", quiet=True), commit("~u", quiet=True), commit("~t", group="~h", quiet=True))
READ_GROUP, READ_T, DESCRIBE_T = (GROUP, READ, "~g"), (TOPIC, READ, "~t"), (TOPIC, DESCRIBE, "~t")
DESCRIBE_GROUP, WRITE_X = (GROUP, DESCRIBE, "~g"), (TXN, WRITE, "~x")
BY_GROUP = {"GroupId": "~g", "MemberId": "m", "GenerationId": 1}
CONFIGS = ((2, "~t"), (2, "~u"), (2, "~none"), (4, "1"), (32, "~g"), (32, "~h"), (4, "77"))
COMMITTED = [{"Name": name, "TopicId": f"$id {name}", "PartitionIndexes": [0]} for name in T]

SHARING = {"GroupId": "~n", "MemberId": "AAAAAAAAAAAAAAAAAAAAAA", "MemberEpoch": 0, "SubscribedTopicNames": ["~t"]}
IN_TRANSACTION = {
    "GroupId": "~g",
    "TransactionalId": "~x",
    "ProducerId": 900_000_001,
    "ProducerEpoch": 0,
    "Topics": named(*T, Partitions=[{"PartitionIndex": 0, "CommittedOffset": 3, "CommittedMetadata": "m"}]),
}

WRITTEN = produced("~t", "~u", batch=IN_A_TRANSACTION, TransactionalId="~x")
SESSION_MEMBER = {"GroupId": "~g", "MemberId": "AAAAAAAAAAAAAAAAAAAAAA"}
SHARE_FETCH = {
    **SESSION_MEMBER,
    "MaxWaitMs": 100,
    "MinBytes": 0,
    "MaxBytes": 1000,
    "MaxRecords": 10,
    "BatchSize": 10,
    "ForgottenTopicsData": [],
}


def share_partitions(*names: str) -> list[dict[str, Any]]:
    """Returns acknowledgements of one record of each topic."""
    batches = [{"FirstOffset": 0, "LastOffset": 0, "AcknowledgeTypes": [1]}]
    rows = [{"PartitionIndex": 0, "AcknowledgementBatches": batches}]
    return [{"TopicId": f"$id {name}", "Partitions": rows} for name in names]


REQUESTS: dict[str, list[Requested]] = {
    **{api: [Requested(BODIES[api], ((CLUSTER, operation, ""),))] for api, operation in ON_CLUSTER.items()},
    "DescribeUserScramCredentials": [
        Requested(BODIES["DescribeUserScramCredentials"], ((CLUSTER, DESCRIBE, ""),)),
        Requested({"Users": None}, ((CLUSTER, DESCRIBE, ""),), name="of all users", within=2.0),
    ],
    "Produce": [
        Requested(produced(*T), ((TOPIC, WRITE, "~t"),)),
        Requested(produced("~u", Acks=0), (DESCRIBE_T,), name="acks=0", within=1.0),
        Requested(WRITTEN, ((TOPIC, WRITE, "~t"),), name="in a transaction, without the transactional id"),
        Requested(WRITTEN, (WRITE_X, (TOPIC, WRITE, "~t")), name="in a transaction"),
        Requested(
            produced("~t", batch=IN_A_TRANSACTION), (WRITE_X, (TOPIC, WRITE, "~t")), name="in a transaction of no id"
        ),
    ],
    "Fetch": [
        Requested(fetched(*T), (READ_T,)),
        Requested(
            fetched(*T, ReplicaId=7, ReplicaState={"ReplicaId": 7, "ReplicaEpoch": 1}), (READ_T,), name="follower"
        ),
    ],
    "ListOffsets": [
        Requested(
            {"ReplicaId": -1, "Topics": named(*T, Partitions=[{"PartitionIndex": 0, "Timestamp": -1}])}, (DESCRIBE_T,)
        )
    ],
    "Metadata": [
        Requested(
            {
                "Topics": [{"Name": name} for name in ("~t", "~u", "~none")],
                "AllowAutoTopicCreation": False,
                "IncludeTopicAuthorizedOperations": True,
                "IncludeClusterAuthorizedOperations": True,
            },
            (DESCRIBE_T, (TOPIC, DESCRIBE, "~none"), (CLUSTER, ALTER, "")),
        ),
        Requested(
            {"Topics": [{"TopicId": f"$id {name}", "Name": None} for name in T], "AllowAutoTopicCreation": False},
            (DESCRIBE_T,),
            versions="12+",
            name="by id",
        ),
        Requested(
            {"Topics": [{"Name": "~new"}, {"Name": "~t"}], "AllowAutoTopicCreation": True},
            (DESCRIBE_T, (TOPIC, DESCRIBE, "~new")),
            versions="4+",
            name="creation",
        ),
    ],
    "OffsetCommit": [Requested(commits(*T), (READ_GROUP, READ_T))],
    "OffsetFetch": [
        Requested(
            {
                "GroupId": "~g",
                "Topics": named(*T, PartitionIndexes=[0]),
                "Groups": [{"GroupId": "~g", "Topics": COMMITTED}, {"GroupId": "~h", "Topics": COMMITTED}],
            },
            (DESCRIBE_GROUP, DESCRIBE_T),
            before=OFFSETS,
        ),
        Requested(
            {"GroupId": "~g", "Topics": None, "Groups": [{"GroupId": "~g", "Topics": None}]},
            (DESCRIBE_GROUP, DESCRIBE_T),
            before=OFFSETS,
            versions="2+",
            name="all topics",
        ),
    ],
    "FindCoordinator": [
        Requested({"Key": "~g", "KeyType": 0, "CoordinatorKeys": ["~g", "~h"]}, (DESCRIBE_GROUP,)),
        Requested(
            {"Key": "~x", "KeyType": 1, "CoordinatorKeys": ["~x", "~y"]},
            ((TXN, DESCRIBE, "~x"),),
            versions="1+",
            name="transactions",
        ),
        Requested(
            {"KeyType": 2, "CoordinatorKeys": ["~g:AAAAAAAAAAAAAAAAAAAAAA:0"]},
            ((CLUSTER, ACTION, ""),),
            versions="6",
            name="shares",
        ),
    ],
    "JoinGroup": [Requested(join_body("~g", SessionTimeoutMs=600), (READ_GROUP,))],
    "Heartbeat": [Requested(BY_GROUP, (READ_GROUP,))],
    "LeaveGroup": [Requested({"GroupId": "~g", "MemberId": "m", "Members": [{"MemberId": "m"}]}, (READ_GROUP,))],
    "SyncGroup": [
        Requested({**BY_GROUP, "ProtocolType": "consumer", "ProtocolName": "range", "Assignments": []}, (READ_GROUP,)),
        Requested(
            {**BY_GROUP, "ProtocolType": None, "ProtocolName": None, "Assignments": []},
            (READ_GROUP,),
            name="without protocol",
        ),
    ],
    "DescribeGroups": [
        Requested(
            {"Groups": ["~g", "~h", "~nobody"], "IncludeAuthorizedOperations": True},
            (DESCRIBE_GROUP, (GROUP, READ, "~nobody")),
            before=OFFSETS,
        )
    ],
    "ListGroups": [
        Requested({}, (DESCRIBE_GROUP,), before=OFFSETS),
        Requested({}, ((CLUSTER, DESCRIBE, ""),), before=OFFSETS, name="cluster"),
    ],
    "CreateTopics": [
        Requested(created("~a", "~b", "~t", "~d", "~d", "__cluster_metadata"), ((TOPIC, CREATE, "~a"),)),
        Requested(created("~e"), ((CLUSTER, CREATE, ""), (TOPIC, DESCRIBE_CONFIGS, "~e")), name="cluster"),
    ],
    "DeleteTopics": [
        Requested(
            {
                "TopicNames": ["~t", "~u", "~none"],
                "Topics": [{"Name": name, "TopicId": bytes(16)} for name in ("~t", "~u", "~none")],
                "TimeoutMs": 9000,
            },
            ((TOPIC, DELETE, "~t"), (TOPIC, DESCRIBE, "~u")),
        ),
        Requested(
            {"Topics": [{"Name": None, "TopicId": f"$id {name}"} for name in T], "TimeoutMs": 9000},
            ((TOPIC, DESCRIBE, "~u"),),
            versions="6",
            name="by id",
        ),
    ],
    "DeleteRecords": [
        Requested(
            {"Topics": named(*T, Partitions=[{"PartitionIndex": 0, "Offset": 0}]), "TimeoutMs": 9000},
            ((TOPIC, DELETE, "~t"),),
        )
    ],
    "InitProducerId": [
        Requested({"TransactionalId": None, "TransactionTimeoutMs": 9000}, ((TOPIC, WRITE, "~t"),)),
        Requested(
            {"TransactionalId": None, "TransactionTimeoutMs": 9000},
            ((CLUSTER, IDEMPOTENT, ""),),
            name="idempotent write",
        ),
        Requested({"TransactionalId": "~x", "TransactionTimeoutMs": 9000}, (WRITE_X,), name="transactional"),
    ],
    "OffsetForLeaderEpoch": [
        Requested(
            {
                "ReplicaId": -1,
                "Topics": [{"Topic": name, "Partitions": [{"Partition": 0, "LeaderEpoch": 0}]} for name in T],
            },
            (DESCRIBE_T,),
        )
    ],
    "AddPartitionsToTxn": [
        Requested(
            add_body("~x", (("~t", (0,)), ("~u", (0,)), ("~none", (0,))), pid=900_000_001),
            (WRITE_X, (TOPIC, WRITE, "~t"), (TOPIC, WRITE, "~none")),
        )
    ],
    "AddOffsetsToTxn": [
        Requested({"TransactionalId": "~x", "ProducerId": 900_000_001, "ProducerEpoch": 0, "GroupId": "~g"}, (WRITE_X,))
    ],
    "EndTxn": [
        Requested(
            {"TransactionalId": "~x", "ProducerId": 900_000_001, "ProducerEpoch": 0, "Committed": True}, (WRITE_X,)
        )
    ],
    "TxnOffsetCommit": [
        Requested(IN_TRANSACTION, (WRITE_X,), name="no group"),
        Requested(IN_TRANSACTION, (WRITE_X, READ_GROUP, READ_T)),
    ],
    "DescribeConfigs": [
        Requested(
            resources(*CONFIGS, ConfigurationKeys=["cleanup.policy"]),
            ((TOPIC, DESCRIBE_CONFIGS, "~t"), (GROUP, DESCRIBE_CONFIGS, "~g")),
        )
    ],
    "AlterConfigs": [
        Requested(
            resources(*CONFIGS, Configs=[]) | {"ValidateOnly": True},
            ((TOPIC, ALTER_CONFIGS, "~t"), (GROUP, ALTER_CONFIGS, "~g")),
        )
    ],
    "IncrementalAlterConfigs": [
        Requested(
            resources(*CONFIGS, (2, "~t"), Configs=[]) | {"ValidateOnly": True},
            ((TOPIC, ALTER_CONFIGS, "~t"), (GROUP, ALTER_CONFIGS, "~g")),
        )
    ],
    "CreatePartitions": [
        Requested(
            {
                "Topics": [{"Name": name, "Count": 2, "Assignments": None} for name in (*T, "~d", "~d")],
                "TimeoutMs": 9000,
            },
            ((TOPIC, ALTER, "~t"),),
        )
    ],
    "DeleteGroups": [Requested({"GroupsNames": ["~g", "~h"]}, ((GROUP, DELETE, "~g"),), before=OFFSETS)],
    "OffsetDelete": [
        Requested(
            {"GroupId": "~g", "Topics": named(*T, Partitions=[{"PartitionIndex": 0}])},
            ((GROUP, DELETE, "~g"), READ_T),
            before=OFFSETS,
        )
    ],
    "DescribeCluster": [Requested({"IncludeClusterAuthorizedOperations": True}, ((CLUSTER, ALTER, ""),))],
    "DescribeProducers": [Requested({"Topics": named(*T, PartitionIndexes=[0])}, (READ_T,))],
    "DescribeTransactions": [Requested({"TransactionalIds": ["~x", "~y"]}, ((TXN, DESCRIBE, "~x"),))],
    "ListTransactions": [Requested({"StateFilters": [], "ProducerIdFilters": []}, ((TXN, DESCRIBE, "~x"),))],
    "DescribeTopicPartitions": [  # several hidden topics have no defined order
        Requested({"Topics": named("~t"), "ResponsePartitionLimit": 10}, (DESCRIBE_T,)),
        Requested(
            {"Topics": named("~t", "~u"), "ResponsePartitionLimit": 10},
            ((TOPIC, READ, "~u"),),
            before=tuple(grant(DESCRIBE_T)),
            name="one of two",
        ),
    ],
    "ConsumerGroupHeartbeat": [
        Requested(heartbeat(), ((GROUP, READ, "~n"),)),
        Requested(
            heartbeat(SubscribedTopicNames=["~t", "~u"]), ((GROUP, READ, "~n"), DESCRIBE_T), name="a hidden topic"
        ),
    ],
    "ConsumerGroupDescribe": [
        Requested({"GroupIds": ["~g", "~h"], "IncludeAuthorizedOperations": True}, (DESCRIBE_GROUP,))
    ],
    "ShareGroupHeartbeat": [Requested(SHARING, ((GROUP, READ, "~n"),))],
    "ShareGroupDescribe": [
        Requested({"GroupIds": ["~g", "~h"], "IncludeAuthorizedOperations": True}, (DESCRIBE_GROUP,))
    ],
    "StreamsGroupDescribe": [
        Requested({"GroupIds": ["~g", "~h"], "IncludeAuthorizedOperations": True}, (DESCRIBE_GROUP,))
    ],
    "StreamsGroupHeartbeat": [
        Requested(
            {
                "GroupId": "~n",
                "MemberId": "m",
                "MemberEpoch": 0,
                "RebalanceTimeoutMs": 9000,
                "ProcessId": "p",
                "Topology": {"Epoch": 0, "Subtopologies": [subtopology(StateChangelogTopics=[internal("~n-store")])]},
                "ActiveTasks": [],
                "StandbyTasks": [],
                "WarmupTasks": [],
            },
            ((GROUP, READ, "~n"), DESCRIBE_T, (TOPIC, DESCRIBE, "~n-store")),
        )
    ],
    "DescribeShareGroupOffsets": [
        Requested(
            {
                "Groups": [
                    {"GroupId": group, "Topics": [{"TopicName": name, "Partitions": [0]} for name in T]}
                    for group in ("~g", "~h")
                ]
            },
            (DESCRIBE_GROUP, DESCRIBE_T),
        )
    ],
    "AlterShareGroupOffsets": [
        Requested(
            {
                "GroupId": "~g",
                "Topics": [{"TopicName": name, "Partitions": [{"PartitionIndex": 0, "StartOffset": 0}]} for name in T],
            },
            (READ_GROUP, READ_T),
        )
    ],
    "DeleteShareGroupOffsets": [
        Requested({"GroupId": "~g", "Topics": [{"TopicName": name} for name in T]}, ((GROUP, DELETE, "~g"), READ_T))
    ],
    "ShareFetch": [
        Requested({**SHARE_FETCH, "ShareSessionEpoch": -1, "Topics": []}, (READ_GROUP,)),
        Requested(
            {**SHARE_FETCH, "ShareSessionEpoch": -1, "Topics": share_partitions(*T)},
            (READ_GROUP, READ_T),
            name="acknowledging",
        ),
        Requested(
            {
                **SHARE_FETCH,
                "ShareSessionEpoch": 0,
                "Topics": [{"TopicId": f"$id {name}", "Partitions": [{"PartitionIndex": 0}]} for name in ("~t", "~u")],
            },  # for a missing topic Apache Kafka answers UNKNOWN_SERVER_ERROR
            (READ_GROUP, READ_T),
            before=(found(), initialize(("~t", 0), ("~u", 0), quiet=True)),
            name="a new session",
        ),
    ],
    "ShareAcknowledge": [
        Requested({**SESSION_MEMBER, "ShareSessionEpoch": -1, "Topics": share_partitions(*T)}, (READ_GROUP, READ_T)),
        Requested(
            {**SESSION_MEMBER, "ShareSessionEpoch": 1, "Topics": share_partitions(*T)}, (READ_T,), name="no group"
        ),
        Requested(
            {**SESSION_MEMBER, "ShareSessionEpoch": 1, "Topics": share_partitions("~u")}, (READ_GROUP,), name="no topic"
        ),
    ],
    "CreateAcls": [Requested({"Creations": [acl(TOPIC, READ, "~t"), acl(TOPIC, READ, "")]}, ((CLUSTER, ALTER, ""),))],
    "DeleteAcls": [Requested({"Filters": [ANY_ACL, ANY_ACL]}, ((CLUSTER, ALTER, ""),))],
    "UpdateFeatures": [
        Requested(
            {"timeoutMs": 9000, "FeatureUpdates": [{"Feature": "no.such", "MaxVersionLevel": 1}]},
            ((CLUSTER, ALTER, ""),),
        )
    ],
    "AlterClientQuotas": [Requested({"Entries": [], "ValidateOnly": True}, ((CLUSTER, ALTER_CONFIGS, ""),))],
}


def steps_of(api: str, request: Requested, *, by_login: bool = False) -> Iterable[Any]:
    """The stranger sends the request without rights and with some; then the administrator does."""
    mine = api in ("ListGroups", "ListTransactions", "ListConfigResources")
    question = partial(ask, api, mine=mine, within=request.within, **request.body)
    stranger = "user" if by_login else "stranger"
    yield from (create("~t"), create("~u"), seed("~t", "a"), seed("~u", "a"), *request.before)
    yield question(on=stranger)
    yield grant(*request.some, by_login=by_login)
    yield question(on=stranger)
    yield question()

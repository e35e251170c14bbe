"""The scenarios of rights: every API by a user without rights, with some, and by the administrator; and those of ACLs.

Data only: must not open a socket.
"""

from typing import Any

from .rights_steps import (
    ALL,
    ALLOW,
    ANY_ACL,
    CLUSTER,
    DENY,
    DESCRIBE_T,
    GROUP,
    LITERAL,
    PREFIXED,
    READ,
    READ_T,
    REQUESTS,
    TOPIC,
    acl,
    fetched,
    grant,
    heartbeat,
    steps_of,
)
from .steps import ask, create, published, scenario, seed

EVERY_ERROR = (
    {"ResourceName": ""},
    {"ResourceType": CLUSTER, "ResourceName": "*"},
    {"ResourceType": CLUSTER, "ResourceName": "kafka", "ResourcePatternType": PREFIXED},
    {"ResourceType": CLUSTER, "ResourceName": "kafka-cluster", "ResourcePatternType": PREFIXED},
    {"ResourceType": CLUSTER, "ResourceName": ""},
    {"ResourceType": 1},
    {"ResourceType": 99},
    {"ResourcePatternType": 1},
    {"ResourcePatternType": 2},
    {"ResourcePatternType": 99},
    {"Operation": 1},
    {"Operation": 99},
    {"PermissionType": 1},
    {"PermissionType": 99},
    {"Principal": "alice"},
    {"Principal": ""},
    {"Principal": ":alice"},
    {"Principal": "User:"},
    {"Principal": "user:x"},
    {"Host": "localhost"},
    {"Host": ""},
)


def filters(*given: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns filters of the ACLs of one user, so that the administrator's ACLs stay."""
    return [{**ANY_ACL, "ResourceNameFilter": "~t", "PrincipalFilter": "User:~a", **each} for each in given]


OF_FILTERS = (
    {},
    {"PatternTypeFilter": 2},
    {"PatternTypeFilter": 2, "ResourceNameFilter": "~tx"},
    {"PatternTypeFilter": LITERAL},
    {"PatternTypeFilter": PREFIXED},
    {"ResourceNameFilter": "*", "PatternTypeFilter": LITERAL},
    {"Operation": READ},
    {"Operation": ALL},
    {"PermissionType": DENY},
    {"HostFilter": "h"},
    {"ResourceNameFilter": None},
    {"Operation": 99},
    {"PermissionType": 99},
    {"ResourceTypeFilter": 99},
    {"PatternTypeFilter": 99},
)
SOME_ACLS = ask(
    "CreateAcls",
    v=3,
    quiet=True,
    Creations=[
        {**acl(kind, operation, "~t", host=host, allows=allows), "ResourcePatternType": pattern, "Principal": "User:~a"}
        for kind, operation, host, allows, pattern in (
            (TOPIC, READ, "*", ALLOW, LITERAL),
            (TOPIC, ALL, "h", DENY, LITERAL),
            (TOPIC, READ, "*", ALLOW, PREFIXED),
            (GROUP, READ, "*", ALLOW, LITERAL),
        )
    ],
)
SOME_IN_FORCE = ask(
    "DescribeAcls",
    v=3,
    quiet=True,
    until=("Resources.0.ResourceType", GROUP),
    **(ANY_ACL | {"ResourceTypeFilter": GROUP, "ResourceNameFilter": "~t"}),
)
"""Waits for the last of SOME_ACLS: Apache Kafka's controller answers CreateAcls before its broker's authorizer has the
ACLs, and AclPublisher adds one after the other, in the order of the request."""

UNREADABLE = ("ResourceType", "ResourcePatternType", "Operation", "PermissionType")

ABOUT_ACLS = [
    scenario(
        "every error",
        "CreateAcls",
        *(ask("CreateAcls", Creations=[acl(TOPIC, READ, "~t") | each]) for each in EVERY_ERROR),
    ),
    scenario(
        "several",
        "CreateAcls",
        ask("CreateAcls", Creations=[acl(TOPIC, READ, "~t"), acl(TOPIC, READ, ""), acl(TOPIC, READ, "~t")]),
    ),
    scenario(
        "a code of 0",
        "CreateAcls",
        *(ask("CreateAcls", Creations=[acl(TOPIC, READ, "~t") | {each: 0}]) for each in UNREADABLE),
        versions="3",
    ),
    scenario(
        "every filter",
        "DescribeAcls",
        SOME_ACLS,
        SOME_IN_FORCE,
        *(ask("DescribeAcls", **each) for each in filters(*OF_FILTERS)),
    ),
    scenario(
        "a code of 0",
        "DescribeAcls",
        ask("DescribeAcls", **(ANY_ACL | {"Operation": 0})),
        ask("DescribeAcls", **(ANY_ACL | {"ResourceTypeFilter": 0})),
    ),
    scenario(
        "every filter", "DeleteAcls", *((SOME_ACLS, ask("DeleteAcls", Filters=filters(each))) for each in OF_FILTERS)
    ),
    scenario(
        "overlapping",
        "DeleteAcls",
        SOME_ACLS,
        ask("DeleteAcls", Filters=filters({}, {"Operation": READ}, {"Operation": 99})),
    ),
    scenario("a code of 0", "DeleteAcls", ask("DeleteAcls", Filters=filters({"Operation": 0}))),
]
"""The requests about ACLs with every error, sent by the administrator."""

REGEX = heartbeat(SubscribedTopicNames=None, SubscribedTopicRegex="~[tu]")
BY_REGEX = scenario(
    "rights by regular expression",
    "ConsumerGroupHeartbeat",
    create("~t"),
    create("~u"),
    grant((GROUP, READ, "~n"), DESCRIBE_T),
    ask("ConsumerGroupHeartbeat", on="stranger", **REGEX),
    ask("ConsumerGroupHeartbeat", on="stranger", until=("Assignment.TopicPartitions.0.Partitions.0", 0), **REGEX),
    ask("ConsumerGroupDescribe", GroupIds=["~n"], IncludeAuthorizedOperations=True),
    ask("ConsumerGroupDescribe", on="stranger", GroupIds=["~n"], IncludeAuthorizedOperations=True),
    versions="1",
)

SESSION = {"SessionId": 0, "SessionEpoch": 0, "ForgottenTopicsData": []}
IN_SESSION = scenario(
    "rights in a session",
    "Fetch",
    create("~t"),
    create("~u"),
    seed("~t", "a"),
    seed("~u", "a"),
    grant(READ_T),
    ask("Fetch", on="stranger", save={"$s": "SessionId"}, **(fetched("~t", "~u") | SESSION)),
    ask("Fetch", on="stranger", **(fetched() | SESSION | {"SessionId": "$s", "SessionEpoch": 1})),
    grant((TOPIC, READ, "~u")),
    ask("Fetch", on="stranger", **(fetched() | SESSION | {"SessionId": "$s", "SessionEpoch": 2})),
    ask(
        "DeleteAcls",
        v=3,
        Filters=[{**ANY_ACL, "ResourceNameFilter": None, "HostFilter": "$host", "Operation": READ}],
        quiet=True,
    ),
    published(),
    ask("Fetch", on="stranger", **(fetched() | SESSION | {"SessionId": "$s", "SessionEpoch": 3})),
    versions="7+",
)

SCENARIOS = [
    *ABOUT_ACLS,
    BY_REGEX,
    IN_SESSION,
    *(
        scenario(f"rights {request.name}".strip(), api, *steps_of(api, request), versions=request.versions)
        for api, those in REQUESTS.items()
        for request in those
    ),
]

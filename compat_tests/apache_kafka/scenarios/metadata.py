"""Metadata, FindCoordinator and DescribeTopicPartitions: leaders and coordinators."""

from ..codec import ZERO_UUID
from ..steps import ask, create, gone, ready, scenario

NAMES = ["", ".", "..", "a b", "a/b", "ä", "a" * 249, "a" * 250, "a:b", "a\n", "__x", "a.b_c-D9"]

METADATA = [
    scenario("no topics", "Metadata", ask("Metadata", Topics=[], AllowAutoTopicCreation=False), versions="1+"),
    scenario("all topics", "Metadata", create("~t", 3), ask("Metadata", mine=True, Topics=None), versions="1+"),
    scenario(
        "all topics, in the oldest way",
        "Metadata",
        create("~t", 3),
        ask("Metadata", mine=True, Topics=[]),
        versions="0",
    ),
    scenario(
        "a topic, one that is not there, the same again",
        "Metadata",
        create("~t", 3),
        ask("Metadata", Topics=[{"Name": "~t"}, {"Name": "~none"}, {"Name": "~t"}], AllowAutoTopicCreation=False),
        versions="4+",
    ),
    scenario(
        "authorized operations",
        "Metadata",
        create("~t"),
        ask(
            "Metadata",
            Topics=[{"Name": "~t"}, {"Name": "~none"}],
            AllowAutoTopicCreation=False,
            IncludeClusterAuthorizedOperations=True,
            IncludeTopicAuthorizedOperations=True,
        ),
        versions="8+",
    ),
    scenario(
        "illegal names",
        "Metadata",
        [ask("Metadata", Topics=[{"Name": name}], AllowAutoTopicCreation=False) for name in NAMES],
        versions="4+",
    ),
    scenario(
        "illegal names, to be made",
        "Metadata",
        [
            ask("Metadata", Topics=[{"Name": name}], AllowAutoTopicCreation=True)
            for name in NAMES
            if name not in ("__x", "a.b_c-D9", "a" * 249)
        ],
    ),
    scenario(
        "a topic is made when it is asked for",
        "Metadata",
        ask("Metadata", Topics=[{"Name": "~auto"}], AllowAutoTopicCreation=True),
        ready("~auto", 2),
        ask("Metadata", Topics=[{"Name": "~auto"}], AllowAutoTopicCreation=True),
        ask(
            "DescribeConfigs",
            v=1,
            Resources=[{"ResourceType": 2, "ResourceName": "~auto", "ConfigurationKeys": ["retention.ms"]}],
        ),
    ),
    scenario(
        "by id",
        "Metadata",
        create("~t", 2),
        ask("Metadata", Topics=[{"TopicId": "$id ~t", "Name": None}]),
        ask("Metadata", Topics=[{"TopicId": b"\1" * 16, "Name": None}]),
        ask("Metadata", Topics=[{"TopicId": ZERO_UUID, "Name": None}]),
        ask("Metadata", Topics=[{"TopicId": "$id ~t", "Name": "~t"}]),
        ask("Metadata", Topics=[{"TopicId": "$id ~t", "Name": None}, {"TopicId": ZERO_UUID, "Name": "~t"}]),
        ask("Metadata", Topics=[{"TopicId": "$id ~t", "Name": None}, {"TopicId": b"\2" * 16, "Name": None}]),
        versions="10+",
    ),
    scenario(
        "a name of null",
        "Metadata",
        ask("Metadata", Topics=[{"Name": None}]),
        versions="9",
    ),
    scenario(
        "a topic that is made again",
        "Metadata",
        create("~t"),
        ask("DeleteTopics", v=5, TopicNames=["~t"], TimeoutMs=5000),
        gone("~t"),
        create("~t"),
        ask("Metadata", Topics=[{"Name": "~t"}]),
    ),
    scenario(
        "names that collide",
        "Metadata",
        create("~a.b"),
        ask("Metadata", Topics=[{"Name": "~a_b"}], AllowAutoTopicCreation=True),
        ask("Metadata", Topics=[{"Name": "~a_b"}], AllowAutoTopicCreation=False),
        versions="4+",
    ),
    scenario("the internal topic", "Metadata", ask("Metadata", Topics=[{"Name": "__consumer_offsets"}]), versions="1+"),
]

COORDINATORS = [
    scenario("of a group", "FindCoordinator", ask("FindCoordinator", Key="~g", KeyType=0, CoordinatorKeys=["~g"])),
    scenario("of an empty group", "FindCoordinator", ask("FindCoordinator", Key="", KeyType=0, CoordinatorKeys=[""])),
    scenario(
        "of many groups",
        "FindCoordinator",
        ask("FindCoordinator", KeyType=0, CoordinatorKeys=["~a", "~b", "~a", "", "~c"]),
        ask("FindCoordinator", KeyType=0, CoordinatorKeys=[]),
        versions="4+",
    ),
    scenario(
        "of kinds that there are not",
        "FindCoordinator",
        ask("FindCoordinator", patient=False, Key="~g", KeyType=3, CoordinatorKeys=["~g"]),
        ask("FindCoordinator", patient=False, Key="~g", KeyType=-1, CoordinatorKeys=["~g"]),
        ask("FindCoordinator", patient=False, Key="~g", KeyType=100, CoordinatorKeys=["~g"]),
        versions="1+",
    ),
    scenario(
        "of a share group's partition",
        "FindCoordinator",
        ask("FindCoordinator", patient=False, Key="~g", KeyType=2, CoordinatorKeys=["~g"]),
        ask("FindCoordinator", patient=False, Key="~g:x:0", KeyType=2, CoordinatorKeys=["~g:x:0"]),
        versions="1-5",
    ),
]

TOPIC_PARTITIONS = [
    scenario(
        "of a topic",
        "DescribeTopicPartitions",
        create("~t", 3),
        ask("DescribeTopicPartitions", Topics=[{"Name": "~t"}]),
    ),
    scenario(
        "of several, unsorted, twice, unknown",
        "DescribeTopicPartitions",
        create("~b", 2),
        create("~a", 2),
        ask("DescribeTopicPartitions", Topics=[{"Name": n} for n in ("~b", "~none", "~a", "~b", "a b", "")]),
    ),
    scenario(
        "page by page",
        "DescribeTopicPartitions",
        create("~a", 3),
        create("~b", 3),
        ask("DescribeTopicPartitions", Topics=[{"Name": "~a"}, {"Name": "~b"}], ResponsePartitionLimit=2),
        ask(
            "DescribeTopicPartitions",
            Topics=[{"Name": "~a"}, {"Name": "~b"}],
            ResponsePartitionLimit=2,
            Cursor={"TopicName": "~a", "PartitionIndex": 2},
        ),
        ask(
            "DescribeTopicPartitions",
            Topics=[{"Name": "~a"}, {"Name": "~b"}],
            ResponsePartitionLimit=3,
            Cursor={"TopicName": "~b", "PartitionIndex": 0},
        ),
        ask("DescribeTopicPartitions", Topics=[{"Name": "~a"}, {"Name": "~b"}], ResponsePartitionLimit=3),
        ask("DescribeTopicPartitions", Topics=[{"Name": "~a"}, {"Name": "~b"}], ResponsePartitionLimit=6),
        ask("DescribeTopicPartitions", Topics=[{"Name": "~a"}], ResponsePartitionLimit=0),
        ask("DescribeTopicPartitions", Topics=[{"Name": "~a"}], ResponsePartitionLimit=-1),
        ask("DescribeTopicPartitions", Topics=[{"Name": "~a"}], ResponsePartitionLimit=100),
    ),
    scenario(
        "cursors that are odd",
        "DescribeTopicPartitions",
        create("~a", 3),
        ask("DescribeTopicPartitions", Topics=[{"Name": "~a"}], Cursor={"TopicName": "~a", "PartitionIndex": -1}),
        ask("DescribeTopicPartitions", Topics=[{"Name": "~a"}], Cursor={"TopicName": "~a", "PartitionIndex": 9}),
        ask("DescribeTopicPartitions", Topics=[{"Name": "~a"}], Cursor={"TopicName": "~z", "PartitionIndex": 0}),
        ask("DescribeTopicPartitions", Topics=[{"Name": "~a"}], Cursor={"TopicName": "~0", "PartitionIndex": 1}),
    ),
    scenario(
        "of all", "DescribeTopicPartitions", create("~a", 2), ask("DescribeTopicPartitions", mine=True, Topics=[])
    ),
]

SCENARIOS = [*METADATA, *COORDINATORS, *TOPIC_PARTITIONS]

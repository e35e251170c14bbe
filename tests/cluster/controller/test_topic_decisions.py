"""Creation, deletion and growth of topics. Results, and the precedence of errors, are those of Apache Kafka 4.3.1."""

import pytest

from barnabas.cluster.controller.commands.topics import (
    CreatePartitions,
    CreateTopics,
    DeleteTopics,
    MorePartitions,
    NewTopic,
)
from barnabas.cluster.image.image import UNASSIGNED_DIRECTORY
from barnabas.errors import (
    InvalidConfig,
    InvalidPartitions,
    InvalidReplicaAssignment,
    InvalidReplicationFactor,
    InvalidRequest,
    InvalidTopicException,
    PolicyViolation,
    TopicAlreadyExists,
    UnknownServerError,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from barnabas.wire.messages.metadata_records import ClearElrRecord, ConfigRecord, PartitionRecord, TopicRecord

ZERO, NOBODYS = bytes(16), bytes([9]) * 16


def assigned(*brokers, name="orders", **fields):
    return NewTopic(name, assignments=list(enumerate(brokers)), **fields)


# ---------------------------------------------------------------- creation


def test_a_topic_is_made(cluster):
    (made,) = cluster.submit(CreateTopics([NewTopic("orders", 3, 1, configs=[("retention.ms", "1000")])]))
    topic = cluster.topic("orders")
    assert (made.error, made.id, made.num_partitions, made.replication_factor) == (None, topic.id, 3, 1)
    assert made.configs == {"retention.ms": "1000"} == cluster.image.configs_of(2, "orders")
    for index in range(3):
        partition = topic.partitions[index]
        assert (partition.replicas, partition.isr, partition.leader) == ((1,), (1,), 1)
        assert (partition.leader_epoch, partition.partition_epoch) == (0, 0)
        assert partition.directories == cluster.image.brokers[1].log_dirs


def test_the_records_of_a_topic_come_in_kafkas_order(cluster):
    configs = [("min.insync.replicas", "2"), ("cleanup.policy", "compact")]
    cluster.create(NewTopic("orders", 2, 1, configs=configs))
    assert list(map(type, cluster.records)) == [
        TopicRecord, ConfigRecord, ConfigRecord, ClearElrRecord, PartitionRecord, PartitionRecord,
    ]  # fmt: skip
    assert [record.name for record in cluster.records[1:3]] == ["cleanup.policy", "min.insync.replicas"]


def test_topics_have_ids_of_their_own(cluster):
    cluster.create(*(NewTopic(f"t{n}", 1, 1) for n in range(20)))
    assert len({topic.id for topic in cluster.image.topics_by_name.values()}) == 20


def test_counts_default_to_the_brokers(make_cluster):
    cluster = make_cluster(brokers=(1, 2), **{"num.partitions": 4, "default.replication.factor": 2})
    (made,) = cluster.submit(CreateTopics([NewTopic("orders")]))
    assert (made.num_partitions, made.replication_factor) == (4, 2)


def test_nothing_is_made_by_asking_whether_it_could_be(cluster):
    (made,) = cluster.submit(CreateTopics([NewTopic("orders", 2, 1)], validate_only=True))
    assert (made.error, made.num_partitions) == (None, 2)
    assert made.id != ZERO
    assert cluster.records == []
    assert cluster.image.topics_by_name == {}


@pytest.mark.parametrize(
    ("topic", "error"),
    [
        (NewTopic("", 1, 1), InvalidTopicException),
        (NewTopic("a b", 1, 1), InvalidTopicException),
        (NewTopic("__cluster_metadata", 1, 1), InvalidRequest),
        (NewTopic("there", 1, 1), TopicAlreadyExists),
        (NewTopic("orders", 0, 1), InvalidPartitions),
        (NewTopic("orders", -2, 1), InvalidPartitions),
        (NewTopic("orders", 1, 0), InvalidReplicationFactor),
        (NewTopic("orders", 1, -2), InvalidReplicationFactor),
        (NewTopic("orders", 1, 2), InvalidReplicationFactor),
        (NewTopic("orders", 1, 1, configs=[("nope", "1")]), InvalidConfig),
        (NewTopic("orders", 1, 1, configs=[("retention.ms", "x")]), InvalidConfig),
        (NewTopic("orders", 1, 1, configs=[("retention.ms", None)]), InvalidConfig),
    ],
)
def test_what_is_refused(cluster, topic, error):
    cluster.create(NewTopic("there", 1, 1))
    assert cluster.create(topic, NewTopic("fine", 1, 1)) == {topic.name: error, "fine": None}
    (refused,) = cluster.submit(CreateTopics([topic]))
    assert refused.error.args, "it says why"


def test_which_error_goes_before_which(cluster):
    cluster.create(NewTopic("there", 1, 1))
    wrong = {"num_partitions": 0, "replication_factor": 9, "configs": [("nope", "1")]}
    assert cluster.create(NewTopic("a b", **wrong)) == {"a b": InvalidTopicException}
    assert cluster.create(NewTopic("there", **wrong)) == {"there": TopicAlreadyExists}
    assert cluster.create(NewTopic("orders", **wrong)) == {"orders": InvalidConfig}
    assert cluster.create(NewTopic("orders", 0, 0)) == {"orders": InvalidReplicationFactor}
    assert cluster.create(NewTopic("orders", 0, 1)) == {"orders": InvalidPartitions}


def test_a_name_given_twice_is_refused_once_and_last(cluster):
    results = cluster.submit(CreateTopics([NewTopic("a", 1, 1), NewTopic("a", 1, 1), NewTopic("b", 1, 1)]))
    assert [(result.name, type(result.error)) for result in results] == [("b", type(None)), ("a", InvalidRequest)]


def test_a_config_given_twice_is_what_it_was_given_last(cluster):
    configs = [("retention.ms", "1"), ("retention.ms", "2")]
    assert cluster.create(NewTopic("orders", 1, 1, configs=configs)) == {"orders": None}
    assert cluster.image.configs_of(2, "orders") == {"retention.ms": "2"}


def test_names_collide_with_topics_that_are_there_but_not_within_a_request(cluster):
    cluster.create(NewTopic("a.b_c", 1, 1))
    assert cluster.create(NewTopic("a_b.c", 1, 1)) == {"a_b.c": InvalidTopicException}
    assert cluster.create(NewTopic("a-b-c", 1, 1)) == {"a-b-c": None}
    assert cluster.create(NewTopic("x.y", 1, 1), NewTopic("x_y", 1, 1)) == {"x.y": None, "x_y": None}


# ---------------------------------------------------------------- by hand


def test_brokers_are_assigned_by_hand(make_cluster):
    cluster = make_cluster(brokers=(1, 2, 3))
    assert cluster.create(assigned([3, 1], [2, 3])) == {"orders": None}
    assert cluster.partition("orders", 0).replicas == (3, 1)
    assert cluster.partition("orders", 0).leader == 3
    assert cluster.partition("orders", 1).replicas == (2, 3)


def test_partitions_assigned_by_hand_may_come_in_any_order(cluster):
    assert cluster.create(NewTopic("orders", assignments=[(1, [1]), (0, [1])])) == {"orders": None}
    assert [record.partition_id for record in cluster.records[1:]] == [0, 1]


@pytest.mark.parametrize(
    ("topic", "error"),
    [
        (assigned([1], num_partitions=1), InvalidRequest),
        (assigned([1], replication_factor=1), InvalidRequest),
        (assigned([]), InvalidReplicaAssignment),
        (assigned([3]), InvalidReplicaAssignment),
        (assigned([1, 1]), InvalidReplicaAssignment),
        (assigned([1], [1, 2]), InvalidReplicaAssignment),
        (NewTopic("orders", assignments=[(0, [1]), (0, [1])]), InvalidReplicaAssignment),
        (NewTopic("orders", assignments=[(0, [1]), (2, [1])]), InvalidReplicaAssignment),
        (NewTopic("orders", assignments=[(1, [1])]), InvalidReplicaAssignment),
    ],
)
def test_assignments_that_cannot_be(make_cluster, topic, error):
    assert make_cluster(brokers=(1, 2)).create(topic) == {"orders": error}


def test_a_fenced_broker_is_not_in_sync_and_does_not_lead(make_cluster):
    cluster = make_cluster(brokers=(1,))
    cluster.register(2)
    assert cluster.create(assigned([2, 1])) == {"orders": None}
    partition = cluster.partition("orders")
    assert (partition.isr, partition.leader) == ((1,), 1)
    assert cluster.create(assigned([2], name="other")) == {"other": InvalidReplicaAssignment}


def test_a_broker_of_several_directories_must_say_itself_which(make_cluster):
    cluster = make_cluster(brokers=())
    cluster.start(1, log_dirs=[bytes([1]) * 16, bytes([2]) * 16])
    cluster.create(NewTopic("orders", 1, 1))
    assert cluster.partition("orders").directories == (UNASSIGNED_DIRECTORY,)


def test_the_dev_profile_makes_do_with_the_brokers_there_are(make_cluster):
    cluster = make_cluster(dev=True)
    (made,) = cluster.submit(CreateTopics([NewTopic("orders", 1, 3)]))
    assert (made.error, made.replication_factor) == (None, 1)


# ---------------------------------------------------------------- how much


@pytest.mark.parametrize(
    "topics",
    [
        [NewTopic("orders", 10_001, 1)],
        [NewTopic("a", 6000, 1), NewTopic("b", 5000, 1)],
        [NewTopic("a", 10_000, 1), NewTopic("b")],
        [assigned(*[[1]] * 6000, name="a"), NewTopic("b", 5000, 1)],
        [NewTopic("there", 10_001, 1)],
        [NewTopic("orders", 10_000, 1)],  # with the topic's record it would be 10,001
    ],
)
def test_too_many_partitions_refuse_the_whole_request(cluster, topics):
    cluster.create(NewTopic("there", 1, 1))
    expected = {topic.name: PolicyViolation for topic in [*topics, NewTopic("fine", 1, 1)]}
    assert cluster.create(*topics, NewTopic("fine", 1, 1), validate_only=True) == expected
    assert cluster.create(*topics, NewTopic("fine", 1, 1)) == expected
    assert cluster.records == []


def test_what_is_refused_anyway_does_not_count(cluster):
    twice = NewTopic("twice", 6000, 1)
    assert cluster.create(NewTopic("fine", 5000, 1), twice, twice, validate_only=True)["fine"] is None
    assert cluster.create(NewTopic("__cluster_metadata", 10_001, 1), NewTopic("fine", 1, 1))["fine"] is None


# ---------------------------------------------------------------- more partitions


def add(cluster, *wanted, validate_only=False):
    results = cluster.submit(CreatePartitions([MorePartitions(*each) for each in wanted], validate_only))
    return [(result.name, type(result.error) if result.error else None) for result in results]


def test_partitions_are_added_behind_those_there_are(cluster):
    cluster.create(NewTopic("orders", 2, 1))
    before = dict(cluster.topic("orders").partitions)
    assert add(cluster, ("orders", 4)) == [("orders", None)]
    assert sorted(cluster.topic("orders").partitions) == [0, 1, 2, 3]
    assert {index: cluster.partition("orders", index) for index in before} == before
    assert cluster.delta.partitions == {cluster.topic("orders").id: {2, 3}}


def test_partitions_are_added_by_hand(make_cluster):
    cluster = make_cluster(brokers=(1, 2))
    cluster.create(assigned([1]))
    assert add(cluster, ("orders", 3, [[2], [1]])) == [("orders", None)]
    assert cluster.partition("orders", 1).leader == 2


@pytest.mark.parametrize(
    ("wanted", "error"),
    [
        (("nope", 3), UnknownTopicOrPartition),
        (("orders", 2), InvalidPartitions),
        (("orders", 1), InvalidPartitions),
        (("orders", -1), InvalidPartitions),
        (("orders", 2, [[1]]), InvalidPartitions),
        (("orders", 3, []), InvalidReplicaAssignment),
        (("orders", 4, [[1]]), InvalidReplicaAssignment),
        (("orders", 3, [[2]]), InvalidReplicaAssignment),
        (("orders", 3, [[1, 1]]), InvalidReplicaAssignment),
        (("orders", 3, [[]]), InvalidReplicaAssignment),
        (("orders", 10_003), UnknownServerError),
        (("orders", 2**31 - 1), UnknownServerError),
    ],
)
def test_partitions_that_cannot_be_added(cluster, wanted, error):
    cluster.create(NewTopic("orders", 2, 1), NewTopic("fine", 1, 1))
    assert add(cluster, wanted, ("fine", 2)) == [(wanted[0], error), ("fine", None)]
    assert len(cluster.topic("orders").partitions) == 2


def test_nothing_is_added_by_asking_whether_it_could_be(cluster):
    cluster.create(NewTopic("orders", 1, 1))
    assert add(cluster, ("orders", 5), validate_only=True) == [("orders", None)]
    assert len(cluster.topic("orders").partitions) == 1


def test_a_topic_extended_twice_in_one_request_is_not(cluster):
    cluster.create(NewTopic("orders", 1, 1), NewTopic("fine", 1, 1))
    assert add(cluster, ("orders", 2), ("orders", 3), ("fine", 2)) == [("orders", InvalidRequest), ("fine", None)]


# ---------------------------------------------------------------- deletion


def delete(cluster, *topics):
    results = cluster.submit(DeleteTopics(topics))
    return [(result.name, result.id, type(result.error) if result.error else None) for result in results]


@pytest.fixture
def orders(cluster):
    cluster.create(NewTopic("orders", 2, 1, configs=[("retention.ms", "1")]), NewTopic("others", 1, 1))
    return cluster.topic("orders").id


def test_a_topic_is_deleted_by_name_or_id(cluster, orders):
    others = cluster.topic("others").id
    assert delete(cluster, ("orders", ZERO), (None, others)) == [("orders", orders, None), ("others", others, None)]
    assert cluster.image.topics_by_name == {}
    assert cluster.image.configs_of(2, "orders") == {}


def test_a_topic_made_again_is_another_one(cluster, orders):
    delete(cluster, ("orders", ZERO))
    cluster.create(NewTopic("orders", 1, 1))
    assert cluster.topic("orders").id != orders
    assert cluster.image.configs_of(2, "orders") == {}


def test_what_is_not_there_cannot_be_deleted(cluster, orders):
    assert delete(cluster, ("nope", ZERO), (None, NOBODYS), ("", ZERO)) == [
        ("nope", ZERO, UnknownTopicOrPartition),
        (None, NOBODYS, UnknownTopicId),
        ("", ZERO, UnknownTopicOrPartition),
    ]


def test_each_doubling_is_refused(cluster, orders):
    assert delete(cluster, ("orders", ZERO), ("orders", ZERO)) == [("orders", ZERO, InvalidRequest)]
    assert delete(cluster, (None, orders), (None, orders)) == [(None, orders, InvalidRequest)]
    assert delete(cluster, (None, orders), ("orders", ZERO)) == [("orders", orders, InvalidRequest)]
    assert delete(cluster, ("orders", ZERO), (None, orders)) == [("orders", orders, InvalidRequest)]
    assert delete(cluster, ("orders", orders)) == [("orders", orders, InvalidRequest)]
    assert delete(cluster, (None, ZERO), (None, ZERO)) == [(None, ZERO, InvalidRequest)] * 2
    assert cluster.topic("orders")


def test_a_doubling_beside_an_entry_that_says_too_much_is_none(cluster, orders):
    assert delete(cluster, ("orders", orders), ("orders", ZERO)) == [
        ("orders", orders, InvalidRequest),
        ("orders", orders, None),
    ]

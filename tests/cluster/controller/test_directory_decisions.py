"""The log directories of partitions in the metadata."""

import pytest

from barnabas.cluster.controller.commands.nodes import AssignReplicasToDirs
from barnabas.cluster.controller.commands.topics import NewTopic
from barnabas.cluster.image.image import UNASSIGNED_DIRECTORY
from barnabas.errors import NotLeaderOrFollower, StaleBrokerEpoch, UnknownTopicId, UnknownTopicOrPartition
from barnabas.wire.messages.metadata_records import PartitionChangeRecord

A, B = b"a" * 16, b"b" * 16
HERE, THERE = b"h" * 16, b"t" * 16


@pytest.fixture
def orders(make_cluster):
    """A cluster with a topic on broker 1, and one on two brokers."""
    cluster = make_cluster(brokers=())
    cluster.start(1, log_dirs=[HERE, A])
    cluster.start(2, log_dirs=[THERE, B])
    cluster.create(NewTopic("orders", assignments=[(0, [1]), (1, [1])]), NewTopic("both", assignments=[(0, [1, 2])]))
    return cluster


def assign(cluster, *assignments, broker_id=1, topic="orders"):
    """Returns the classes of the errors."""
    topic_id = cluster.topic(topic).id
    epoch = cluster.image.brokers[broker_id].epoch if broker_id in cluster.image.brokers else 7
    filled = [(topic_id if each[0] is None else each[0], *each[1:]) for each in assignments]
    return [error and type(error) for error in cluster.submit(AssignReplicasToDirs(broker_id, epoch, filled))]


def test_news_is_written_as_apache_kafka_writes_it(orders):
    before = orders.partition("orders", 0)
    assert assign(orders, (None, 0, A)) == [None]
    topic_id = orders.image.topics_by_name["orders"].id
    assert orders.records == [PartitionChangeRecord(partition_id=0, topic_id=topic_id, directories=[A])]
    after = orders.partition("orders", 0)
    assert after.directories == (A,)
    assert after.partition_epoch == before.partition_epoch + 1
    assert after.leader_epoch == before.leader_epoch


def test_what_is_known_is_not_written(orders):
    assign(orders, (None, 0, A))
    assert assign(orders, (None, 0, A)) == [None]
    assert orders.records == []


def test_each_broker_has_directories_of_its_own(orders):
    assign(orders, (None, 0, HERE), (None, 0, HERE), topic="both")
    assign(orders, (None, 0, B), broker_id=2, topic="both")
    assert orders.partition("both").directories == (HERE, B)
    assign(orders, (None, 0, A), topic="both")
    assert orders.partition("both").directories == (A, B)


def test_each_by_itself(orders):
    unknown = bytes(15) + b"x"
    assignments = [(unknown, 0, A), (None, 7, A), (None, 1, A)]
    assert assign(orders, *assignments) == [UnknownTopicId, UnknownTopicOrPartition, None]
    assert len(orders.records) == 1


def test_a_broker_without_a_replica(orders):
    assert assign(orders, (None, 0, A), broker_id=2) == [NotLeaderOrFollower]


def test_a_stranger(orders):
    with pytest.raises(StaleBrokerEpoch):
        assign(orders, (None, 0, A), broker_id=9)


def test_several_directories_begin_unassigned(make_cluster):
    cluster = make_cluster(brokers=())
    cluster.start(1, log_dirs=[A, B])
    cluster.create(NewTopic("orders", 1, 1))
    assert cluster.partition("orders").directories == (UNASSIGNED_DIRECTORY,)

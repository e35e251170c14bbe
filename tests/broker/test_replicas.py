"""Replicas that are added, removed and added again in a cluster of three brokers."""

import pytest
from confluent_kafka import Consumer, Producer

from barnabas.broker.leaders import coordinator_of
from barnabas.cluster.controller.commands.configs import (
    DELETE,
    SET,
    ConfigChange,
    ConfigResource,
    IncrementalAlterConfigs,
)
from barnabas.cluster.controller.commands.replicas import AlterPartitionReassignments
from barnabas.cluster.controller.commands.topics import DeleteTopics
from barnabas.cluster.topic_names import CONSUMER_OFFSETS
from barnabas.config.dynamic import BROKER_RESOURCE
from barnabas.testing import Cluster
from tests.cluster.replication.test_replication_walk import content

SESSIONS = {
    "broker.heartbeat.interval.ms": 100,
    "broker.session.timeout.ms": 1000,
    "replica.fetch.backoff.ms": 100,
    "replica.lag.time.max.ms": 3000,
    "log.segment.bytes": 1 << 20,
}


@pytest.fixture(scope="module")
def running():
    with Cluster(3, SESSIONS) as cluster:
        yield cluster


@pytest.fixture
def cluster(running):
    yield running
    for node in running.node_ids:
        running.start(node)


def send(cluster, topic, count=300, partitions=1):
    failures = []
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "acks": "all"})
    for number in range(count):
        producer.produce(
            topic,
            b"%d" % number * 20,
            partition=number % partitions,
            on_delivery=lambda error, _: failures.append(error) if error else None,
        )
    assert producer.flush(30) == 0
    assert failures == []


def log(cluster, node, topic, index=0):
    partition = cluster.broker(node).partitions.get((topic, index))
    return None if partition is None else partition.log


def are_equal(cluster, topic, index=0):
    logs = [log(cluster, node, topic, index) for node in cluster.partition(topic, index).replicas]
    return cluster._call(lambda: len({content(each) for each in logs}) == 1)


def directories(cluster, node):
    broker = cluster.broker(node)
    (directory,) = broker.log_manager.directories
    return cluster._call(lambda: broker.log_manager.files.list(directory.path))


def test_a_killed_leader_comes_back_as_a_follower_with_the_same_log(cluster):
    cluster.create_topic("killed", partitions=3)
    send(cluster, "killed", partitions=3)
    leader = cluster.leader("killed")
    cluster.kill(leader)
    send(cluster, "killed", partitions=3)
    assert cluster.leader("killed") != leader
    cluster.start(leader)
    cluster.wait_in_sync("killed")
    assert all(are_equal(cluster, "killed", index) for index in range(3))


def test_a_reassigned_replica_is_copied_and_the_old_one_deleted(cluster):
    cluster.create_topic("moved", replicas=2)
    send(cluster, "moved")
    stays, goes = cluster.partition("moved").replicas
    (comes,) = set(cluster.node_ids) - {stays, goes}
    cluster._submit(AlterPartitionReassignments([("moved", [(0, [stays, comes])])]))
    cluster.wait_until(lambda: cluster._active.image.partition("moved", 0).isr in ((stays, comes), (comes, stays)))
    cluster.wait_until(lambda: log(cluster, goes, "moved") is None)
    assert "moved-0" not in directories(cluster, goes)
    send(cluster, "moved")
    assert sorted(cluster.partition("moved").replicas) == sorted((stays, comes))
    assert are_equal(cluster, "moved")


def test_a_topic_that_was_deleted_meanwhile_is_a_stray(cluster):
    cluster.create_topic("stray")
    send(cluster, "stray")
    leader = cluster.leader("stray")
    away = next(node for node in cluster.node_ids if node != leader)
    cluster.stop(away)
    (deleted,) = cluster._submit(DeleteTopics([("stray", bytes(16))]))
    assert deleted.error is None
    cluster.start(away)
    assert log(cluster, away, "stray") is None
    names = [name for name in directories(cluster, away) if name.startswith("stray-0")]
    assert len(names) == 1 and names[0].endswith("-stray")


def test_a_follower_starts_with_its_high_watermark(cluster):
    cluster.create_topic("watermark")
    send(cluster, "watermark")
    follower = next(node for node in cluster.node_ids if node != cluster.leader("watermark"))
    cluster.wait_until(lambda: log(cluster, follower, "watermark").high_watermark == 300)
    cluster.stop(follower)
    cluster.start(follower)
    assert log(cluster, follower, "watermark").high_watermark == 300


def test_a_group_goes_on_when_its_coordinator_is_gone(cluster):
    cluster.create_topic("read")
    send(cluster, "read")
    reader = Consumer({
        "bootstrap.servers": cluster.bootstrap_servers, "group.id": "g", "auto.offset.reset": "earliest",
        "enable.auto.commit": False, "session.timeout.ms": 6000,
    })  # fmt: skip
    reader.subscribe(["read"])
    found = []
    while len(found) < 300:
        found += reader.consume(300 - len(found), timeout=1)
    reader.commit(asynchronous=False)
    cluster.kill(cluster._call(lambda: coordinator_of(cluster._active.image, CONSUMER_OFFSETS, "g")))
    send(cluster, "read", 10)
    more = []
    while len(more) < 10:
        more += reader.consume(10 - len(more), timeout=1)
    reader.commit(asynchronous=False)
    assert [each.offset for each in reader.committed(reader.assignment(), 20)] == [310]
    reader.close()


def test_partitions_are_distributed_over_more_fetchers(cluster):
    cluster.create_topic("distributed", partitions=12)
    send(cluster, "distributed", partitions=12)
    cluster.wait_until(lambda: fetchers(cluster.broker(1)) == {0})
    configure_fetchers(cluster, SET, "2")
    try:
        cluster.wait_until(lambda: fetchers(cluster.broker(1)) == {0, 1})
        send(cluster, "distributed", partitions=12)
        assert all(are_equal(cluster, "distributed", index) for index in range(12))
    finally:
        configure_fetchers(cluster, DELETE)
    cluster.wait_until(lambda: fetchers(cluster.broker(1)) == {0})


def configure_fetchers(cluster, operation, value=None):
    change = ConfigChange("num.replica.fetchers", operation, value)
    (altered,) = cluster._submit(IncrementalAlterConfigs([(ConfigResource(BROKER_RESOURCE, ""), [change])]))
    assert altered.error is None


def fetchers(broker):
    """Returns the numbers of the broker's fetchers that have partitions."""
    known = broker.hosting._fetchers
    running = {id(each.running) for each in known._followed.values()}
    return {number for (_, number), each in known._fetchers.items() if id(each) in running}

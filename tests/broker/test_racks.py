"""A cluster over three racks: where replicas are placed, and from which of them consumers read."""

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from barnabas.testing import Cluster

SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
RACKS = ["a", "b", "c", "a", "b", "c"]


@pytest.fixture(scope="module")
def cluster():
    with Cluster(6, racks=RACKS, replica_selector_class=SELECTOR) as cluster:
        yield cluster


def test_each_rack_has_one_replica(cluster):
    cluster.create_topic("spread", partitions=6)
    for index in range(6):
        assert {RACKS[node - 1] for node in cluster.partition("spread", index).replicas} == {"a", "b", "c"}


def test_a_consumer_reads_from_the_replica_in_its_rack(cluster):
    cluster.create_topic("read")
    leader = cluster.leader("read")
    (near,) = (node for node in cluster.partition("read").replicas if RACKS[node - 1] == next_to(leader))
    fetches = {
        node: cluster.faults.add(node=node, api="Fetch", client_id="near", delay=0.001) for node in (leader, near)
    }
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "acks": "all"})
    consumer = Consumer({
        "bootstrap.servers": cluster.bootstrap_servers, "group.id": "g", "client.id": "near",
        "client.rack": next_to(leader), "auto.offset.reset": "earliest", "fetch.wait.max.ms": 50,
    })  # fmt: skip
    try:
        consumer.assign([TopicPartition("read", 0, 0)])
        read = [wrote_and_read(producer, consumer, b"%d" % number) for number in range(3)]
    finally:
        consumer.close()
    assert read == [b"%d" % number for number in range(3)]
    assert 1 <= fetches[leader].hits < fetches[near].hits  # the leader has named the other one


def next_to(leader):
    """Returns another rack than the leader's."""
    return "b" if RACKS[leader - 1] == "a" else "a"


def wrote_and_read(producer, consumer, value):
    producer.produce("read", value)
    assert producer.flush(30) == 0
    message = consumer.poll(30)
    assert message is not None
    assert message.error() is None
    return message.value()

"""An unclean election in a cluster: what only the last leader had is lost, and consumers notice (KIP-320)."""

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from kafka import KafkaConsumer
from kafka import TopicPartition as Place

from barnabas.testing import Cluster
from tests.cluster.replication.test_replication_walk import content


@pytest.fixture
def cluster():
    with Cluster(3) as cluster:
        cluster.create_topic("t", replicas=2, configs={"unclean.leader.election.enable": "true"})
        yield cluster


class Librdkafka:
    def __init__(self, cluster):
        self.inner = Consumer({
            "bootstrap.servers": cluster.bootstrap_servers, "group.id": "g", "auto.offset.reset": "earliest",
        })  # fmt: skip
        self.inner.assign([TopicPartition("t", 0, 0)])

    def read(self, count):
        messages = [self.inner.poll(30) for _ in range(count)]
        return [(each.offset(), each.value()) for each in messages]

    def close(self):
        self.inner.close()


class KafkaPython:
    def __init__(self, cluster):
        self.inner = KafkaConsumer(bootstrap_servers=cluster.bootstrap_servers, auto_offset_reset="earliest")
        self.inner.assign([Place("t", 0)])

    def read(self, count):
        found = []
        while len(found) < count:
            polled = self.inner.poll(30_000, max_records=count - len(found))
            assert polled, found
            found += [(each.offset, each.value) for records in polled.values() for each in records]
        return found

    def close(self):
        self.inner.close()


def send(cluster, values):
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "acks": "1"})
    for value in values:
        producer.produce("t", value)
    assert producer.flush(30) == 0


@pytest.mark.parametrize("library", [Librdkafka, KafkaPython])
def test_a_consumer_goes_back_to_where_the_logs_diverge(cluster, library):
    leader = cluster.leader("t")
    (follower,) = set(cluster.partition("t").replicas) - {leader}
    kept, lost, new = ([b"%s %d" % (kind, number) for number in range(4)] for kind in (b"kept", b"lost", b"new"))
    send(cluster, kept)
    cluster.wait_until(lambda: cluster.broker(follower).partitions["t", 0].log.log_end_offset == 4)
    cluster.kill(follower)
    cluster.wait_until(lambda: cluster._active.image.partition("t", 0).isr == (leader,))
    send(cluster, lost)
    consumer = library(cluster)
    try:
        assert consumer.read(8) == list(enumerate(kept + lost))
        cluster.kill(leader)
        cluster.wait_until(lambda: cluster._active.image.partition("t", 0).leader == -1)
        cluster.start(follower)
        cluster.wait_until(lambda: cluster._active.image.partition("t", 0).leader == follower)
        send(cluster, new)
        assert consumer.read(4) == list(enumerate(new, 4))
    finally:
        consumer.close()
    cluster.start(leader)
    cluster.wait_in_sync("t")
    logs = [cluster.broker(node).partitions["t", 0].log for node in (leader, follower)]
    assert len({cluster._call(lambda log=log: content(log)) for log in logs}) == 1

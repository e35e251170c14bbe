"""The clock of a cluster, which a test advances: data and clients go by it; nodes among themselves do not."""

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.structs import OffsetAndMetadata

from barnabas.testing import Cluster
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.metadata import MetadataRequest
from tests.raw import Client
from tests.testing.test_what_the_clock_turns import NONE, UNKNOWN_MEMBER_ID, heartbeat, joined

INTERNAL = {"offsets.topic.num.partitions": 3, "transaction.state.log.num.partitions": 3}


@pytest.fixture(scope="module")
def running():
    with Cluster(3, INTERNAL) as cluster:
        yield cluster


@pytest.fixture
def cluster(running):
    yield running
    running.clock.go_on()


@pytest.fixture
def orders(cluster, request):
    """A topic with a record, whose time is that of its leader."""
    name = request.node.name
    cluster.create_topic(name, configs={"retention.ms": 3_600_000, "message.timestamp.type": "LogAppendTime"})
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, acks="all")
    producer.send(name, b"tea").get(10)
    producer.close()
    return name


def held_by(cluster, topic):
    """Returns how many records each broker has of partition 0."""
    logs = [cluster.broker(node).partition(topic, 0).log for node in cluster.node_ids]
    return [log.log_end_offset - log.log_start_offset for log in logs]


def test_every_replica_deletes_what_is_too_old(cluster, orders):
    cluster.clock.advance(minutes=30)
    assert held_by(cluster, orders) == [1, 1, 1]
    cluster.clock.advance(hours=7)
    cluster.wait_until(lambda: held_by(cluster, orders) == [0, 0, 0])


def test_nodes_do_not_lose_one_another(cluster, orders):
    def seen():
        epochs = [cluster.broker(node).epoch for node in cluster.node_ids]
        partition = cluster.partition(orders)
        return cluster.active_controller, epochs, partition.leader_epoch, sorted(partition.isr)

    before = seen()
    for _ in range(5):
        cluster.clock.advance(days=30)
        assert seen() == before
    assert before[-1] == [1, 2, 3]
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, acks="all")
    producer.send(orders, b"cake").get(10)
    producer.close()


def test_offsets_of_a_group_expire(cluster, orders):
    partition = TopicPartition(orders, 0)

    def committed(offset=None):
        consumer = KafkaConsumer(bootstrap_servers=cluster.bootstrap_servers, group_id=orders)
        consumer.assign([partition])
        if offset is not None:
            consumer.commit({partition: OffsetAndMetadata(offset, "", -1)})
        found = consumer.committed(partition)
        consumer.close(autocommit=False)
        return found

    assert committed(5) == 5
    cluster.clock.advance(days=6)
    assert committed() == 5
    cluster.clock.advance(days=2)
    assert committed() is None


def test_a_member_loses_its_session(cluster):
    with Client(int(cluster.address(1).rpartition(":")[2])) as client:
        while (found := client.ask(FindCoordinatorRequest(key="g", key_type=0), 3)).error_code:
            pass
    with Client(found.port) as client:
        member = joined(client, session_ms=10_000)
        cluster.clock.advance(seconds=8)
        assert heartbeat(client, member) == NONE
        cluster.clock.advance(seconds=11)
        assert heartbeat(client, member) == UNKNOWN_MEMBER_ID


def test_a_transaction_times_out(cluster, orders):
    settings = {"transactional_id": orders, "transaction_timeout_ms": 60_000, "acks": "all"}
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, **settings)
    producer.init_transactions()
    producer.begin_transaction()
    producer.send(orders, b"cake").get(10)

    log = cluster.broker(cluster.leader(orders)).partition(orders, 0).log
    assert log.last_stable_offset < log.high_watermark
    cluster.clock.advance(minutes=2)
    cluster.wait_until(lambda: log.last_stable_offset == log.high_watermark == 3)  # with the marker
    producer.close(timeout=0)


def test_all_nodes_have_one_date(cluster):
    cluster.clock.freeze()
    cluster.clock.at("2031-01-01")
    cluster.create_topic("dated", partitions=3, configs={"message.timestamp.type": "LogAppendTime"})
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap_servers)
    sent = [producer.send("dated", b"tea", partition=index).get(10).timestamp for index in range(3)]
    producer.close()
    assert sent == [cluster.clock.time_ms] * 3 == [1_924_992_000_000] * 3


def test_a_node_that_starts_again_has_the_same_date(cluster):
    cluster.clock.advance(days=3)
    cluster.kill(2)
    cluster.start(2)
    assert cluster.broker(2).clock.time_ms() - cluster.clock.time_ms in range(-60_000, 60_000)
    cluster.wait_in_sync()


def test_rules_go_by_it(cluster):
    cluster.create_topic("ruled")
    rule = cluster.faults.add(api="Metadata", error="LEADER_NOT_AVAILABLE", topic="ruled", since=3600, node=1)

    def error():
        with Client(int(cluster.address(1).rpartition(":")[2])) as client:
            topics = [MetadataRequest.MetadataRequestTopic(name="ruled")]
            return client.ask(MetadataRequest(topics=topics), 9).topics[0].error_code

    assert error() == NONE
    cluster.clock.advance(hours=2)
    assert error() == 5
    rule.lift()

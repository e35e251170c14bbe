"""Rules of faults work in the proxy as they do at a broker."""

import struct

import pytest
from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import KafkaTimeoutError

from barnabas.faults.naming import ImpossibleRule
from barnabas.testing import Cluster, Proxy
from barnabas.wire.messages.fetch import FetchRequest
from barnabas.wire.messages.heartbeat import HeartbeatRequest
from barnabas.wire.messages.metadata import MetadataRequest
from tests.raw import Client, framed


def send(proxy, *values, **settings):
    producer = KafkaProducer(**{"bootstrap_servers": proxy.bootstrap_servers, "retry_backoff_ms": 10, **settings})
    try:
        for value in values:
            producer.send("orders", value).get(10)
    finally:
        producer.close()


def values(broker):
    return [record.value for record in broker.records("orders")]


def test_an_error_in_place_of_the_brokers_answer(broker, proxy):
    with proxy.faults.add(api="Produce", nth=2, error="NOT_LEADER_OR_FOLLOWER") as rule:
        send(proxy, b"1", b"2", b"3")
    assert rule.hits == 1
    assert values(broker) == [b"1", b"2", b"3"]
    assert "Produce" in proxy.faults.report()


@pytest.mark.parametrize(("idempotent", "times"), [(False, 2), (True, 1)])
def test_an_answer_that_is_lost(broker, proxy, idempotent, times):
    with proxy.faults.answer_lost("orders"):
        send(proxy, b"tea", enable_idempotence=idempotent, retries=5)
    assert values(broker) == [b"tea"] * times


def test_a_topic_is_known_by_its_id(broker, proxy):
    broker.create_topic("orders")
    broker.create_topic("other")
    Topic = FetchRequest.FetchTopic
    with Client(proxy.port) as client, proxy.faults.add(api="Fetch", topic="orders", error="UNKNOWN_TOPIC_ID"):
        ids = {topic.name: topic.topic_id for topic in client.ask(MetadataRequest(topics=None), 12).topics}
        topics = [
            Topic(topic_id=each, partitions=[Topic.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=9)])
            for each in ids.values()
        ]
        answer = client.ask(FetchRequest(max_wait_ms=0, min_bytes=0, topics=topics), 16)
    found = {each.topic_id: each.partitions[0].error_code for each in answer.responses}
    assert found == {ids["orders"]: 100, ids["other"]: 0}


def test_it_is_there_for_connections_that_are_open_already(broker, proxy):
    with Client(proxy.port) as client:
        assert client.ask(MetadataRequest(topics=None), 12).brokers
        with proxy.faults.add(api="Metadata", first=1, silent="after") as rule:
            client.send(framed(MetadataRequest(topics=None), 12, 5))
            rule.wait_for_hits(1)
    with Client(proxy.port) as client:
        assert client.ask(MetadataRequest(topics=None), 12).brokers


def test_answers_stay_in_their_order_when_a_rule_is_set(broker, proxy):
    """The proxy's own response waits for earlier responses of the broker."""
    broker.create_topic("orders")
    Topic = FetchRequest.FetchTopic
    partition = Topic.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=9)
    slow = FetchRequest(max_wait_ms=500, min_bytes=1, topics=[Topic(topic="orders", partitions=[partition])])
    with Client(proxy.port) as client:
        client.ask(MetadataRequest(topics=None), 12)
        broker.record_requests()
        client.send(framed(slow, 4, 1))
        while not broker.requests("Fetch"):
            pass
        with proxy.faults.add(api="Heartbeat", error="REBALANCE_IN_PROGRESS"):
            client.send(framed(HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), 0, 2))
            assert [struct.unpack_from(">i", client.receive())[0] for _ in range(2)] == [1, 2]


def test_only_the_client_that_is_named(broker, proxy):
    with proxy.faults.add(client_id="slow", api="Produce", delay=0.3) as rule:
        send(proxy, b"1", client_id="quick")
        assert rule.hits == 0
        send(proxy, b"2", client_id="slow")
        assert rule.hits == 1


def test_new_connections_are_refused(broker, proxy):
    with proxy.faults.add(refuse=True) as rule:
        with Client(proxy.port) as client:
            assert client.receive() is None
        assert rule.hits == 1
    send(proxy, b"tea")


def test_a_broker_that_is_seen_later_has_the_rules_too():
    with Cluster(3) as cluster, Proxy(cluster.bootstrap_servers) as proxy:
        cluster.create_topic("orders", partitions=3, replicas=1)
        with proxy.faults.add(api="Produce", error="NOT_LEADER_OR_FOLLOWER", first=3) as rule:
            producer = KafkaProducer(bootstrap_servers=proxy.bootstrap_servers, retry_backoff_ms=10)
            for partition in range(3):
                producer.send("orders", b"tea", partition=partition).get(20)
            producer.close()
        assert rule.hits == 3


def test_one_broker_of_several():
    with Cluster(2) as cluster, Proxy(cluster.bootstrap_servers) as proxy:
        cluster.create_topic("orders", partitions=2, replicas=1)
        near, far = cluster.leader("orders", 0), cluster.leader("orders", 1)
        assert near != far
        with proxy.faults.add(api="Produce", node=far, nth=1, error="NOT_LEADER_OR_FOLLOWER") as rule:
            producer = KafkaProducer(bootstrap_servers=proxy.bootstrap_servers, retry_backoff_ms=10)
            with proxy.expect("Produce", node=near, times=1):
                producer.send("orders", b"tea", partition=0).get(20)
            assert rule.hits == 0
            with proxy.expect("Produce", node=far, times=2):
                producer.send("orders", b"tea", partition=1).get(20)
            assert rule.hits == 1
            producer.close()


def test_a_network_that_is_cut(broker, proxy):
    with proxy.faults.network_cut("lonely"), pytest.raises(KafkaTimeoutError):
        send(proxy, b"tea", client_id="lonely", max_block_ms=300, bootstrap_timeout_ms=300)
    send(proxy, b"tea", client_id="lonely")


def test_groups_go_on(broker, proxy):
    send(proxy, b"1", b"2")
    with proxy.faults.coordinator_moves("billing"):
        consumer = KafkaConsumer(
            "orders", bootstrap_servers=proxy.bootstrap_servers, group_id="billing", auto_offset_reset="earliest"
        )
        assert [next(consumer).value for _ in range(2)] == [b"1", b"2"]
        consumer.commit()
        consumer.close()
    assert "OffsetCommit" in proxy.faults.report()


def test_requests_are_seen(proxy):
    proxy.record_requests()
    send(proxy, b"tea", client_id="waiter")
    (produced,) = proxy.requests("Produce", "waiter")
    assert (produced.error, produced.node) == (None, 1)
    assert produced.answer.responses[0].name == "orders"
    assert proxy.connections() == []


@pytest.mark.parametrize(
    ("rule", "words"),
    [({"principal": "User:a", "cut": "before"}, "client_id"), ({"tls": "cut"}, "in the clear"), ({}, "does nothing")],
)
def test_a_rule_that_can_never_match_is_refused(proxy, rule, words):
    with pytest.raises(ImpossibleRule, match=words):
        proxy.faults.add(**rule)


def test_a_connection_that_is_cut_is_no_error(broker, proxy, caplog):
    with proxy.faults.add(api="Produce", first=1, cut="after") as rule:
        send(proxy, b"tea", enable_idempotence=False)
    assert rule.hits == 1
    assert [each for each in caplog.records if each.levelname == "ERROR" and each.name.startswith("barnabas")] == []

"""Clients go through the proxy as they would go to the brokers."""

import asyncio
import os
import struct

import pytest
from kafka import KafkaConsumer, KafkaProducer

from barnabas.proxy.passage import is_unanswered
from barnabas.testing import Broker, Cluster, Proxy
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.messages.produce import ProduceRequest
from barnabas.wire.messages.sasl_handshake import SaslHandshakeRequest
from tests.raw import Client, framed


def test_records_there_and_back(broker, proxy):
    values = [os.urandom(size) for size in (0, 1, 100, 20_000, 900_000)] * 3
    producer = KafkaProducer(bootstrap_servers=proxy.bootstrap_servers, linger_ms=5)
    for value in values:
        producer.send("orders", value)
    producer.close()
    assert [record.value for record in broker.records("orders")] == values
    consumer = KafkaConsumer(
        "orders", bootstrap_servers=proxy.bootstrap_servers, group_id="billing", auto_offset_reset="earliest"
    )
    found = []
    while len(found) < len(values):
        for records in consumer.poll(10_000).values():
            found += [record.value for record in records]
    consumer.close()
    assert found == values
    assert proxy.ports == {broker.bootstrap_servers: proxy.port}


def test_all_brokers_are_seen_through_it():
    with Cluster(3) as cluster, Proxy(cluster.bootstrap_servers) as proxy:
        cluster.create_topic("orders", partitions=6, replicas=1)
        with Client(proxy.port) as client:
            answer = client.ask(MetadataRequest(topics=None), 12)
        addresses = set(cluster.bootstrap_servers.split(","))
        assert {f"{each.host}:{each.port}" for each in answer.brokers}.isdisjoint(addresses)
        assert set(proxy.ports) == addresses
        assert {each.port for each in answer.brokers} == set(proxy.ports.values())
        producer = KafkaProducer(bootstrap_servers=proxy.bootstrap_servers)
        sent = [producer.send("orders", b"tea", partition=index) for index in range(6)]
        assert [each.get(10).partition for each in sent] == list(range(6))
        producer.close()


def test_a_coordinator_is_seen_through_it(proxy):
    with Client(proxy.port) as client:
        for version in (1, 4):
            request = FindCoordinatorRequest(key="g", key_type=0, coordinator_keys=["g"])
            answer = client.ask(request, version)
            there = answer.coordinators[0] if version == 4 else answer
            assert (there.host, there.port) == ("127.0.0.1", proxy.port)


def test_requests_are_answered_in_their_order(proxy):
    frames = [
        framed(MetadataRequest(topics=None), 12, 1),
        framed(ApiVersionsRequest(client_software_name="test", client_software_version="1"), 3, 2),
        framed(MetadataRequest(topics=None), 1, 3),
    ]
    with Client(proxy.port) as client:
        client.send(b"".join(frames * 50))
        got = [struct.unpack_from(">i", client.receive())[0] for _ in range(150)]
    assert got == [1, 2, 3] * 50


def produce(acks, transactional_id=None):
    return ProduceRequest(transactional_id=transactional_id, acks=acks, timeout_ms=1000, topic_data=[])


@pytest.mark.parametrize("version", [0, 2, 3, 8, 9, 13])
@pytest.mark.parametrize("transactional_id", [None, "t", "t" * 300])
def test_a_produce_request_without_an_answer_is_known(version, transactional_id):
    for acks in (0, 1, -1):
        frame = memoryview(framed(produce(acks, transactional_id), version))[4:]
        (client_id_size,) = struct.unpack_from(">h", frame, 8)
        assert is_unanswered(frame, version, client_id_size) == (acks == 0)


def test_no_answer_is_awaited_where_there_is_none(broker, proxy):
    producer = KafkaProducer(bootstrap_servers=proxy.bootstrap_servers, acks=0)
    for _ in range(20):
        producer.send("orders", b"tea").get(10)
    assert producer.partitions_for("orders") == {0}
    producer.close()
    with KafkaConsumer("orders", bootstrap_servers=proxy.bootstrap_servers, auto_offset_reset="earliest") as consumer:
        assert next(consumer).value == b"tea"


def test_a_request_that_the_broker_refuses_closes_the_connection(proxy):
    with Client(proxy.port) as client:
        client.send(struct.pack(">ihhih", 10, 999, 0, 1, -1))
        assert client.receive() is None
    with Client(proxy.port) as client:
        client.send(struct.pack(">ihh", 4, 3, 1))
        assert client.receive() is None


def test_a_cluster_that_cannot_be_reached_closes_the_connection(broker):
    with Proxy("127.0.0.1:1") as proxy, Client(proxy.port) as client:
        assert client.receive() is None


def test_one_of_several_bootstrap_servers_is_enough(broker):
    with Proxy(f"127.0.0.1:1,{broker.bootstrap_servers}") as proxy, Client(proxy.port) as client:
        (node,) = client.ask(MetadataRequest(topics=None), 12).brokers
        assert proxy.ports == {broker.bootstrap_servers: node.port}
        assert node.port != proxy.port


def test_a_client_that_does_not_read_holds_nobody_up(broker, proxy):
    broker.create_topic("orders")
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
    for _ in range(8):
        producer.send("orders", bytes(900_000))
    producer.close()

    async def crowd():
        readers = []
        from aiokafka import AIOKafkaConsumer

        reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
        for number in range(2000):
            writer.write(framed(MetadataRequest(topics=None), 12, number))
        for _ in range(3):
            consumer = AIOKafkaConsumer(
                "orders", bootstrap_servers=proxy.bootstrap_servers, auto_offset_reset="earliest"
            )
            await consumer.start()
            readers.append(consumer)
        for consumer in readers:
            for _ in range(8):
                assert len((await consumer.getone()).value) == 900_000
            await consumer.stop()
        for number in range(2000):
            size = int.from_bytes(await reader.readexactly(4))
            assert int.from_bytes((await reader.readexactly(size))[:4]) == number
        writer.close()

    asyncio.run(crowd())


# ---------------------------------------------------------------- TLS and SASL


def as_properties(security, **more):
    return {name.replace("_", "."): value for name, value in {**security, **more}.items()}


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_the_proxy_logs_in_by_itself(mechanism):
    with Broker(tls=True, users={"alice": "secret"}) as broker:
        properties = broker.client_settings("java", user="alice", mechanism=mechanism)
        with Proxy(broker.bootstrap_servers, properties) as proxy:
            producer = KafkaProducer(bootstrap_servers=proxy.bootstrap_servers)
            producer.send("orders", bytes(500_000)).get(10)
            producer.close()
        assert [len(record.value) for record in broker.records("orders")] == [500_000]


def test_a_session_is_prolonged_while_it_is_used():
    with Broker({"connections.max.reauth.ms": "1000"}, users={"alice": "secret"}) as broker:
        properties = broker.client_settings("java", user="alice")
        with Proxy(broker.bootstrap_servers, properties) as proxy, Client(proxy.port) as client:
            broker.record_requests()
            while len(broker.requests("SaslHandshake")) < 2:
                client.ask(MetadataRequest(topics=None), 12)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_clients_log_in_through_it(mechanism):
    with Broker(users={"alice": "secret"}) as broker, Proxy(broker.bootstrap_servers) as proxy:
        settings = broker.client_settings("kafka-python", user="alice", mechanism=mechanism)
        producer = KafkaProducer(**{**settings, "bootstrap_servers": proxy.bootstrap_servers})
        producer.send("orders", b"tea").get(10)
        producer.close()


def test_tokens_without_headers_pass():
    broker = Broker(users={"alice": "secret"})
    with broker, Proxy(broker.bootstrap_servers) as proxy, Client(proxy.port) as client:
        assert client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 0).error_code == 0
        token = b"\0alice\0secret"
        client.send(struct.pack(">i", len(token)) + token)
        assert client.receive() == b""
        assert client.ask(MetadataRequest(topics=None), 1).brokers[0].port == proxy.port

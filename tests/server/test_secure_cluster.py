"""Brokers and their controller over TLS and SASL, with an authorizer: nodes authenticate to each other, and replicate
records.
"""

import asyncio
import os

import pytest
from kafka import KafkaProducer
from kafka.admin import KafkaAdminClient

from barnabas.clock import SystemClock
from barnabas.cluster.formatting import Node, format_directories, scram_credential
from barnabas.config import BrokerConfig
from barnabas.log.files import MemoryFiles
from barnabas.server.server import Server
from barnabas.testing.certificates import Authority
from barnabas.uuids import random_uuid, uuid_text

MODULES = "org.apache.kafka.common.security"
INSIDE = "listener.name.inside"
CONTROLLER = "listener.name.controller"
LONGEST_S = 60


def stores():
    authority = Authority()
    own = authority.for_hosts("127.0.0.1")
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": own.key,
        "ssl.keystore.certificate.chain": own.certificate,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": authority.certificate,
        "ssl.client.auth": "required",
    }


def by_certificates():
    return {
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INSIDE:SSL,CONTROLLER:SSL",
        **stores(),
        "super.users": "User:CN=127.0.0.1;User:ANONYMOUS",
    }


def by_passwords():
    plain = 'username="node" password="plain secret" user_node="plain secret"'
    scram = 'username="node" password="scram secret"'
    return {
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INSIDE:SASL_SSL,CONTROLLER:SASL_PLAINTEXT",
        "sasl.mechanism.controller.protocol": "PLAIN",
        f"{CONTROLLER}.sasl.enabled.mechanisms": "PLAIN",
        f"{CONTROLLER}.plain.sasl.jaas.config": f"{MODULES}.plain.PlainLoginModule required {plain};",
        "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
        f"{INSIDE}.sasl.enabled.mechanisms": "SCRAM-SHA-512",
        f"{INSIDE}.scram-sha-512.sasl.jaas.config": f"{MODULES}.scram.ScramLoginModule required {scram};",
        **stores(),
        "super.users": "User:node;User:ANONYMOUS",
    }


def node(node_id, cluster_id, configs, **more):
    """Returns a server with its own files, formatted with the brokers' SCRAM credential."""
    files = MemoryFiles(SystemClock())
    format_directories(
        files,
        Node(cluster_id, node_id, ["/data"], "/data", has_static_voters=True),
        {},
        [scram_credential("SCRAM-SHA-512=[name=node,password=scram secret]", os.urandom)],
        ignore_formatted=False,
        now_ms=0,
        random_bytes=os.urandom,
    )
    properties = {
        "node.id": str(node_id),
        "log.dirs": "/data",
        "inter.broker.listener.name": "INSIDE",
        "controller.listener.names": "CONTROLLER",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        **configs,
        **{name.replace("_", "."): value for name, value in more.items()},
    }
    return Server(BrokerConfig.from_properties(properties, dev=True), files=files)


async def cluster(configs, use):
    """Runs two brokers, the first of which is the controller; ``use`` runs on a thread with the second's address."""
    cluster_id = uuid_text(random_uuid())
    outside = "PLAINTEXT://127.0.0.1:0,INSIDE://127.0.0.1:0"
    first = node(
        1,
        cluster_id,
        configs,
        process_roles="broker,controller",
        listeners=f"{outside},CONTROLLER://127.0.0.1:0",
        controller_quorum_voters="1@127.0.0.1:0",
    )
    await first.start()
    try:
        port = first.controller_listeners[0].port
        second = node(
            2,
            cluster_id,
            configs,
            process_roles="broker",
            listeners=outside,
            controller_quorum_voters=f"1@127.0.0.1:{port}",
        )
        await second.start()
        try:
            listener = next(each for each in second.listeners if each.endpoint.name == "PLAINTEXT")
            await asyncio.to_thread(use, f"127.0.0.1:{listener.port}")
        finally:
            await second.stop()
    finally:
        await first.stop()


@pytest.mark.parametrize("configs", [by_certificates, by_passwords])
def test_nodes_prove_who_they_are(configs):
    def use(address):
        admin = KafkaAdminClient(bootstrap_servers=address)
        admin.create_topics({"orders": {"num_partitions": 4, "replication_factor": 2}})
        admin.close()
        producer = KafkaProducer(bootstrap_servers=address, acks="all")
        sent = [producer.send("orders", partition=index % 4, value=b"%d" % index) for index in range(20)]
        for each in sent:
            each.get(LONGEST_S)
        producer.close()
        admin = KafkaAdminClient(bootstrap_servers=address)
        (topic,) = admin.describe_topics(["orders"])
        admin.close()
        assert {len(partition["isr_nodes"]) for partition in topic["partitions"]} == {2}
        assert {partition["leader_id"] for partition in topic["partitions"]} == {1, 2}

    asyncio.run(asyncio.wait_for(cluster(configs(), use), LONGEST_S))


def test_a_node_with_another_password_is_not_registered(caplog):
    refused = "failed authentication due to: Authentication failed: Invalid username or password"
    good = by_passwords()
    name = f"{CONTROLLER}.plain.sasl.jaas.config"

    async def test():
        cluster_id = uuid_text(random_uuid())
        outside = "PLAINTEXT://127.0.0.1:0,INSIDE://127.0.0.1:0"
        first = node(
            1,
            cluster_id,
            good,
            process_roles="broker,controller",
            listeners=f"{outside},CONTROLLER://127.0.0.1:0",
            controller_quorum_voters="1@127.0.0.1:0",
        )
        await first.start()
        port = first.controller_listeners[0].port
        bad = {**good, name: good[name].replace('password="plain secret"', 'password="wrong"')}
        second = node(
            2,
            cluster_id,
            bad,
            process_roles="broker",
            listeners=outside,
            controller_quorum_voters=f"1@127.0.0.1:{port}",
        )
        starting = asyncio.ensure_future(second.start())
        try:
            while refused not in caplog.text:
                await asyncio.sleep(0.01)
            assert not starting.done()
        finally:
            starting.cancel()
            await asyncio.wait([starting])
            await first.stop()

    asyncio.run(asyncio.wait_for(test(), LONGEST_S))
    assert "wrong" not in caplog.text

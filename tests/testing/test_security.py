"""The keywords for TLS, users and ACLs, with each client."""

import asyncio

import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.admin import ScramMechanism, UserScramCredentialUpsertion
from kafka.errors import KafkaError

from barnabas.cli.client import client_settings
from barnabas.cluster.controller.commands.quotas import AlterClientQuotas, QuotaAlteration
from barnabas.pipelines.client.cluster import Cluster
from barnabas.pipelines.client.settings import ClientSettings
from barnabas.security.clients.properties import security_settings
from barnabas.testing import Broker, allow, deny

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
USERS = {"alice": 'se"c,r=et'}
WAYS = {
    "plain text": ({}, {}),
    "TLS": ({"tls": True}, {}),
    "a client's certificate": ({"tls": True}, {"user": "alice"}),
    **{each: ({"users": USERS}, {"user": "alice", "mechanism": each}) for each in MECHANISMS},
    **{f"{each}, TLS": ({"tls": True, "users": USERS}, {"user": "alice", "mechanism": each}) for each in MECHANISMS},
}


@pytest.fixture(scope="module", params=list(WAYS))
def way(request):
    keywords, client = WAYS[request.param]
    with Broker(**keywords) as broker:
        yield broker, client


@pytest.fixture
def broker(way):
    return way[0]


@pytest.fixture
def settings(way):
    return lambda client: way[0].client_settings(client, **way[1])


def test_every_client_is_let_in(broker, settings):
    broker.reset()
    broker.create_topic("t")
    producer = KafkaProducer(**settings("kafka-python"))
    producer.send("t", b"kafka-python").get(30)
    producer.close()
    other = Producer(settings("confluent"))
    other.produce("t", b"confluent")
    assert other.flush(30) == 0

    async def third():
        async with AIOKafkaProducer(**settings("aiokafka")) as producer:
            await producer.send_and_wait("t", b"aiokafka")

    asyncio.run(third())
    assert [record.value for record in broker.records("t")] == [b"kafka-python", b"confluent", b"aiokafka"]


def test_javas_settings_are_those_of_our_commands(broker, settings):
    java = settings("java")
    made = {**client_settings(java, KafkaAdminClient.DEFAULT_CONFIG), **security_settings(java)}
    admin = KafkaAdminClient(bootstrap_servers=java["bootstrap.servers"], **made)
    assert admin.describe_cluster()["brokers"]
    admin.close()


def test_the_pipelines_client_takes_javas_settings(broker, settings):
    broker.reset()
    broker.create_topic("t", partitions=2)
    cluster = Cluster.of(ClientSettings.parse(settings("java")))
    assert cluster.partitions("t") == [0, 1]
    cluster.close()


def test_a_wrong_password_and_a_strange_certificate_are_refused():
    with Broker(tls=True, users={"alice": "secret"}) as broker, Broker(tls=True, users={"alice": "wrong"}) as other:
        for changes in (
            {"sasl.password": "wrong"},
            {"ssl.ca.pem": other.client_settings("confluent", user="alice")["ssl.ca.pem"]},
        ):
            admin = AdminClient({**broker.client_settings("confluent", user="alice"), **changes, "log_level": 0})
            with pytest.raises(KafkaException):
                admin.list_topics(timeout=1)


@pytest.mark.parametrize("keywords", [{"users": {"alice": "a", "bob": "b", "root": "c"}}, {"tls": True}])
def test_acls(keywords):
    """By the user's name, even if a certificate identifies the client; after a reset as at the beginning."""
    acls = [allow("alice", "write", topic="ord", prefixed=True), allow("bob", "read", topic="orders"),
            allow("bob", "read", group="*"), deny("bob", "read", topic="orders", host="10.0.0.1")]  # fmt: skip
    with Broker(**keywords, acls=acls, super_users="User:root") as broker:
        for _ in range(2):
            broker.reset()
            broker.create_topic("orders")
            assert may_write(broker, "alice") and not may_write(broker, "bob")
            consumer = KafkaConsumer(
                "orders",
                group_id="g",
                auto_offset_reset="earliest",
                consumer_timeout_ms=30_000,
                **broker.client_settings("kafka-python", user="bob"),
            )
            assert next(consumer).value == b"x"
            consumer.close()
            root = KafkaAdminClient(**broker.client_settings("kafka-python", user="root"))
            assert "orders" in root.list_topics()
            root.close()
            wanted = {(acl.principal, acl.operation) for acl in acls}
            assert wanted == broker._call(
                lambda: {(acl.principal, acl.operation) for acl in broker._server.broker.image.acls.values()}
            )


def may_write(broker, user):
    producer = KafkaProducer(**broker.client_settings("kafka-python", user=user), enable_idempotence=False)
    try:
        producer.send("orders", b"x").get(30)
        return True
    except KafkaError:
        return False
    finally:
        producer.close()


@pytest.mark.parametrize(
    ("keywords", "wanted"),
    [
        ({}, {"client": "kafka"}),
        ({}, {"client": "java", "user": "alice"}),
        ({"users": {"alice": "a"}}, {"client": "java"}),
        ({"users": {"alice": "a"}}, {"client": "java", "user": "bob"}),
        ({"users": {"alice": "a"}}, {"client": "java", "user": "alice", "mechanism": "GSSAPI"}),
    ],
)
def test_settings_that_there_are_not(keywords, wanted):
    with Broker(**keywords) as broker, pytest.raises(ValueError, match=r"must be one of|has no user"):
        broker.client_settings(wanted.pop("client"), **wanted)


def test_an_acl_is_about_one_resource():
    for resource in ({}, {"topic": "t", "group": "g"}, {"shelf": "s"}):
        with pytest.raises(ValueError, match="about one of"):
            allow("alice", "read", **resource)
    with pytest.raises(ValueError, match="operation"):
        deny("alice", "bake", topic="t")
    assert allow("a", "cluster_action", cluster=True).resource_name == "kafka-cluster"


def test_secrets_survive_a_restart_on_disk(tmp_path):
    for _ in range(2):
        with Broker({"log.dirs": str(tmp_path)}, on_disk=True, users={"alice": "secret"}) as broker:
            admin = KafkaAdminClient(**broker.client_settings("kafka-python", user="alice"))
            assert admin.list_topics() == []
            admin.close()


def test_new_users_and_quotas_are_gone_after_a_reset():
    with Broker(users={"alice": "secret"}) as broker:
        admin = KafkaAdminClient(**broker.client_settings("kafka-python", user="alice"))
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            bob = UserScramCredentialUpsertion("bob", mechanism, "hidden")
            assert admin.alter_user_scram_credentials([bob]) == {"bob": None}
        entity = {"user": "alice", "client-id": None}
        values = [("producer_byte_rate", 1.0), ("consumer_byte_rate", 1.0)]
        broker._submit(AlterClientQuotas([QuotaAlteration(entity, values)]))
        broker.reset()
        assert list(admin.describe_user_scram_credentials()) == ["alice"]
        assert not broker._call(lambda: broker._server.broker.image.quotas)
        admin.close()

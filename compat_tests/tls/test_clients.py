"""Every client over mutual TLS: a transaction that is aborted, one that counts, and a group that reads it.

Half of a megabyte each way, so that answers and requests are many records of TLS.
"""

import asyncio
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import trustme
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.helpers import create_ssl_context
from confluent_kafka import Consumer, Producer
from kafka import KafkaConsumer, KafkaProducer

from compat_tests.apache_kafka.apache import CURRENT, PREVIOUS, KafkaUnavailable, free_port, jars, run_java
from compat_tests.running import BarnabasProcess
from tests.security.tls.stores import PASSWORD, chain_pem, key_pem

COUNT, SIZE = 50, 10_000
PROGRAM = Path(__file__).parent / "java" / "Secured.java"
VALUES = [f"{number} {'x' * SIZE}".encode() for number in range(COUNT)]


class Secured(NamedTuple):
    """Where the broker is, and files of PEM."""

    bootstrap: str
    plain: str
    authority: str
    certificate: str
    key: str


def secured_broker(home: Path, stores: dict[str, str], authority: trustme.CA) -> Iterator[Secured]:
    port, plain = free_port(), free_port()
    broker = BarnabasProcess(
        home / "broker",
        {
            "listeners": f"PLAINTEXT://127.0.0.1:{plain},MUTUAL://127.0.0.1:{port}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,MUTUAL:SSL",
            "listener.name.mutual.ssl.client.auth": "required",
            **{f"listener.name.mutual.{name}": value for name, value in stores.items()},
        },
    )
    client = authority.issue_cert("client.example.org", common_name="client")
    (home / "client.key").write_text(key_pem(client))
    (home / "client.pem").write_text(chain_pem(client))
    broker.start()
    try:
        names = (home / "authority.pem", home / "client.pem", home / "client.key")
        yield Secured(f"127.0.0.1:{port}", f"127.0.0.1:{plain}", *map(str, names))
        assert not broker.complaints()
    finally:
        broker.kill()


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    home = tmp_path_factory.mktemp("secured")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(home / "authority.pem")
    server = authority.issue_cert("127.0.0.1")
    (home / "server.pem").write_text(key_pem(server) + chain_pem(server))
    stores = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(home / "server.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(home / "authority.pem"),
    }
    yield from secured_broker(home, stores, authority)


@pytest.fixture(scope="module")
def of_java(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """A broker with stores that keytool has made: a JKS, and a PKCS12 for what is trusted."""
    if shutil.which("keytool") is None or shutil.which("openssl") is None:
        pytest.skip("keytool or openssl is not installed")
    home = tmp_path_factory.mktemp("of-java")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(home / "authority.pem")
    server = authority.issue_cert("127.0.0.1", key_type=trustme.KeyType.RSA)
    (home / "server.pem").write_text(key_pem(server) + chain_pem(server))
    pkcs12 = ("openssl", "pkcs12", "-export", "-in", "server.pem", "-out", "server.p12", "-passout", f"pass:{PASSWORD}")
    keys = ("keytool", "-importkeystore", "-srckeystore", "server.p12", "-srcstorepass", PASSWORD)
    trust = ("keytool", "-importcert", "-noprompt", "-file", "authority.pem", "-alias", "a", "-storetype", "PKCS12")
    for command in (
        pkcs12,
        (*keys, "-destkeystore", "keys.jks", "-deststoretype", "JKS", "-deststorepass", PASSWORD, "-noprompt"),
        (*trust, "-keystore", "trust.p12", "-storepass", PASSWORD),
    ):
        subprocess.run(command, cwd=home, check=True, capture_output=True, timeout=60)
    stores = {
        "ssl.keystore.location": str(home / "keys.jks"),
        "ssl.keystore.password": PASSWORD,
        "ssl.truststore.type": "PKCS12",
        "ssl.truststore.location": str(home / "trust.p12"),
        "ssl.truststore.password": PASSWORD,
    }
    yield from secured_broker(home, stores, authority)


def with_kafka_python(secured: Secured, topic: str) -> list[bytes]:
    settings = {
        "bootstrap_servers": secured.bootstrap,
        "security_protocol": "SSL",
        "ssl_cafile": secured.authority,
        "ssl_certfile": secured.certificate,
        "ssl_keyfile": secured.key,
    }
    producer = KafkaProducer(**settings, transactional_id=topic)
    producer.init_transactions()
    producer.begin_transaction()
    producer.send(topic, b"aborted")
    producer.flush()
    producer.abort_transaction()
    producer.begin_transaction()
    for value in VALUES:
        producer.send(topic, value)
    producer.commit_transaction()
    producer.close()
    consumer = KafkaConsumer(
        topic,
        **settings,
        group_id=topic,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
        consumer_timeout_ms=30_000,
    )
    read = []
    for record in consumer:
        read.append(record.value)
        if len(read) == COUNT:
            break
    consumer.commit()
    consumer.close()
    return read


def with_confluent_kafka(secured: Secured, topic: str) -> list[bytes]:
    settings = {
        "bootstrap.servers": secured.bootstrap,
        "security.protocol": "SSL",
        "ssl.ca.location": secured.authority,
        "ssl.certificate.location": secured.certificate,
        "ssl.key.location": secured.key,
    }
    producer = Producer({**settings, "transactional.id": topic})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"aborted")
    producer.flush(30)
    producer.abort_transaction(30)
    producer.begin_transaction()
    for value in VALUES:
        producer.produce(topic, value)
    producer.commit_transaction(30)
    consumer = Consumer(
        {**settings, "group.id": topic, "auto.offset.reset": "earliest", "isolation.level": "read_committed"}
    )
    consumer.subscribe([topic])
    read: list[bytes] = []
    deadline = time.monotonic() + 30
    while len(read) < COUNT and time.monotonic() < deadline:
        message = consumer.poll(0.2)
        if message is not None and not message.error():
            read.append(message.value() or b"")
    consumer.commit(asynchronous=False)
    consumer.close()
    return read


def with_aiokafka(secured: Secured, topic: str) -> list[bytes]:
    async def run() -> list[bytes]:
        context = create_ssl_context(cafile=secured.authority, certfile=secured.certificate, keyfile=secured.key)
        settings = {
            "bootstrap_servers": secured.bootstrap,
            "security_protocol": "SSL",
            "ssl_context": context,
        }
        async with AIOKafkaProducer(**settings, transactional_id=topic) as producer:
            await producer.begin_transaction()
            await producer.send_and_wait(topic, b"aborted")
            await producer.abort_transaction()
            async with producer.transaction():
                for value in VALUES:
                    await producer.send(topic, value)
        consumer = AIOKafkaConsumer(
            topic, **settings, group_id=topic, auto_offset_reset="earliest", isolation_level="read_committed"
        )
        async with consumer, asyncio.timeout(30):
            read = [(await consumer.getone()).value for _ in VALUES]
            await consumer.commit()
            return read

    return asyncio.run(run())


Client = Callable[[Secured, str], list[bytes]]
CLIENTS: list[Client] = [with_kafka_python, with_confluent_kafka, with_aiokafka]


@pytest.mark.parametrize("client", CLIENTS, ids=lambda each: each.__name__)
def test_python(secured: Secured, client: Client) -> None:
    assert client(secured, client.__name__) == VALUES


@pytest.mark.parametrize("client", CLIENTS, ids=lambda each: each.__name__)
def test_with_stores_of_java(of_java: Secured, client: Client) -> None:
    assert client(of_java, client.__name__) == VALUES


@pytest.mark.parametrize("version", [CURRENT, PREVIOUS])
def test_java(secured: Secured, tmp_path: Path, version: str) -> None:
    try:
        jars(version)
    except KafkaUnavailable as missing:
        pytest.skip(str(missing))
    own = tmp_path / "own.pem"
    own.write_text(Path(secured.key).read_text() + Path(secured.certificate).read_text())
    settings = tmp_path / "client.properties"
    settings.write_text(
        f"bootstrap.servers={secured.bootstrap}\nsecurity.protocol=SSL\n"
        f"ssl.keystore.type=PEM\nssl.keystore.location={own}\n"
        f"ssl.truststore.type=PEM\nssl.truststore.location={secured.authority}\n"
    )
    topic = f"java-{version}"
    done = run_java(version, str(PROGRAM), str(settings), topic, str(COUNT), str(SIZE), timeout=110)
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    assert done.stdout.split() == [str(COUNT)]

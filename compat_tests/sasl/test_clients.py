"""Every client over SASL, without and with TLS: it writes in a transaction, and a group reads.

The broker has an authorizer that allows one user only.
"""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import trustme
from aiokafka.helpers import create_ssl_context
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient
from kafka.admin import KafkaAdminClient, ScramMechanism, UserScramCredentialUpsertion

from compat_tests.apache_kafka.apache import CURRENT, PREVIOUS, KafkaUnavailable, jars, run_java
from compat_tests.ports import free_port
from compat_tests.running import BarnabasProcess
from compat_tests.whole_round import CLIENTS
from tests.security.tls.stores import chain_pem, key_pem

MODULES = "org.apache.kafka.common.security"
PROGRAM = Path(__file__).parent.parent / "tls" / "java" / "Secured.java"
MECHANISMS = {"PLAIN": "plain.PlainLoginModule"} | dict.fromkeys(
    ("SCRAM-SHA-256", "SCRAM-SHA-512"), "scram.ScramLoginModule"
)
PROTOCOLS = ("SASL_PLAINTEXT", "SASL_SSL")
SHORT = "SHORT"
"""A listener with sessions of two seconds: librdkafka re-authenticates earlier, at most once a second (KIP-368)."""
USER, PASSWORD, WRONG = "alice", "alice-secret", "not-hers"
COUNT = 20
VALUES = [b"%d" % number for number in range(COUNT)]


class Way(NamedTuple):
    """The login configs of a client."""

    bootstrap: str
    protocol: str
    mechanism: str
    authority: str
    password: str = PASSWORD

    @property
    def topic(self) -> str:
        return f"{self.protocol}-{self.mechanism}"


class Secured(NamedTuple):
    ports: dict[str, int]
    authority: str

    def way(self, protocol: str, mechanism: str, password: str = PASSWORD) -> Way:
        return Way(f"127.0.0.1:{self.ports[protocol]}", protocol, mechanism, self.authority, password)


def settings(home: Path, ports: dict[str, int]) -> dict[str, str]:
    found = {
        "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items()),
        "inter.broker.listener.name": "PLAINTEXT",
        "listener.name.sasl_ssl.ssl.keystore.type": "PEM",
        "listener.name.sasl_ssl.ssl.keystore.location": str(home / "server.pem"),
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": f"User:ANONYMOUS;User:{USER}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL,"
        f"{SHORT}:SASL_PLAINTEXT",
        "listener.name.short.connections.max.reauth.ms": "2000",
    }
    for protocol in (*PROTOCOLS, SHORT):
        for mechanism, module in MECHANISMS.items():
            name = f"listener.name.{protocol.lower()}.{mechanism.lower()}.sasl.jaas.config"
            users = f' user_{USER}="{PASSWORD}" user_bob="{PASSWORD}"' if mechanism == "PLAIN" else ""
            found[name] = f"{MODULES}.{module} required{users};"
    return found


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    home = tmp_path_factory.mktemp("sasl")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(home / "authority.pem")
    server = authority.issue_cert("127.0.0.1")
    (home / "server.pem").write_text(key_pem(server) + chain_pem(server))
    ports = {name: free_port() for name in ("PLAINTEXT", *PROTOCOLS, SHORT)}
    broker = BarnabasProcess(home / "broker", settings(home, ports))
    broker.start()
    try:
        admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            upsertion = UserScramCredentialUpsertion(USER, mechanism, PASSWORD)
            assert admin.alter_user_scram_credentials([upsertion]) == {USER: None}
        admin.close()
        yield Secured(ports, str(home / "authority.pem"))
        assert not broker.complaints()
        for secret in (PASSWORD, WRONG):
            assert secret not in broker.output.read_text()
    finally:
        broker.kill()


def of_kafka_python(way: Way, user: str = USER) -> dict[str, Any]:
    return {
        "bootstrap_servers": way.bootstrap,
        "security_protocol": way.protocol,
        "sasl_mechanism": way.mechanism,
        "sasl_plain_username": user,
        "sasl_plain_password": way.password,
        "ssl_cafile": way.authority,
    }


def of_librdkafka(way: Way, user: str = USER) -> dict[str, Any]:
    return {
        "bootstrap.servers": way.bootstrap,
        "security.protocol": way.protocol,
        "sasl.mechanism": way.mechanism,
        "sasl.username": user,
        "sasl.password": way.password,
        "ssl.ca.location": way.authority,
    }


def of_aiokafka(way: Way) -> dict[str, Any]:
    settings = of_kafka_python(way)
    return settings | {"ssl_context": create_ssl_context(cafile=settings.pop("ssl_cafile"))}


SETTINGS: dict[str, Callable[[Way], dict[str, Any]]] = {
    "kafka-python": of_kafka_python,
    "confluent-kafka": of_librdkafka,
    "aiokafka": of_aiokafka,
}


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("client", CLIENTS)
def test_python(secured: Secured, client: str, mechanism: str, protocol: str) -> None:
    way = secured.way(protocol, mechanism)
    assert CLIENTS[client](SETTINGS[client](way), f"{client}-{way.topic}", VALUES) == VALUES


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_wrong_password(secured: Secured, mechanism: str) -> None:
    way = secured.way("SASL_PLAINTEXT", mechanism, WRONG)
    errors: list[str] = []
    producer = Producer({**of_librdkafka(way), "error_cb": lambda error: errors.append(error.str())})
    with pytest.raises(KafkaException):
        producer.list_topics(timeout=3)
    deadline = time.monotonic() + 60
    while not any("invalid credentials" in each or "Invalid username or password" in each for each in errors):
        assert time.monotonic() < deadline, errors
        producer.poll(0.1)


def test_a_user_without_rights(secured: Secured) -> None:
    admin = AdminClient(of_librdkafka(secured.way("SASL_PLAINTEXT", "PLAIN"), "bob"))
    assert admin.list_topics(timeout=30).topics == {}
    admin = AdminClient(of_librdkafka(secured.way("SASL_PLAINTEXT", "PLAIN")))
    assert admin.list_topics(timeout=30).brokers


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_sessions_end(secured: Secured, mechanism: str) -> None:
    """librdkafka re-authenticates on its connection in time (KIP-368): no connection is lost, no record sent twice."""
    way = secured.way("SASL_PLAINTEXT", mechanism)._replace(bootstrap=f"127.0.0.1:{secured.ports[SHORT]}")
    results: list[object] = []
    producer = Producer(
        {**of_librdkafka(way), "retries": 0, "error_cb": results.append, "topic.metadata.refresh.interval.ms": 500}
    )
    deadline = time.monotonic() + 4.5
    while time.monotonic() < deadline:
        producer.produce(f"short-{mechanism}", b"x", on_delivery=lambda error, _: results.append(error))
        assert producer.flush(10) == 0
        time.sleep(0.1)
    assert set(results) == {None}


@pytest.mark.parametrize(
    ("version", "protocol", "mechanism"),
    [
        (CURRENT, "SASL_PLAINTEXT", "PLAIN"),
        (CURRENT, "SASL_SSL", "SCRAM-SHA-512"),
        (PREVIOUS, "SASL_PLAINTEXT", "SCRAM-SHA-256"),
    ],
)
def test_java(secured: Secured, tmp_path: Path, version: str, protocol: str, mechanism: str) -> None:
    try:
        jars(version)
    except KafkaUnavailable as missing:
        pytest.skip(str(missing))
    way = secured.way(protocol, mechanism)
    jaas = f'{MODULES}.{MECHANISMS[mechanism]} required username="{USER}" password="{PASSWORD}";'
    file = tmp_path / "client.properties"
    file.write_text(
        f"bootstrap.servers={way.bootstrap}\nsecurity.protocol={protocol}\nsasl.mechanism={mechanism}\n"
        f"sasl.jaas.config={jaas}\nssl.truststore.type=PEM\nssl.truststore.location={way.authority}\n"
    )
    done = run_java(version, str(PROGRAM), str(file), f"java-{version}-{way.topic}", str(COUNT), "10", timeout=110)
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    assert done.stdout.split() == [str(COUNT)]

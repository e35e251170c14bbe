"""TLS and SASL as the pipeline's client does them, with an Apache Kafka that demands them: Barnabas has neither yet."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import trustme
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from kafka.admin import KafkaAdminClient, ScramMechanism, UserScramCredentialUpsertion

from barnabas.pipelines.client.cluster import LATEST, Cluster, TopicPartition, Unauthenticated
from barnabas.pipelines.client.settings import ClientSettings

from .apache import ApacheKafka, KafkaUnavailable, free_port, jars

SECURITY = "org.apache.kafka.common.security"


class Secured(NamedTuple):
    """Where each listener is, and files of PEM."""

    tls: str
    plain: str
    scram: str
    authority: str
    client: str


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    try:
        jars()
    except KafkaUnavailable as reason:
        pytest.skip(str(reason))
    home = tmp_path_factory.mktemp("secured")
    authority = trustme.CA()
    server, client = authority.issue_cert("127.0.0.1"), authority.issue_cert("pipeline@example.org")
    authority.cert_pem.write_to_path(home / "authority.pem")
    for name, certificate in (("server", server), ("client", client)):
        chain = b"".join(pem.bytes() for pem in certificate.cert_chain_pems)
        (home / f"{name}.pem").write_bytes(pkcs8(certificate.private_key_pem.bytes()) + chain)
    ports = {name: free_port() for name in ("TLS", "PLAIN", "SCRAM")}
    broker = ApacheKafka(home / "broker", properties(home, ports))
    broker.properties["listeners"] += "".join(f",{name}://127.0.0.1:{port}" for name, port in ports.items())
    broker.properties["advertised.listeners"] += "".join(f",{name}://127.0.0.1:{port}" for name, port in ports.items())
    with broker:
        admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
        admin.create_topics({"orders": {"num_partitions": 2, "replication_factor": 1}})
        user = UserScramCredentialUpsertion("me", ScramMechanism.SCRAM_SHA_512, "secret")
        assert admin.alter_user_scram_credentials([user]) == {"me": None}
        admin.close()
        yield Secured(
            *(f"127.0.0.1:{port}" for port in ports.values()), str(home / "authority.pem"), str(home / "client.pem")
        )


def pkcs8(key: bytes) -> bytes:
    """A private key in the only form that Java reads."""
    return load_pem_private_key(key, None).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def properties(home: Path, ports: dict[str, int]) -> dict[str, str]:
    """TLS asks for a certificate of the client's, PLAIN goes over TLS, SCRAM over a plain connection."""
    stores = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(home / "server.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(home / "authority.pem"),
    }
    return {
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,TLS:SSL,PLAIN:SASL_SSL,"
        "SCRAM:SASL_PLAINTEXT",
        **{f"listener.name.{name}.{key}": value for name in ("tls", "plain") for key, value in stores.items()},
        "listener.name.tls.ssl.client.auth": "required",
        "listener.name.plain.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.plain.plain.sasl.jaas.config": f'{SECURITY}.plain.PlainLoginModule required user_me="secret";',
        "listener.name.scram.sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "listener.name.scram.scram-sha-512.sasl.jaas.config": f"{SECURITY}.scram.ScramLoginModule required;",
    }


def login(password: str = "secret") -> str:
    return f'{SECURITY}.scram.ScramLoginModule required username="me" password="{password}";'


def settings(secured: Secured, listener: str, **said: str) -> dict[str, str]:
    tls = {"ssl.truststore.location": secured.authority}
    sasl = {"sasl.jaas.config": login()}
    ways = {
        "tls": {"security.protocol": "SSL", **tls, "ssl.keystore.location": secured.client},
        "plain": {"security.protocol": "SASL_SSL", **tls, **sasl, "sasl.mechanism": "PLAIN"},
        "scram": {"security.protocol": "SASL_PLAINTEXT", **sasl, "sasl.mechanism": "SCRAM-SHA-512"},
    }
    given = {"bootstrap.servers": getattr(secured, listener), "default.api.timeout.ms": "15000", **ways[listener]}
    return {**given, **{name.replace("_", "."): value for name, value in said.items()}}


@pytest.mark.parametrize("listener", ["tls", "plain", "scram"])
def test_who_proves_himself_is_let_in(secured: Secured, listener: str) -> None:
    cluster = Cluster.of(ClientSettings.parse(settings(secured, listener)))
    first = TopicPartition("orders", 0)
    assert cluster.partitions("orders") == [0, 1]
    assert cluster.list_offsets({first: LATEST})[first].offset == 0
    admin = cluster.admin()
    assert "orders" in admin.list_topics()
    admin.close()
    cluster.close()


@pytest.mark.parametrize(
    ("listener", "said", "words"),
    [
        ("plain", {"sasl_jaas_config": login("wrong")}, "Invalid username or password"),
        ("scram", {"sasl_jaas_config": login("wrong")}, "invalid credentials"),
        ("scram", {"sasl_mechanism": "PLAIN"}, "(SASL_PLAINTEXT PLAIN): "),
        ("tls", {"ssl_truststore_location": "{client}"}, "CERTIFICATE_VERIFY_FAILED"),
    ],
)
def test_who_does_not_is_told_at_once(secured: Secured, listener: str, said: dict[str, str], words: str) -> None:
    began = time.monotonic()
    said = {name: value.format(client=secured.client) if "{client}" in value else value for name, value in said.items()}
    told = {**settings(secured, listener, **said), "default.api.timeout.ms": "60000"}
    with pytest.raises(Unauthenticated) as refused:
        Cluster.of(ClientSettings.parse(told)).topics()
    assert words in str(refused.value) and getattr(secured, listener) in str(refused.value)
    assert "secret" not in str(refused.value)
    assert time.monotonic() - began < 30, "it was tried again"

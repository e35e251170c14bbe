"""Every client over mutual TLS: an aborted transaction, a committed one, and a group that reads it.

Requests and responses have half a megabyte, so that each is many TLS records.
"""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import trustme
from aiokafka.helpers import create_ssl_context

from compat_tests.apache_kafka.apache import RELEASES, KafkaUnavailable, jars, run_java
from compat_tests.ports import free_port
from compat_tests.running import BarnabasProcess
from compat_tests.whole_round import CLIENTS
from tests.security.tls.stores import PASSWORD, chain_pem, key_pem

COUNT, SIZE = 50, 10_000
PROGRAM = Path(__file__).parent / "java" / "Secured.java"
VALUES = [f"{number} {'x' * SIZE}".encode() for number in range(COUNT)]


class Secured(NamedTuple):
    """The broker's address, and the PEM files."""

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
    """Yields a broker with stores made by keytool: a JKS as the key store, a PKCS12 as the trust store."""
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


def of_kafka_python(secured: Secured) -> dict[str, Any]:
    return {
        "bootstrap_servers": secured.bootstrap,
        "security_protocol": "SSL",
        "ssl_cafile": secured.authority,
        "ssl_certfile": secured.certificate,
        "ssl_keyfile": secured.key,
    }


def of_librdkafka(secured: Secured) -> dict[str, Any]:
    return {
        "bootstrap.servers": secured.bootstrap,
        "security.protocol": "SSL",
        "ssl.ca.location": secured.authority,
        "ssl.certificate.location": secured.certificate,
        "ssl.key.location": secured.key,
    }


def of_aiokafka(secured: Secured) -> dict[str, Any]:
    context = create_ssl_context(cafile=secured.authority, certfile=secured.certificate, keyfile=secured.key)
    return {"bootstrap_servers": secured.bootstrap, "security_protocol": "SSL", "ssl_context": context}


SETTINGS = {"kafka-python": of_kafka_python, "confluent-kafka": of_librdkafka, "aiokafka": of_aiokafka}


@pytest.mark.parametrize("client", CLIENTS)
def test_python(secured: Secured, client: str) -> None:
    assert CLIENTS[client](SETTINGS[client](secured), client, VALUES) == VALUES


@pytest.mark.parametrize("client", CLIENTS)
def test_with_stores_of_java(of_java: Secured, client: str) -> None:
    assert CLIENTS[client](SETTINGS[client](of_java), client, VALUES) == VALUES


@pytest.mark.parametrize("version", RELEASES)
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

"""TLS and SASL of the pipeline's client, with an Apache Kafka that requires them."""

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, load_pem_private_key, pkcs12

from barnabas.pipelines.client.cluster import LATEST, Cluster, TopicPartition, Unauthenticated
from barnabas.pipelines.client.settings import ClientSettings

from .secured import SECURITY, Secured, start


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    yield from start(tmp_path_factory.mktemp("secured"))


def login(password: str = "secret") -> str:
    return f'{SECURITY}.scram.ScramLoginModule required username="me" password="{password}";'


def settings(secured: Secured, listener: str, **said: str) -> dict[str, str]:
    given = {**secured.properties(listener), "default.api.timeout.ms": "15000"}
    return {**given, **{name.replace("_", "."): value for name, value in said.items()}}


@pytest.mark.parametrize("listener", ["tls", "plain", "scram", "oauth"])
def test_authenticated_clients_are_accepted(secured: Secured, listener: str) -> None:
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
def test_other_clients_fail_at_once(secured: Secured, listener: str, said: dict[str, str], words: str) -> None:
    began = time.monotonic()
    said = {name: value.format(client=secured.client) if "{client}" in value else value for name, value in said.items()}
    printed = {**settings(secured, listener, **said), "default.api.timeout.ms": "60000"}
    with pytest.raises(Unauthenticated) as refused:
        Cluster.of(ClientSettings.parse(printed)).topics()
    assert words in str(refused.value) and getattr(secured, listener) in str(refused.value)
    assert "secret" not in str(refused.value)
    assert time.monotonic() - began < 30, "it was tried again"


@pytest.mark.parametrize("kind", ["JKS", "PKCS12"])
def test_stores_of_java(secured: Secured, kind: str, tmp_path: Path) -> None:
    """Certificates of client and authority, in stores made by keytool."""
    keys, trust = str(tmp_path / "keys"), str(tmp_path / "trust")
    passwords = ["-storepass", "changeit", "-noprompt", "-storetype", kind]
    keytool("-importcert", "-alias", "ca", "-file", secured.authority, "-keystore", trust, *passwords)
    (tmp_path / "client.p12").write_bytes(pkcs12_of(Path(secured.client).read_bytes()))
    keytool("-importkeystore", "-srckeystore", str(tmp_path / "client.p12"), "-srcstorepass", "changeit",
            "-destkeystore", keys, "-deststorepass", "changeit", "-deststoretype", kind, "-noprompt")  # fmt: skip
    stores = {"ssl.truststore.location": trust, "ssl.truststore.password": "changeit", "ssl.truststore.type": kind,
              "ssl.keystore.location": keys, "ssl.keystore.password": "changeit",
              "ssl.keystore.type": kind}  # fmt: skip
    cluster = Cluster.of(ClientSettings.parse({**settings(secured, "tls"), **stores}))
    assert cluster.partitions("orders") == [0, 1]
    cluster.close()


def keytool(*arguments: str) -> None:
    ran = subprocess.run(["keytool", *arguments], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def pkcs12_of(pem: bytes) -> bytes:
    key, certificates = load_pem_private_key(pem, None), x509.load_pem_x509_certificates(pem)
    protection = BestAvailableEncryption(b"changeit")
    return pkcs12.serialize_key_and_certificates(b"me", key, certificates[0], certificates[1:], protection)  # type: ignore[arg-type]

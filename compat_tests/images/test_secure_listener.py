"""A listener for TLS and SCRAM beside the plain one, as Testcontainers for Node adds it to cp-kafka.

Knows nothing of the log, nor of the other libraries.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, load_pem_private_key, pkcs12
from cryptography.x509 import load_pem_x509_certificate
from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import KafkaError

from .container import Container
from .libraries import LIBRARIES
from .test_testcontainers import filled

KEYSTORE, PASSPHRASE = "/etc/kafka/secrets/server.keystore.pfx", "serverKeystorePassword"
MECHANISM, USER, PASSWORD = "SCRAM-SHA-256", "app-user", "userPassword"
SECURE = {
    "KAFKA_LISTENERS": "SECURE://0.0.0.0:{secure},PLAINTEXT://0.0.0.0:{port},BROKER://0.0.0.0:{broker}"
    ",CONTROLLER://0.0.0.0:{controller}",
    "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "BROKER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SECURE:SASL_SSL,CONTROLLER:PLAINTEXT",
    "KAFKA_SSL_PROTOCOL": "TLSv1.2",
    "KAFKA_SSL_KEYSTORE_LOCATION": KEYSTORE,
    "KAFKA_SSL_KEYSTORE_PASSWORD": PASSPHRASE,
    "KAFKA_SSL_KEYSTORE_TYPE": "PKCS12",
    "KAFKA_SASL_ENABLED_MECHANISMS": MECHANISM,
    f"KAFKA_LISTENER_NAME_SECURE_{MECHANISM}_SASL_JAAS_CONFIG": (
        "org.apache.kafka.common.security.scram.ScramLoginModule required;"
    ),
}
SCRIPT = f"""#!/bin/bash
export KAFKA_ADVERTISED_LISTENERS=BROKER://localhost:{{broker}},PLAINTEXT://localhost:{{port}},SECURE://localhost:{{secure}}
echo 'kafka-storage format --ignore-formatted -t "4L6g3nShT-eMCtK--X86sw" -c /etc/kafka/kafka.properties \
--add-scram "{MECHANISM}=[name={USER},password={PASSWORD}]"' >> /etc/confluent/docker/configure
/etc/confluent/docker/run \n"""


@pytest.fixture
def container(tmp_path: Path) -> Iterator[Container]:
    made = Container(tmp_path / "root")
    yield made
    if made.process is not None and made.process.poll() is None:
        made.stop()


def keystore(authority: trustme.CA) -> bytes:
    issued = authority.issue_cert("localhost")
    key = load_pem_private_key(issued.private_key_pem.bytes(), None)
    certificate = load_pem_x509_certificate(issued.cert_chain_pems[0].bytes())
    return pkcs12.serialize_key_and_certificates(
        b"localhost",
        key,  # type: ignore[arg-type]
        certificate,
        None,
        BestAvailableEncryption(PASSPHRASE.encode()),
    )


def test_users_log_in_over_tls(container: Container, ports: dict[str, str], tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    store = container.root / KEYSTORE.lstrip("/")
    store.parent.mkdir(parents=True, exist_ok=True)
    store.write_bytes(keystore(authority))
    library = LIBRARIES["node with KRaft"]
    variables = {name: filled(value, ports) for name, value in {**library.variables, **SECURE}.items()}
    container.start(library.command, variables)
    container.put(library.script, filled(SCRIPT, ports), library.mode)
    container.wait_for("started")

    settings = {
        "bootstrap_servers": f"localhost:{ports['secure']}",
        "security_protocol": "SASL_SSL",
        "ssl_cafile": str(tmp_path / "ca.pem"),
        "sasl_mechanism": MECHANISM,
        "sasl_plain_username": USER,
        "sasl_plain_password": PASSWORD,
    }
    with KafkaProducer(**settings) as producer:
        producer.send("orders", b"tea").get(10)
    with KafkaConsumer("orders", group_id="g", auto_offset_reset="earliest", **settings) as consumer:
        assert next(iter(consumer)).value == b"tea"
    with pytest.raises(KafkaError):
        KafkaConsumer(**{**settings, "sasl_plain_password": "another"}, bootstrap_timeout_ms=3_000)
    assert container.stop() in (0, -15)
    assert "Traceback" not in container.logged()

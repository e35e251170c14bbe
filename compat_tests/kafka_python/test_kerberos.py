"""kafka-python over GSSAPI, with a key distribution center of this test."""

import importlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaConsumer, KafkaProducer

from compat_tests.ports import free_port

from ..running import BarnabasProcess

SERVICE = "kafka/localhost"


@pytest.fixture(scope="module")
def realm() -> Iterator[Any]:
    """Yields a realm with a user and the service; its settings are in the environment."""
    pytest.importorskip("gssapi", reason="the package gssapi is not installed")
    k5test = pytest.importorskip("k5test", reason="the package k5test is not installed")
    if shutil.which("krb5kdc") is None and shutil.which("krb5kdc", path="/usr/sbin") is None:
        pytest.skip("krb5-kdc is not installed")
    with pytest.MonkeyPatch.context() as patch:
        realm = k5test.K5Realm(portbase=free_port())
        for name, value in realm.env.items():
            patch.setenv(name, value)
        realm.addprinc(SERVICE)
        realm.extract_keytab(SERVICE, realm.keytab)
        yield realm
        realm.stop()


def test_a_client_with_a_ticket_produces_and_consumes(realm: Any, tmp_path: Path) -> None:
    gssapi = importlib.import_module("gssapi")
    principal, ports = f"{SERVICE}@{realm.realm}", (free_port(), free_port())
    module = "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true"
    listeners = f"PLAINTEXT://127.0.0.1:{ports[0]},KERBEROS://127.0.0.1:{ports[1]}"
    overrides = {
        "listeners": listeners,
        "advertised.listeners": listeners,
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,KERBEROS:SASL_PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.kerberos.service.name": "kafka",
        "listener.name.kerberos.gssapi.sasl.jaas.config": f'{module} keyTab="{realm.keytab}" principal="{principal}";',
    }
    broker = BarnabasProcess(tmp_path / "broker", overrides)
    broker.port = ports[0]
    broker.start()
    try:
        settings = {
            "bootstrap_servers": f"127.0.0.1:{ports[1]}",
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "GSSAPI",
            "sasl_kerberos_name": gssapi.Name(principal, gssapi.NameType.kerberos_principal),
        }
        producer = KafkaProducer(**settings)
        producer.send("orders", b"one").get(20)
        producer.close()
        consumer = KafkaConsumer("orders", auto_offset_reset="earliest", consumer_timeout_ms=20_000, **settings)
        assert next(consumer).value == b"one"
        consumer.close()
    finally:
        broker.stop()

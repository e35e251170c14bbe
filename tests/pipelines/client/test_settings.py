"""Client settings by their Java names: what kafka-python makes of them, and what is refused."""

import pickle
import ssl
from pathlib import Path

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, load_pem_private_key, pkcs12

from barnabas.pipelines.client.settings import REFUSED, SETTINGS, BadSetting, ClientSettings

SERVERS = {"bootstrap.servers": "one:9092, [::1]:9093"}
LOGIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="me" password="a\\"b=c; d";'


def parse(**said: str) -> ClientSettings:
    return ClientSettings.parse({**SERVERS, **{name.replace("_", "."): value for name, value in said.items()}})


def test_settings_become_kafka_python_s() -> None:
    settings = parse(client_id="me", request_timeout_ms="5000").for_kafka_python()
    assert settings["bootstrap_servers"] == ["one:9092", "[::1]:9093"]
    assert (settings["client_id"], settings["request_timeout_ms"]) == ("me", 5000)
    assert settings["security_protocol"] == "PLAINTEXT"
    assert not [name for name in settings if name.startswith(("ssl", "sasl"))]


def test_they_are_compared_and_sent_by_what_was_said() -> None:
    one, other = parse(client_id="me", retry_backoff_ms="5"), parse(retry_backoff_ms="5", client_id="me")
    assert one == other and hash(one) == hash(other)
    assert pickle.loads(pickle.dumps(one)) == one
    assert one.seconds("retry.backoff.ms") == 0.005
    assert one != parse()


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_user_and_password_stand_where_java_has_them(mechanism: str) -> None:
    settings = parse(security_protocol="SASL_PLAINTEXT", sasl_mechanism=mechanism, sasl_jaas_config=LOGIN)
    made = settings.for_kafka_python()
    assert (made["sasl_mechanism"], made["sasl_plain_username"]) == (mechanism, "me")
    assert made["sasl_plain_password"] == 'a"b=c; d'
    assert "a" not in repr(settings).replace("SASL_PLAINTEXT", "").split("(")[1].replace("one:9092, [::1]:9093", "")


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"bootstrap_servers": "one"}, "must be host:port"),
        ({"bootstrap_servers": " , "}, "must contain at least one host:port"),
        ({"request_timeout_ms": "-1"}, "must not be negative"),
        ({"security_protocol": "TLS"}, "must be one of PLAINTEXT, SSL"),
        ({"sasl_mechanism": "SCRAM"}, "must be one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER, GSSAPI"),
        (
            {"security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN"},
            "must give user and password for PLAIN: ",
        ),
        (
            {"security_protocol": "SASL_SSL", "sasl_mechanism": "SCRAM-SHA-256", "sasl_jaas_config": 'username="a"'},
            "security.scram.ScramLoginModule required",
        ),
        ({"security_protocol": "SASL_SSL", "sasl_jaas_config": LOGIN}, "the cache of kinit"),
        ({"ssl_truststore_type": "BKS"}, "must be one of JKS, PKCS12, PEM"),
        ({"client_idd": "me"}, "did you mean kafka.client.id?"),
    ],
)
def test_what_cannot_be_is_told(said: dict[str, str], words: str) -> None:
    with pytest.raises(BadSetting) as refused:
        parse(**said)
    assert words in str(refused.value)


def test_a_password_is_never_shown() -> None:
    with pytest.raises(BadSetting) as refused:
        parse(security_protocol="SASL_SSL", sasl_mechanism="PLAIN", sasl_jaas_config="password='secret'")
    assert "secret" not in str(refused.value)


def test_a_store_that_cannot_be_loaded_is_reported_where_it_is_needed(tmp_path: Path) -> None:
    (tmp_path / "trust.jks").write_bytes(b"no store")
    settings = parse(
        security_protocol="SSL",
        ssl_truststore_location=str(tmp_path / "trust.jks"),
        ssl_truststore_password="secret",
    )
    with pytest.raises(BadSetting, match=r"trust\.jks") as refused:
        settings.for_kafka_python()
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_would_break_reading_or_do_nothing_is_refused_with_the_reason(name: str) -> None:
    assert name not in SETTINGS
    with pytest.raises(BadSetting, match=f"kafka.{name} cannot be set: ") as refused:
        ClientSettings.parse({**SERVERS, name: "x"})
    assert REFUSED[name] in str(refused.value)


@pytest.mark.parametrize("given", ["files", "text", "PKCS12"])
def test_certificates_are_pem_in_files_or_in_the_settings_themselves(tmp_path: Path, given: str) -> None:
    authority = trustme.CA()
    client = authority.issue_cert("me@example.org")
    trust, key = authority.cert_pem.bytes().decode(), client.private_key_pem.bytes().decode()
    chain = "".join(pem.bytes().decode() for pem in client.cert_chain_pems)
    if given == "files":
        (tmp_path / "trust.pem").write_text(trust)
        (tmp_path / "client.pem").write_text(key + chain)
        said = {
            "ssl_truststore_location": str(tmp_path / "trust.pem"),
            "ssl_keystore_location": str(tmp_path / "client.pem"),
        }
    elif given == "PKCS12":
        (tmp_path / "trust.pem").write_text(trust)
        (tmp_path / "client.p12").write_bytes(pkcs12_of(client))
        said = {
            "ssl_truststore_location": str(tmp_path / "trust.pem"),
            "ssl_keystore_location": str(tmp_path / "client.p12"),
            "ssl_keystore_password": "secret",
        }
    else:
        said = {"ssl_truststore_certificates": trust, "ssl_keystore_key": key, "ssl_keystore_certificate_chain": chain}
    context = parse(security_protocol="SSL", ssl_endpoint_identification_algorithm="", **said).for_kafka_python()[
        "ssl_context"
    ]
    assert context.cert_store_stats()["x509_ca"] == 1
    assert context.verify_mode == ssl.CERT_REQUIRED and not context.check_hostname
    assert parse(security_protocol="SSL").for_kafka_python()["ssl_context"].check_hostname


def pkcs12_of(client: trustme.LeafCert) -> bytes:
    key = load_pem_private_key(client.private_key_pem.bytes(), None)
    (own,) = [x509.load_pem_x509_certificate(each.bytes()) for each in client.cert_chain_pems[:1]]
    return pkcs12.serialize_key_and_certificates(b"me", key, own, None, BestAvailableEncryption(b"secret"))  # type: ignore[arg-type]

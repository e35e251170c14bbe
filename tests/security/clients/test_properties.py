import pytest
import trustme

from barnabas.security.clients.properties import InvalidProperty, security_settings
from barnabas.security.clients.stores import blocks_of

SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


def test_nothing_given_is_plain_text():
    assert security_settings({}) == {"security_protocol": "PLAINTEXT"}


def test_plain():
    jaas = 'a.PlainLoginModule required username="alice" password="a;b";'
    properties = {"security.protocol": "sasl_plaintext", "sasl.mechanism": "PLAIN", "sasl.jaas.config": jaas}
    assert security_settings(properties) == {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": "alice",
        "sasl_plain_password": "a;b",
    }


@pytest.mark.parametrize(("option", "extension"), [("", b""), ("tokenauth=true", b",tokenauth=true")])
def test_the_first_message_of_scram(option, extension):
    from kafka.net.sasl import get_sasl_mechanism

    jaas = f'{SCRAM} required username="a=b,c" password="secret" {option};'
    properties = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-256", "sasl.jaas.config": jaas}
    settings = security_settings(properties)
    client = get_sasl_mechanism("SCRAM-SHA-256")(**settings)
    first = client.auth_bytes()
    assert first.startswith(b"n,,n=a=3Db=2Cc,r=") and first.endswith(client._scram_client.nonce + extension)
    assert client._scram_client.auth_message == first.removeprefix(b"n,,")


def test_tls(tmp_path):
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "authority.pem")
    client = authority.issue_cert("me@example.org")
    properties = {
        "security.protocol": "SSL",
        "ssl.truststore.location": str(tmp_path / "authority.pem"),
        "ssl.keystore.key": client.private_key_pem.bytes().decode().replace("\n", " "),
        "ssl.keystore.certificate.chain": client.cert_chain_pems[0].bytes().decode(),
        "ssl.enabled.protocols": "TLSv1.3",
    }
    context = security_settings(properties)["ssl_context"]
    assert context.check_hostname and context.minimum_version.name == "TLSv1_3"
    assert len(context.get_ca_certs()) == 1
    assert not security_settings({**properties, "ssl.endpoint.identification.algorithm": ""})[
        "ssl_context"
    ].check_hostname


@pytest.mark.parametrize(
    "properties",
    [
        {"security.protocol": "TLS"},
        {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"},
        {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.jaas.config": "secret"},
        {"security.protocol": "SSL", "ssl.truststore.location": "/no/such"},
        {"security.protocol": "SSL", "ssl.truststore.certificates": "secret"},
        {"security.protocol": "SSL", "ssl.enabled.protocols": "SSLv3"},
    ],
)
def test_what_cannot_be_used_is_refused_without_secrets(properties):
    with pytest.raises(InvalidProperty) as refused:
        security_settings(properties)
    assert "secret" not in str(refused.value)


def test_line_breaks_that_were_lost_come_back():
    assert blocks_of("x -----BEGIN A B----- YW Jj -----END A B----- y", "it") == (
        "-----BEGIN A B-----\nYWJj\n-----END A B-----\n"
    )

"""Key and trust stores of every kind; those of Java are made by Java's keytool."""

import shutil
import subprocess
from pathlib import Path

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, load_pem_private_key, pkcs12

from barnabas.config import BrokerConfig
from barnabas.config.listener_configs import ListenerConfigs
from barnabas.security.tls.jks import JksError, read_jks, recover_key
from barnabas.security.tls.stores import InvalidStore, load_key_store, load_trust_store
from tests.security.tls.stores import PASSWORD, chain_pem, inline, key_pem


@pytest.fixture(scope="module")
def authority():
    return trustme.CA()


@pytest.fixture(scope="module")
def certificate(authority):
    return authority.issue_cert("127.0.0.1", common_name="server")


def configs(**given):
    return ListenerConfigs(BrokerConfig({name.replace("_", "."): value for name, value in given.items()}), "SSL")


def read(path):
    return Path(path).read_bytes()


def same_key(entry, certificate):
    expected = load_pem_private_key(certificate.private_key_pem.bytes(), None)
    return entry.key.private_numbers() == expected.private_numbers()


@pytest.mark.parametrize("password", [None, "secret"])
def test_pem_in_the_configs(authority, certificate, password):
    given = ListenerConfigs(BrokerConfig(inline(authority, certificate, password=password)), "SSL")
    (entry,) = load_key_store(given, read)
    assert same_key(entry, certificate)
    assert entry.distinguished_name.startswith("CN=server, OU=")
    assert entry.alternative_names == ["IPAddress:127.0.0.1"]
    assert "PRIVATE" not in repr(entry)
    (trusted,) = load_trust_store(given, read)
    assert trusted.subject == entry.chain[-1].issuer


def test_pem_in_a_file(tmp_path, certificate):
    (tmp_path / "store.pem").write_text(chain_pem(certificate) + key_pem(certificate, "secret"))
    given = configs(
        ssl_keystore_type="PEM", ssl_keystore_location=str(tmp_path / "store.pem"), ssl_key_password="secret"
    )
    (entry,) = load_key_store(given, read)
    assert same_key(entry, certificate)


@pytest.fixture(scope="module")
def pkcs12_store(tmp_path_factory, authority, certificate):
    path = tmp_path_factory.mktemp("stores") / "key.p12"
    own, *others = [x509.load_pem_x509_certificate(each.bytes()) for each in certificate.cert_chain_pems]
    others.append(x509.load_pem_x509_certificate(authority.cert_pem.bytes()))
    key = load_pem_private_key(certificate.private_key_pem.bytes(), None)
    path.write_bytes(
        pkcs12.serialize_key_and_certificates(b"own", key, own, others, BestAvailableEncryption(PASSWORD.encode()))
    )
    return path


@pytest.mark.parametrize("kind", ["PKCS12", "JKS"])
def test_pkcs12(pkcs12_store, certificate, kind):
    given = configs(
        ssl_keystore_type=kind,
        ssl_keystore_location=str(pkcs12_store),
        ssl_keystore_password=PASSWORD,
        ssl_truststore_type=kind,
        ssl_truststore_location=str(pkcs12_store),
        ssl_truststore_password=PASSWORD,
    )
    (entry,) = load_key_store(given, read)
    assert same_key(entry, certificate)
    assert len(entry.chain) == 2
    assert load_trust_store(given, read) == entry.chain[:1], "of a chain, Java trusts the first"


def keytool(*words):
    if shutil.which("keytool") is None:
        pytest.skip("stores of Java's own are made by keytool, which is not installed")
    done = subprocess.run(["keytool", *map(str, words)], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("kind", ["JKS", "PKCS12"])
def test_stores_of_keytool(tmp_path, pkcs12_store, authority, certificate, kind):
    keys, trust = tmp_path / "keys", tmp_path / "trust"
    key_password = "another" if kind == "JKS" else PASSWORD
    keytool(
        *("-importkeystore", "-srckeystore", pkcs12_store, "-srcstoretype", "PKCS12", "-srcstorepass", PASSWORD),
        *("-destkeystore", keys, "-deststoretype", kind, "-deststorepass", PASSWORD, "-destkeypass", key_password),
        *("-srcalias", "own", "-noprompt"),
    )
    authority.cert_pem.write_to_path(tmp_path / "authority.pem")
    keytool(
        *("-importcert", "-keystore", trust, "-storetype", kind, "-storepass", PASSWORD, "-noprompt"),
        *("-alias", "authority", "-file", tmp_path / "authority.pem"),
    )
    given = {
        "ssl_keystore_type": kind,
        "ssl_keystore_location": str(keys),
        "ssl_keystore_password": PASSWORD,
        "ssl_key_password": key_password,
        "ssl_truststore_type": kind,
        "ssl_truststore_location": str(trust),
        "ssl_truststore_password": PASSWORD,
    }
    (entry,) = load_key_store(configs(**given), read)
    assert same_key(entry, certificate)
    assert load_trust_store(configs(**given), read) == entry.chain[-1:]
    for wrong in ("ssl_keystore_password", "ssl_truststore_password"):
        with pytest.raises(InvalidStore) as refused:
            load = load_key_store if "keystore" in wrong else load_trust_store
            load(configs(**{**given, wrong: "mistaken"}), read)
        assert str(refused.value).startswith("Failed to load SSL keystore ")
        assert "mistaken" not in str(refused.value)
    if kind == "JKS":
        content = keys.read_bytes()
        (found,) = read_jks(content, PASSWORD)
        with pytest.raises(JksError, match="Cannot recover key"):
            recover_key(found.protected_key, PASSWORD)
        for size in range(len(content)):
            with pytest.raises(JksError):
                read_jks(content[:size], PASSWORD)
        for at in range(0, len(content), 7):
            broken = bytearray(content)
            broken[at] ^= 0x55
            with pytest.raises(JksError):
                read_jks(bytes(broken), PASSWORD)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"ssl_keystore_key": "x"}, "SSL private key can be specified only for PEM, but key store type is JKS."),
        (
            {"ssl_keystore_type": "PEM", "ssl_keystore_key": "x"},
            "SSL private key is specified, but certificate chain is not specified.",
        ),
        (
            {"ssl_keystore_type": "PEM", "ssl_keystore_certificate_chain": "x"},
            "SSL certificate chain is specified, but private key is not specified",
        ),
        ({"ssl_keystore_password": "x"}, "SSL key store is not specified, but key store password is specified."),
        ({"ssl_keystore_location": "x"}, "SSL key store is specified, but key store password is not specified."),
        (
            {"ssl_keystore_location": "x", "ssl_keystore_type": "PEM", "ssl_keystore_password": "x"},
            "SSL key store password cannot be specified with PEM format, only key password may be specified",
        ),
        (
            {"ssl_truststore_certificates": "x"},
            "SSL trust store certs can be specified only for PEM, but trust store type is JKS.",
        ),
        ({"ssl_truststore_password": "x"}, "SSL trust store is not specified, but trust store password is specified."),
        (
            {"ssl_keystore_type": "PEM", "ssl_keystore_key": "secret", "ssl_keystore_certificate_chain": "x"},
            "Invalid PEM keystore configs",
        ),
        ({"ssl_truststore_location": "/nowhere/x"}, "Failed to load SSL keystore /nowhere/x of type JKS"),
    ],
)
def test_what_is_refused_in_kafkas_words(given, words):
    with pytest.raises(InvalidStore) as refused:
        load_key_store(configs(**given), read)
        load_trust_store(configs(**given), read)
    assert str(refused.value) == words


def test_no_store_is_no_error():
    assert load_key_store(configs(), read) is None and load_trust_store(configs(), read) is None

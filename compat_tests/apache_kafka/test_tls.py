"""TLS beside Apache Kafka: the same listeners, certificates and messages."""

import datetime
import re
import ssl
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from barnabas.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from compat_tests.ports import free_port
from compat_tests.running import BarnabasProcess
from tests.raw import Client

from .apache import ApacheKafka, KafkaUnavailable, jars

SET = 0
P = "listener.name.tls."


class Authority:
    """Issues certificates with exactly the requested names."""

    def __init__(self, name: str) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.certificate = self._sign(self.name, self.key.public_key(), None)

    def _sign(self, subject: x509.Name, key: ec.EllipticCurvePublicKey, names: list[str] | None) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self.name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=names is None, path_length=None), critical=True)
        )
        if names is not None:
            builder = builder.add_extension(x509.SubjectAlternativeName(list(map(x509.DNSName, names))), critical=False)
        return builder.sign(self.key, hashes.SHA256())

    def store(self, path: Path, subject: str, names: list[str]) -> str:
        """Writes a new key, with a certificate, to a file of PEM."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._sign(x509.Name.from_rfc4514_string(subject), key.public_key(), names)
        pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        path.write_bytes(pem + certificate.public_bytes(Encoding.PEM))
        return str(path)


NETWORK_THREADS = 3
"""Apache Kafka's default of ``num.network.threads``."""


class Pair:
    """Starts both brokers, each with equal stores of its own."""

    def __init__(self, home: Path) -> None:
        self.authority, self.other = Authority("authority"), Authority("other")
        self.homes = {name: home / name for name in ("apache", "barnabas")}
        self.ports = {name: free_port() for name in self.homes}
        for folder in self.homes.values():
            folder.mkdir()
            self.write(folder)
        apache, barnabas = self.homes.values()
        self.apache = ApacheKafka(apache / "broker", configs(apache))
        for name in ("listeners", "advertised.listeners"):
            self.apache.properties[name] += f",TLS://127.0.0.1:{self.ports['apache']},BARE://127.0.0.1:{free_port()}"
        plain = free_port()
        listeners = f"PLAINTEXT://127.0.0.1:{plain},TLS://127.0.0.1:{self.ports['barnabas']},BARE://127.0.0.1:0"
        self.barnabas = BarnabasProcess(
            barnabas / "broker", {**configs(barnabas), "listeners": listeners, "inter.broker.listener.name": "TLS"}
        )

    def write(self, folder: Path) -> None:
        """Writes the stores, with new keys."""
        names = ["localhost", "kafka.example.org"]
        self.authority.store(folder / "own.pem", "CN=server,O=Kafka\\, Franz", names)
        self.authority.store(folder / "stranger.pem", "CN=stranger,O=Kafka\\, Franz", names)
        self.authority.store(folder / "fewer.pem", "CN=server,O=Kafka\\, Franz", names[:1])
        self.authority.store(folder / "more.pem", "CN=server,O=Kafka\\, Franz", [*names, "b.example.org"])
        self.other.store(folder / "untrusted.pem", "CN=server,O=Kafka\\, Franz", names)
        (folder / "empty.pem").write_bytes(b"")
        for name, authority in (("trust", self.authority), ("distrust", self.other)):
            (folder / f"{name}.pem").write_bytes(authority.certificate.public_bytes(Encoding.PEM))

    def alter(self, changes: dict[str, str], *, validate_only: bool = False, node: str = "1") -> list[tuple[int, str]]:
        """Alters configs at both, and returns the responses; `{home}` in values is the folder of each."""
        answers = []
        for name, port in (("apache", self.apache.port), ("barnabas", self.barnabas.port)):
            home = str(self.homes[name])
            resource = IncrementalAlterConfigsRequest.AlterConfigsResource
            configs = [
                resource.AlterableConfig(name=each, config_operation=SET, value=value.replace("{home}", home))
                for each, value in changes.items()
            ]
            altered = resource(resource_type=4, resource_name=node, configs=configs)
            with Client(port, timeout=30) as client:
                request = IncrementalAlterConfigsRequest(resources=[altered], validate_only=validate_only)
                (said,) = client.ask(request, 1).responses  # type: ignore[attr-defined]
            answers.append((said.error_code, (said.error_message or "").replace(home, "{home}")))
        return answers

    def served(self) -> list[tuple[str, bytes]]:
        """Returns the version and the certificate of each."""
        shown = []
        for port in self.ports.values():
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
            with Client(port) as client, context.wrap_socket(client.socket) as wrapped:
                shown.append((str(wrapped.version()), wrapped.getpeercert(binary_form=True) or b""))
        return shown


def configs(folder: Path) -> dict[str, str]:
    return {
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,TLS:SSL,BARE:SSL",
        "inter.broker.listener.name": "TLS",
        P + "ssl.keystore.type": "PEM",
        P + "ssl.keystore.location": str(folder / "own.pem"),
        P + "ssl.truststore.type": "PEM",
        P + "ssl.truststore.location": str(folder / "trust.pem"),
    }


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    try:
        jars()
    except KafkaUnavailable as reason:
        pytest.skip(str(reason))
    pair = Pair(tmp_path_factory.mktemp("tls"))
    try:
        pair.apache.start()
        pair.barnabas.start()
        yield pair
    finally:
        pair.apache.stop(kill=True)
        pair.barnabas.kill()


REFUSED = {
    "a file that is missing": {P + "ssl.keystore.location": "{home}/nope.pem"},
    "a file without anything": {P + "ssl.keystore.location": "{home}/empty.pem"},
    "a store without a key": {P + "ssl.keystore.location": "{home}/trust.pem"},
    "another name": {P + "ssl.keystore.location": "{home}/stranger.pem"},
    "fewer alternative names": {P + "ssl.keystore.location": "{home}/fewer.pem"},
    "another type": {P + "ssl.keystore.type": "JKS"},
    "a type that is none": {P + "ssl.keystore.type": "ODD"},
    "a password for PEM": {P + "ssl.keystore.password": "x"},
    "a key without a chain": {P + "ssl.keystore.key": "x", P + "ssl.keystore.location": ""},
    "a key without a chain beside a file": {P + "ssl.keystore.key": "x"},
    "a broken key beside a file": {P + "ssl.keystore.key": "x", P + "ssl.keystore.certificate.chain": "y"},
    "a password beside a file": {P + "ssl.truststore.password": "x"},
    "certificates beside a file": {P + "ssl.truststore.certificates": "x", P + "ssl.truststore.password": "x"},
    "broken certificates": {P + "ssl.truststore.certificates": "x"},
    "a trust store that is missing": {P + "ssl.truststore.location": "{home}/nope.pem"},
    "a store for a listener without": {
        "listener.name.bare.ssl.keystore.location": "{home}/own.pem",
        "listener.name.bare.ssl.keystore.type": "PEM",
    },
    "a trust store for a listener without": {
        "listener.name.bare.ssl.truststore.location": "{home}/trust.pem",
        "listener.name.bare.ssl.truststore.type": "PEM",
    },
    "without the prefix": {"ssl.keystore.location": "{home}/own.pem"},
}


@pytest.mark.parametrize("changes", REFUSED.values(), ids=REFUSED)
def test_what_is_refused(pair: Pair, changes: dict[str, str]) -> None:
    apache, barnabas = pair.alter(changes)
    assert apache[0] == 42
    assert masked(barnabas) == masked(apache)


def masked(answer: tuple[int, str]) -> tuple[int, str]:
    """Removes Java's numbers of alternative names."""
    return answer[0], re.sub(r"SAN=\[.*?\]\}", "SAN=}", answer[1])


@pytest.mark.parametrize("store", ["untrusted.pem", "distrust.pem"])
def test_a_key_store_that_the_trust_store_does_not_trust(pair: Pair, store: str) -> None:
    """Compares messages without the reason, which is the TLS library's."""
    kind = "keystore" if store == "untrusted.pem" else "truststore"
    for answer in pair.alter({f"{P}ssl.{kind}.location": f"{{home}}/{store}"}):
        assert answer[0] == 42
        assert "SSLFactory failed: javax.net.ssl.SSLHandshakeException: " in answer[1]


TAKEN = {
    "the same": {P + "ssl.keystore.location": "{home}/own.pem"},
    "more alternative names": {P + "ssl.keystore.location": "{home}/more.pem"},
    "of a listener that is none": {"listener.name.nope.ssl.keystore.location": "{home}/nope.pem"},
    "what counts from the next start on": {P + "ssl.client.auth": "required", P + "ssl.enabled.protocols": "TLSv1.9"},
}


@pytest.mark.parametrize("changes", TAKEN.values(), ids=TAKEN)
def test_what_is_taken(pair: Pair, changes: dict[str, str]) -> None:
    apache, barnabas = pair.alter(changes, validate_only=True)
    assert apache == barnabas == (0, "")


def test_a_new_certificate_is_shown_and_the_old_one_stays_otherwise(pair: Pair) -> None:
    before = pair.served()
    assert [version for version, _ in before] == ["TLSv1.3", "TLSv1.3"]
    pair.alter({P + "ssl.keystore.location": "{home}/stranger.pem"})
    assert pair.served() == before
    for folder in pair.homes.values():
        pair.write(folder)
    same = {P + "ssl.keystore.location": "{home}/own.pem"}
    assert pair.alter(same) == [(0, ""), (0, "")]
    # Apache Kafka answers before its listener has the new certificate, and updates its network threads one after the
    # other; connections go to them in turn.
    deadline, in_a_row = time.monotonic() + 15, 0
    while in_a_row < 2 * NETWORK_THREADS:
        is_new = [new != old for old, new in zip(before, pair.served(), strict=True)]
        in_a_row = in_a_row + 1 if all(is_new) else 0
        assert time.monotonic() < deadline, is_new
    after = pair.served()
    for folder in pair.homes.values():
        (folder / "own.pem").write_bytes(b"broken")
    assert pair.alter(same) == [(0, ""), (0, "")]
    assert pair.alter({P + "ssl.keystore.location": "{home}/nope.pem"})[0][0] == 42
    assert pair.served() == after
    for folder in pair.homes.values():
        pair.write(folder)

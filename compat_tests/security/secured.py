"""A broker with a listener for each security protocol and every mechanism, and the clients' configs.

Knows nothing of any client. ``BARNABAS_COMPAT_BROKER=apache`` starts Apache Kafka instead.
"""

import base64
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import trustme
from kafka.admin import KafkaAdminClient, ScramMechanism, UserScramCredentialUpsertion

from compat_tests.apache_kafka.apache import ApacheKafka, KafkaUnavailable
from compat_tests.ports import free_port
from compat_tests.running import ALONE, BarnabasProcess
from tests.security.tls.stores import chain_pem, key_pem

MODULES = "org.apache.kafka.common.security"
LOGIN = {
    "PLAIN": "plain.PlainLoginModule",
    "SCRAM-SHA-256": "scram.ScramLoginModule",
    "SCRAM-SHA-512": "scram.ScramLoginModule",
    "OAUTHBEARER": "oauthbearer.OAuthBearerLoginModule",
}
PROTOCOLS = ("SSL", "SASL_PLAINTEXT", "SASL_SSL")
USER, PASSWORD = "alice", "alice-secret"


class Secured(NamedTuple):
    """The addresses of the listeners, and the directory with the PEM files."""

    ports: dict[str, int]
    home: Path

    def bootstrap(self, protocol: str) -> str:
        return f"127.0.0.1:{self.ports[protocol]}"

    @property
    def authority(self) -> str:
        return str(self.home / "authority.pem")

    @property
    def certificate(self) -> str:
        return str(self.home / "client.pem")

    @property
    def key(self) -> str:
        return str(self.home / "client.key")

    def properties(self, protocol: str, mechanism: str = "", jaas: str = "") -> dict[str, str]:
        """Returns the properties of a Java client; it logs in as alice where `jaas` does not say otherwise."""
        found = {"bootstrap.servers": self.bootstrap(protocol), "security.protocol": protocol}
        if protocol.endswith("SSL"):
            found |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": self.authority}
        if mechanism:
            found |= {"sasl.mechanism": mechanism, "sasl.jaas.config": jaas or login(mechanism)}
        else:
            found |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(self.home / "client-store.pem")}
        return found


def login(mechanism: str, user: str = USER, password: str = PASSWORD, more: str = "") -> str:
    """Returns the JAAS config of a Java client."""
    if mechanism == "OAUTHBEARER":
        options = f'unsecuredLoginStringClaim_sub="{user}"'
    else:
        options = f'username="{user}" password="{password}"'
    return f"{MODULES}.{LOGIN[mechanism]} required {options}{more};"


def unsecured_token(user: str = USER, issued_at: float | None = None) -> str:
    """Returns an unsigned JSON Web Token (RFC 7515, appendix A.5), valid for an hour from `issued_at`."""
    start = int(time.time() if issued_at is None else issued_at)
    parts = ({"alg": "none"}, {"sub": user, "iat": start, "exp": start + 3600})
    encoded = (base64.urlsafe_b64encode(json.dumps(each).encode()).decode().rstrip("=") for each in parts)
    return ".".join((*encoded, ""))


def write(path: Path, properties: dict[str, str]) -> str:
    path.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    return str(path)


def settings(home: Path, ports: dict[str, int]) -> dict[str, str]:
    """Returns the broker's configs: clients of PLAINTEXT and alice are super users."""
    mapped = "".join(f",{name}:{name}" for name in PROTOCOLS)
    found = {
        "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items()),
        "listener.security.protocol.map": f"PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT{mapped}",
        "inter.broker.listener.name": "PLAINTEXT",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(home / "server.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(home / "authority.pem"),
        "listener.name.ssl.ssl.client.auth": "required",
        "sasl.enabled.mechanisms": ",".join(LOGIN),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "ssl.principal.mapping.rules": "RULE:^CN=([^,]*),.*$/$1/,DEFAULT",
        "super.users": f"User:ANONYMOUS;User:{USER};User:client",
        "delegation.token.secret.key": "a key of this test",
        "delegation.token.expiry.check.interval.ms": "200",
    }
    for protocol in PROTOCOLS[1:]:
        prefix = f"listener.name.{protocol.lower()}"
        for mechanism, module in LOGIN.items():
            users = f' user_{USER}="{PASSWORD}" user_bob="{PASSWORD}"' if mechanism == "PLAIN" else ""
            found[f"{prefix}.{mechanism.lower()}.sasl.jaas.config"] = f"{MODULES}.{module} required{users};"
        found[f"{prefix}.oauthbearer.sasl.server.callback.handler.class"] = (
            f"{MODULES}.oauthbearer.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
        )
    return found


def write_certificates(home: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(home / "authority.pem")
    server = authority.issue_cert("127.0.0.1")
    client = authority.issue_cert("client.example.org", common_name="client")
    (home / "server.pem").write_text(key_pem(server) + chain_pem(server))
    (home / "client.key").write_text(key_pem(client))
    (home / "client.pem").write_text(chain_pem(client))
    (home / "client-store.pem").write_text(key_pem(client) + chain_pem(client))


def start(home: Path) -> Iterator[Secured]:
    """Starts the broker and sets SCRAM credentials of alice; stops it after the yield."""
    write_certificates(home)
    ports = {name: free_port() for name in ("PLAINTEXT", *PROTOCOLS)}
    broker = of_apache(home, ports) if os.environ.get("BARNABAS_COMPAT_BROKER") == "apache" else of_ours(home, ports)
    broker.start()
    try:
        admin = KafkaAdminClient(bootstrap_servers=f"127.0.0.1:{ports['PLAINTEXT']}")
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            upsertion = UserScramCredentialUpsertion(USER, mechanism, PASSWORD)
            assert admin.alter_user_scram_credentials([upsertion]) == {USER: None}
        admin.close()
        yield Secured(ports, home)
        if isinstance(broker, BarnabasProcess):
            assert not broker.complaints()
            assert PASSWORD not in broker.output.read_text()
    finally:
        if isinstance(broker, BarnabasProcess):
            broker.kill()
        else:
            broker.stop(kill=True)


def of_ours(home: Path, ports: dict[str, int]) -> BarnabasProcess:
    return BarnabasProcess(home / "broker", {"node.id": "1", **settings(home, ports)})


def of_apache(home: Path, ports: dict[str, int]) -> ApacheKafka:
    broker = ApacheKafka(home / "broker", ALONE)
    broker.port = ports["PLAINTEXT"]
    found = settings(home, ports)
    controller = broker.properties["listeners"].partition(",")[2]
    broker.properties |= {**found, "listeners": f"{found['listeners']},{controller}"}
    broker.properties["advertised.listeners"] = found["listeners"]
    return broker


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    try:
        yield from start(tmp_path_factory.mktemp("secured"))
    except KafkaUnavailable as reason:
        pytest.skip(str(reason))

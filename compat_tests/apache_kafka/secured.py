"""A broker with a listener for each kind of authentication, for tests of our clients: commands, the pipeline.

Knows nothing of the tests.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import trustme
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from kafka.admin import KafkaAdminClient, ScramMechanism, UserScramCredentialUpsertion

from compat_tests.ports import free_port

from .apache import ApacheKafka, KafkaUnavailable, jars
from .sasl_pair import until_let_in

SECURITY = "org.apache.kafka.common.security"
SESSION_MS = 4000
"""How long a session by SCRAM over TLS lasts."""

LISTENERS = ("TLS", "PLAIN", "SCRAM", "OAUTH")


class Secured(NamedTuple):
    """The addresses of the listeners, and the PEM files."""

    bootstrap: str
    tls: str
    plain: str
    scram: str
    oauth: str
    home: Path

    @property
    def authority(self) -> str:
        return str(self.home / "authority.pem")

    @property
    def client(self) -> str:
        return str(self.home / "client.pem")

    def properties(self, listener: str, *, password: str = "secret") -> dict[str, str]:
        """Returns the properties of a client that may use a listener."""
        tls = {"ssl.truststore.location": self.authority, "ssl.truststore.type": "PEM"}
        unsecured = f'{SECURITY}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="me";'
        ways = {
            "tls": {
                "security.protocol": "SSL",
                **tls,
                "ssl.keystore.location": self.client,
                "ssl.keystore.type": "PEM",
            },
            "plain": {"security.protocol": "SASL_SSL", **tls, **login("plain.PlainLoginModule", "PLAIN", password)},
            "scram": {
                "security.protocol": "SASL_PLAINTEXT",
                **login("scram.ScramLoginModule", "SCRAM-SHA-512", password),
            },
            "oauth": {
                "security.protocol": "SASL_SSL",
                **tls,
                "sasl.mechanism": "OAUTHBEARER",
                "sasl.jaas.config": unsecured,
            },
        }
        return {"bootstrap.servers": getattr(self, listener), **ways[listener]}


def login(module: str, mechanism: str, password: str = "secret") -> dict[str, str]:
    jaas = f'{SECURITY}.{module} required username="me" password="{password}";'
    return {"sasl.mechanism": mechanism, "sasl.jaas.config": jaas}


def start(home: Path) -> Iterator[Secured]:
    """Starts the broker, and stops it after the yield."""
    try:
        jars()
    except KafkaUnavailable as reason:
        pytest.skip(str(reason))
    authority = trustme.CA()
    server, client = authority.issue_cert("127.0.0.1"), authority.issue_cert("pipeline@example.org")
    authority.cert_pem.write_to_path(home / "authority.pem")
    for name, certificate in (("server", server), ("client", client)):
        chain = b"".join(pem.bytes() for pem in certificate.cert_chain_pems)
        (home / f"{name}.pem").write_bytes(pkcs8(certificate.private_key_pem.bytes()) + chain)
    ports = {name: free_port() for name in LISTENERS}
    broker = ApacheKafka(home / "broker", properties(home))
    broker.properties["listeners"] += "".join(f",{name}://127.0.0.1:{port}" for name, port in ports.items())
    broker.properties["advertised.listeners"] += "".join(f",{name}://127.0.0.1:{port}" for name, port in ports.items())
    with broker:
        admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
        admin.create_topics({"orders": {"num_partitions": 2, "replication_factor": 1}})
        user = UserScramCredentialUpsertion("me", ScramMechanism.SCRAM_SHA_512, "secret")
        assert admin.alter_user_scram_credentials([user]) == {"me": None}
        admin.close()
        until_let_in(ports["SCRAM"], "SCRAM-SHA-512", "me", "secret")  # by then, the topic is there, too
        yield Secured(broker.bootstrap, *(f"127.0.0.1:{port}" for port in ports.values()), home)


def pkcs8(key: bytes) -> bytes:
    """Returns a private key in the only form that Java reads."""
    return load_pem_private_key(key, None).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def properties(home: Path) -> dict[str, str]:
    """TLS requires a client certificate; PLAIN and OAUTHBEARER use TLS, SCRAM a plain connection."""
    stores = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(home / "server.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(home / "authority.pem"),
    }
    oauth = "listener.name.oauth.oauthbearer.sasl"
    return {
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,TLS:SSL,PLAIN:SASL_SSL,"
        "SCRAM:SASL_PLAINTEXT,OAUTH:SASL_SSL",
        **{f"listener.name.{name}.{key}": value for name in ("tls", "plain", "oauth") for key, value in stores.items()},
        "listener.name.tls.ssl.client.auth": "required",
        "listener.name.plain.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
        "listener.name.plain.scram-sha-512.sasl.jaas.config": f"{SECURITY}.scram.ScramLoginModule required;",
        "listener.name.plain.scram-sha-512.connections.max.reauth.ms": str(SESSION_MS),
        "listener.name.plain.plain.sasl.jaas.config": f'{SECURITY}.plain.PlainLoginModule required user_me="secret";',
        "listener.name.scram.sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "listener.name.scram.scram-sha-512.sasl.jaas.config": f"{SECURITY}.scram.ScramLoginModule required;",
        "listener.name.oauth.sasl.enabled.mechanisms": "OAUTHBEARER",
        f"{oauth}.jaas.config": f"{SECURITY}.oauthbearer.OAuthBearerLoginModule required;",
        f"{oauth}.server.callback.handler.class": f"{SECURITY}.oauthbearer.internals.unsecured."
        "OAuthBearerUnsecuredValidatorCallbackHandler",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS;User:me;User:CN=pipeline@example.org",
        "allow.everyone.if.no.acl.found": "true",
        "delegation.token.secret.key": "a key of this test",
    }

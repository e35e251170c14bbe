"""The keywords of :class:`~barnabas.testing.Broker` for TLS, users and ACLs: its configs, and the settings of clients.

Knows nothing of how a broker is started.
"""

import os
import ssl
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from barnabas.cluster.formatting import as_record
from barnabas.security.acls import CLUSTER_NAME, Acl, Operation, PatternType, Permission, ResourceType
from barnabas.security.sasl.scram import credential_of

if TYPE_CHECKING:
    from barnabas.testing.certificates import Pem

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
CLIENTS = ("kafka-python", "aiokafka", "confluent", "java")
AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
_SECURITY = "org.apache.kafka.common.security"
_MODULES = {
    "PLAIN": f"{_SECURITY}.plain.PlainLoginModule",
    "SCRAM-SHA-256": f"{_SECURITY}.scram.ScramLoginModule",
    "SCRAM-SHA-512": f"{_SECURITY}.scram.ScramLoginModule",
}


class Security:
    """How the clients of one broker connect and authenticate, and what they are allowed to do.

    :param users: passwords by user; None: clients do not authenticate
    :param acls: what is allowed and denied; None: everything is allowed
    """

    def __init__(self, *, tls: bool, users: Mapping[str, str] | None, acls: Iterable[Acl] | None) -> None:
        self.tls = tls
        self.users = None if users is None else dict(users)
        self.acls = None if acls is None else list(acls)

    @property
    def protocol(self) -> str:
        """The ``security.protocol`` of clients."""
        if self.users is None:
            return "SSL" if self.tls else "PLAINTEXT"
        return "SASL_SSL" if self.tls else "SASL_PLAINTEXT"

    # ------------------------------------------------------------ the broker

    def configs(self) -> dict[str, str]:
        """Returns the configs of the broker."""
        found = {"listeners": f"{self.protocol}://127.0.0.1:0"}
        if self.protocol != "PLAINTEXT":
            found["security.inter.broker.protocol"] = self.protocol
        if self.tls:
            own = self._authority.for_hosts("127.0.0.1", "localhost")
            found |= {
                "ssl.keystore.type": "PEM",
                "ssl.keystore.key": own.key,
                "ssl.keystore.certificate.chain": own.certificate,
                "ssl.truststore.type": "PEM",
                "ssl.truststore.certificates": self._authority.certificate,
                "ssl.client.auth": "requested",
                # The principal of a client's certificate is the user that was passed to client_settings().
                "ssl.principal.mapping.rules": "RULE:^CN=([^,]*)$/$1/,DEFAULT",
            }
        if self.users is not None:
            listed = "".join(f" user_{name}={_quoted(password)}" for name, password in self.users.items())
            prefix = f"listener.name.{self.protocol.lower()}"
            found["sasl.enabled.mechanisms"] = ",".join(MECHANISMS)
            for mechanism in MECHANISMS:
                options = listed if mechanism == "PLAIN" else ""
                found[f"{prefix}.{mechanism.lower()}.sasl.jaas.config"] = f"{_MODULES[mechanism]} required{options};"
        if self.acls is not None:
            found["authorizer.class.name"] = AUTHORIZER
        return found

    def first_records(self) -> list[Any]:
        """Returns the users' SCRAM credentials, with which the metadata log begins."""
        return [
            as_record(name, mechanism, credential_of(mechanism, password.encode(), os.urandom(24)))
            for name, password in (self.users or {}).items()
            for mechanism in MECHANISMS[1:]
        ]

    # ------------------------------------------------------------ clients

    def client_settings(self, client: str, bootstrap: str, user: str | None, mechanism: str) -> dict[str, Any]:
        """Returns the settings with which a client connects.

        :raises ValueError: there is no such client, user or mechanism
        """
        if client not in CLIENTS:
            raise ValueError(f"client is {client!r}, but must be one of {', '.join(CLIENTS)}")
        if self.users is not None:
            if user not in self.users:
                raise ValueError(f"user is {user!r}, but must be one of {', '.join(self.users)}")
            if mechanism not in MECHANISMS:
                raise ValueError(f"mechanism is {mechanism!r}, but must be one of {', '.join(MECHANISMS)}")
        elif user is not None and not self.tls:
            raise ValueError("A broker without tls and users has no user")
        own = self._authority.for_client(user) if self.tls and self.users is None and user is not None else None
        made: dict[str, Any] = getattr(self, f"_{client.replace('-', '_')}")(own, user, mechanism)
        bootstrap_name = "bootstrap_servers" if client in ("kafka-python", "aiokafka") else "bootstrap.servers"
        return {bootstrap_name: bootstrap, **made}

    def _kafka_python(self, own: "Pem | None", user: str | None, mechanism: str) -> dict[str, Any]:
        found: dict[str, Any] = {"security_protocol": self.protocol}
        if self.tls:
            found["ssl_context"] = self._context(own)
        if self.users is not None and user is not None:
            found |= {
                "sasl_mechanism": mechanism,
                "sasl_plain_username": user,
                "sasl_plain_password": self.users[user],
            }
        return found

    _aiokafka = _kafka_python

    def _confluent(self, own: "Pem | None", user: str | None, mechanism: str) -> dict[str, Any]:
        found = {"security.protocol": self.protocol}
        if self.tls:
            found["ssl.ca.pem"] = self._authority.certificate
        if own is not None:
            found |= {"ssl.key.pem": own.key, "ssl.certificate.pem": own.certificate}
        if self.users is not None and user is not None:
            found |= {"sasl.mechanism": mechanism, "sasl.username": user, "sasl.password": self.users[user]}
        return found

    def _java(self, own: "Pem | None", user: str | None, mechanism: str) -> dict[str, Any]:
        found = {"security.protocol": self.protocol}
        if self.tls:
            found |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": self._authority.certificate}
        if own is not None:
            found |= {
                "ssl.keystore.type": "PEM",
                "ssl.keystore.key": own.key,
                "ssl.keystore.certificate.chain": own.certificate,
            }
        if self.users is not None and user is not None:
            password = _quoted(self.users[user])
            found["sasl.mechanism"] = mechanism
            found["sasl.jaas.config"] = f"{_MODULES[mechanism]} required username={_quoted(user)} password={password};"
        return found

    def _context(self, own: "Pem | None") -> ssl.SSLContext:
        context = ssl.create_default_context(cadata=self._authority.certificate)
        if own is not None:
            from barnabas.security.tls.engine import private_file

            with private_file((own.key + own.certificate).encode()) as path:
                context.load_cert_chain(path)
        return context

    @cached_property
    def _authority(self) -> Any:
        from barnabas.testing.certificates import Authority

        return Authority()


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


# ---------------------------------------------------------------- ACLs


def allow(user: str, operation: str, **resource: Any) -> Acl:
    """Returns an ACL that allows a user an operation.

    >>> allow("alice", "read", topic="orders").principal
    'User:alice'

    :param user: ``"*"`` is everybody
    :param operation: one of Kafka's: ``"read"``, ``"write"``, ``"describe_configs"``, ``"all"``
    :param resource: one of ``topic``, ``group``, ``transactional_id``, ``user`` and ``delegation_token`` with a name,
        or ``cluster=True``; with ``prefixed=True`` the name is a prefix; ``host`` is an address
    :raises ValueError: there is no such operation or resource
    """
    return _acl(Permission.ALLOW, user, operation, **resource)


def deny(user: str, operation: str, **resource: Any) -> Acl:
    """Returns an ACL that denies a user an operation; the parameters are those of :func:`allow`."""
    return _acl(Permission.DENY, user, operation, **resource)


def _acl(
    permission: Permission, user: str, operation: str, *, host: str = "*", prefixed: bool = False, **resource: Any
) -> Acl:
    if resource.get("cluster"):
        resource["cluster"] = CLUSTER_NAME
    types = {kind.name.lower(): kind for kind in list(ResourceType)[2:]}
    operations = {each.name.lower(): each for each in list(Operation)[2:]}
    if len(resource) != 1 or not resource.keys() <= types.keys():
        raise ValueError(f"An ACL is about one of {', '.join(types)}")
    if operation.lower() not in operations:
        raise ValueError(f"operation is {operation!r}, but must be one of {', '.join(operations)}")
    ((kind, name),) = resource.items()
    pattern = PatternType.PREFIXED if prefixed else PatternType.LITERAL
    return Acl(types[kind], name, pattern, f"User:{user}", host, operations[operation.lower()], permission)

"""The broker's users as users of the console: each session has a client with the credentials of its user.

Knows nothing of HTTP and cookies. Passwords are kept only in memory, for the time of their session. Each page logs in
anew, so that a changed password or a deleted user has an effect immediately.
"""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from barnabas.cli.client import Cluster
from barnabas.console.lags import Lags
from barnabas.diagnosis import probe

MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
"""The SASL mechanisms that only need a user and a password."""

ANSWERS_MS: Final = 5000
"""The maximum time for a broker: kafka-python retries if a user is refused."""


class WrongPassword(Exception):
    """The user is unknown, or the password is wrong."""


class User(NamedTuple):
    """The user of a session."""

    name: str
    client: Cluster
    lags: Lags  #: only of this user, since others may not see the same groups


class Users:
    """The users of one cluster.

    :param properties: of the client, such as those for TLS; those for SASL are ignored
    """

    def __init__(self, bootstrap_server: str, properties: Mapping[str, str], mechanism: str) -> None:
        self._bootstrap_server = bootstrap_server
        self._mechanism = mechanism
        self._properties = {
            name: value for name, value in properties.items() if not name.startswith(("sasl.", "sasl_"))
        }

    def log_in(self, name: str, password: str) -> User:
        """Logs in to the broker.

        :raises WrongPassword: the broker refuses the credentials
        :raises kafka.errors.KafkaError: no broker responds
        """
        client = _ClusterOfUser(self._bootstrap_server, self._properties, self._mechanism, name, password)
        client.check()
        return User(name, client, Lags())


class _ClusterOfUser(Cluster):
    """A cluster with the credentials of one user."""

    def __init__(
        self, bootstrap_server: str, properties: Mapping[str, str], mechanism: str, name: str, password: str
    ) -> None:
        protocol = properties.get("security.protocol", "SASL_PLAINTEXT").strip().upper()
        uses_tls = protocol.endswith("SSL")
        super().__init__(bootstrap_server, {**properties, "security.protocol": "SSL" if uses_tls else "PLAINTEXT"})
        self._sasl = {
            "security_protocol": "SASL_SSL" if uses_tls else "SASL_PLAINTEXT",
            "sasl_mechanism": mechanism,
            "sasl_plain_username": _as_kafka_python(mechanism, name),
            "sasl_plain_password": password,
            "bootstrap_timeout_ms": ANSWERS_MS,
        }

    def settings(
        self, defaults: Mapping[str, Any], given: Mapping[str, str] | None = None, **own: Any
    ) -> dict[str, Any]:
        self._last_settings = {**super().settings(defaults, given, **own), **self._sasl}
        return dict(self._last_settings)

    @contextlib.contextmanager
    def admin(self) -> Iterator[Any]:
        from kafka import KafkaAdminClient
        from kafka.errors import KafkaTimeoutError

        try:
            client = KafkaAdminClient(**self.settings(KafkaAdminClient.DEFAULT_CONFIG))
        except KafkaTimeoutError:
            self.check()
            raise
        with contextlib.closing(client):
            yield client

    def check(self) -> None:
        """Connects and logs in once.

        :raises WrongPassword: the broker refuses the credentials
        :raises kafka.errors.KafkaError: no broker responds
        """
        from kafka import KafkaAdminClient
        from kafka.errors import KafkaConnectionError, SaslAuthenticationFailedError
        from kafka.net.compat import KafkaNetClient

        client = KafkaNetClient(**self.settings(KafkaAdminClient.DEFAULT_CONFIG))
        manager = client._manager

        async def connect() -> None:
            await manager.get_connection(manager.cluster.bootstrap_brokers()[0].node_id)

        with contextlib.closing(client):
            try:
                manager._net.run(connect)
            except (SaslAuthenticationFailedError, ValueError):  # SCRAM does not allow every text
                raise WrongPassword from None
            except KafkaConnectionError:
                # A broker closes the connection after a refusal: kafka-python may see that before the response.
                if any(probe(each, tls=self._uses_tls) is None for each in self._servers):
                    raise WrongPassword from None
                raise


def _as_kafka_python(mechanism: str, name: str) -> str:
    if not mechanism.startswith("SCRAM"):
        return name
    from barnabas.security.clients.scram import scram_user

    return scram_user(name, is_token=False)

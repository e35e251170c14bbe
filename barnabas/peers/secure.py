"""Connections to other nodes with TLS and SASL, by the configs of the inter-broker listener.

Knows nothing of the requests that are sent afterwards. Follows Apache Kafka's ``ChannelBuilders.clientChannelBuilder``
and ``SaslClientAuthenticator`` (KIP-43, KIP-152, KIP-368).
"""

import asyncio
import logging
import ssl
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple, Protocol, TypeVar

from barnabas.clock import Scheduler
from barnabas.config import BrokerConfig
from barnabas.config.endpoints import Endpoint
from barnabas.config.listener_configs import ListenerConfigs
from barnabas.config.validators import ConfigError
from barnabas.errors import NONE, KafkaError, SaslAuthenticationFailed
from barnabas.peers.handshake import NewConnection, response_to
from barnabas.peers.peers import error_of
from barnabas.security.login.login import Login, LoginFailed, Tokens
from barnabas.security.login.logins import login_of
from barnabas.security.tls.client_side import client_context
from barnabas.security.tls.reading import read_store
from barnabas.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from barnabas.wire.messages.sasl_handshake import SaslHandshakeRequest

logger = logging.getLogger(__name__)

HANDSHAKE_VERSION = 1
AUTHENTICATE_VERSION = 2
"""The version since Apache Kafka 2.5, whose response has the lifetime of the session."""

REAUTHENTICATE_AT = (0.85, 0.95)
"""The part of a session's lifetime after which the node re-authenticates (``SaslClientAuthenticator.ReauthInfo``)."""


class Surroundings(Protocol):
    """What is used of the node."""

    @property
    def config(self) -> BrokerConfig: ...

    @property
    def scheduler(self) -> Scheduler: ...

    @property
    def random(self) -> Random: ...


class Secured(NewConnection, Protocol):
    """A connection that re-authenticates while it is used (:class:`barnabas.peers.connection.PeerConnection`)."""

    renewal: asyncio.Task[None] | None

    @property
    def name(self) -> str: ...

    @property
    def is_closed(self) -> bool: ...

    def hold(self) -> None: ...

    def release(self) -> None: ...

    def close(self, reason: str, *, level: int = ...) -> None: ...


C = TypeVar("C", bound=Secured)


class _Security(NamedTuple):
    """How connections are secured by some configs."""

    context: ssl.SSLContext | None
    mechanism: str
    login: Login | None


class SecureConnect:
    """Connects to nodes through one listener. Changed configs and files are used for later connections.

    :param mechanism_config: the config that names the SASL mechanism
    :raises ConfigError: the listener's configs are not valid
    """

    def __init__(self, node: Surroundings, listener_name: str, protocol: str, mechanism_config: str) -> None:
        self._node = node
        self._listener_name = listener_name
        self._protocol = protocol
        self._mechanism_config = mechanism_config
        self._config = node.config
        self._security = self._read()

    def _read(self) -> _Security:
        configs = ListenerConfigs(self._config, self._listener_name)
        context = client_context(configs, read_store) if self._protocol.endswith("SSL") else None
        if not self._protocol.startswith("SASL"):
            return _Security(context, "", None)
        mechanism = self._config[self._mechanism_config]
        return _Security(context, mechanism, login_of(configs, mechanism, self._mechanism_config))

    def _current(self) -> _Security:
        if self._node.config is not self._config:
            self._config = self._node.config
            try:
                self._security = self._read()
            except ConfigError as error:
                logger.error(
                    "Cannot apply the changed configs of listener %s, so its connections use the former ones: %s",
                    self._listener_name,
                    error,
                )
        return self._security

    async def __call__(self, endpoint: Endpoint, new: Callable[[], C]) -> C:
        """Opens a connection.

        :raises OSError: the node cannot be reached; ssl.SSLError: the node is not trusted, or does not trust this one
        :raises KafkaError: the other node refuses the login
        """
        security = self._current()
        name = endpoint.host if security.context is not None else None
        factory: Callable[[], Any] = new
        connection: C
        _, connection = await asyncio.get_running_loop().create_connection(
            factory, endpoint.host, endpoint.port, ssl=security.context, server_hostname=name
        )
        if security.login is not None:
            await self._log_in(connection, endpoint.host, security.mechanism, security.login)
        return connection

    async def _log_in(self, connection: Secured, host: str, mechanism: str, login: Login) -> None:
        """Authenticates, for the first time or again, and schedules the next time before the session ends."""
        lifetime_ms = await authenticate(connection, mechanism, login(host))
        if lifetime_ms > 0:
            seconds = lifetime_ms / 1000 * self._node.random.uniform(*REAUTHENTICATE_AT)
            self._node.scheduler.call_later(seconds, self._renew, connection, host)

    def _renew(self, connection: Secured, host: str) -> None:
        if not connection.is_closed:
            connection.hold()
            connection.renewal = asyncio.ensure_future(self._log_in_again(connection, host))

    async def _log_in_again(self, connection: Secured, host: str) -> None:
        _, mechanism, login = self._current()
        try:
            if login is not None:
                await self._log_in(connection, host, mechanism, login)
        except KafkaError as error:
            connection.close(f"this node cannot authenticate again: {error}", level=logging.WARNING)
        except Exception:
            logger.exception("Unexpected error while authenticating again to %s", connection.name)
            connection.close("it cannot be authenticated again")
        else:
            connection.release()


async def authenticate(connection: Secured, mechanism: str, tokens: Tokens) -> int:
    """Authenticates. Returns the lifetime of the session in milliseconds; 0 if it has no end.

    :raises KafkaError: the other node refuses the login, or cannot authenticate itself
    """
    handshake = await response_to(connection, SaslHandshakeRequest(mechanism=mechanism), HANDSHAKE_VERSION)
    if handshake.error_code != NONE:
        raise (
            error_of(handshake.error_code, f"{mechanism} is not enabled there, but {', '.join(handshake.mechanisms)}")
            or KafkaError()
        )
    lifetime_ms, answer = 0, None
    while (token := await _next(tokens, answer)) is not None:
        request = SaslAuthenticateRequest(auth_bytes=token)
        response: SaslAuthenticateResponse = await response_to(connection, request, AUTHENTICATE_VERSION)
        if response.error_code != NONE:
            raise error_of(response.error_code, response.error_message) or KafkaError()
        answer, lifetime_ms = bytes(response.auth_bytes), response.session_lifetime_ms
    return lifetime_ms


async def _next(tokens: Tokens, answer: bytes | None) -> bytes | None:
    """Returns the next token; None after the last. A thread computes it, as that takes time, and may need another
    server.
    """

    def take() -> bytes | None:
        try:
            return next(tokens) if answer is None else tokens.send(answer)
        except StopIteration:
            return None

    try:
        return await asyncio.get_running_loop().run_in_executor(None, take)
    except LoginFailed as failure:
        raise SaslAuthenticationFailed(str(failure)) from None

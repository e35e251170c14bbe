"""Listeners: bind addresses, accept connections, and limit their number and rate.

Knows nothing of what connections carry.
"""

import asyncio
import logging
import socket
from collections import Counter, deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, cast

from barnabas.api_handlers.registry import Promise
from barnabas.api_handlers.session import Session
from barnabas.broker import Node
from barnabas.config import BrokerConfig
from barnabas.config.endpoints import Endpoint
from barnabas.config.listener_configs import ListenerConfigs
from barnabas.config.validators import ConfigError
from barnabas.log.background import BackgroundThread
from barnabas.security.principals import Principal
from barnabas.server.buffers import BufferPool
from barnabas.server.connection import Connection, Responder
from barnabas.server.dispatch import Dispatcher
from barnabas.server.routes import Routes

if TYPE_CHECKING:
    from barnabas.security.tls.engine import Engine
    from barnabas.server.sasl import Gates
    from barnabas.server.tls import Handshakes

logger = logging.getLogger(__name__)

ENCRYPTED = ("SSL", "SASL_SSL")
"""The security protocols with TLS."""

AUTHENTICATING = ("SASL_PLAINTEXT", "SASL_SSL")
"""The security protocols with SASL."""

LAST_ANSWERS_S = 5.0
"""How long a listener that stops waits for its clients to read what was written to them."""


def bind(host: str, port: int, backlog: int) -> list[socket.socket]:
    """Returns a listening socket for each address of ``host``, all on one port. An empty host is every interface.

    :param port: 0 is any free port
    :raises OSError: an address is in use, or is not one of this machine; the message names it
    """
    # A text would import the codec of internationalized names: 1 ms of the start.
    name = host.encode() if host.isascii() else host
    families = socket.getaddrinfo(name or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    addresses = list(dict.fromkeys((family, address) for family, _, _, _, address in families))
    sockets: list[socket.socket] = []
    try:
        for family, address in addresses:
            try:
                listening = socket.socket(family, socket.SOCK_STREAM)
            except OSError:
                continue  # a machine without IPv6
            sockets.append(listening)
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            if port == 0 and len(sockets) > 1:
                address = (address[0], sockets[0].getsockname()[1], *address[2:])
            try:
                listening.bind(address)
            except OSError as error:
                raise OSError(error.errno, f"cannot listen on {host or '*'}:{port}: {error.strerror}") from error
            listening.setblocking(False)
            listening.listen(backlog)
    except BaseException:
        for each in sockets:
            each.close()
        raise
    return sockets


Bind = Callable[[str, int, int], list[socket.socket]]
"""Makes listening sockets, as :func:`bind` does."""


class Guest(Protocol):
    """A connected client: a connection, or a TLS handshake that is not finished."""

    @property
    def peer(self) -> tuple[str, int]: ...

    @property
    def last_active(self) -> float: ...

    @property
    def is_waiting(self) -> bool: ...

    @property
    def is_closing(self) -> bool: ...

    def hold(self) -> None: ...

    def let_in(self) -> None: ...

    def close(self, reason: str, *, level: int = ...) -> None: ...

    def abort(self) -> None: ...


class Watch(Protocol):
    """Applies faults to connections (:class:`barnabas.server.faulty.Watch`)."""

    def admits(self, guest: Guest) -> bool: ...


class Listener:
    """One entry of ``listeners``: a service that is bound when it has started. It accepts after :meth:`accept`."""

    def __init__(
        self,
        endpoint: Endpoint,
        node: Node,
        buffers: BufferPool,
        census: "Census",
        promise: Promise,
        bind: Bind = bind,
    ) -> None:
        self._bind = bind
        self.endpoint = endpoint  #: with the port that it is bound to, once it has started
        self.name = f"listener {endpoint.name}"
        self.buffers = buffers
        self.census = census
        self._node = node
        self._promise = promise
        config = node.config
        self.max_request_bytes: int = config["socket.request.max.bytes"]
        self._send_buffer: int = config["socket.send.buffer.bytes"]
        self._receive_buffer: int = config["socket.receive.buffer.bytes"]
        self._backlog: int = config["socket.listen.backlog.size"]
        self.connections: dict[Guest, None] = {}  #: in the order of their arrival
        self._arriving: deque[Guest] = deque()  # accepted, but not admitted yet
        self._engine: Engine | None = None
        self._handshaker: BackgroundThread | None = None
        self.gates: Gates | None = None  #: of SASL; they count authentications
        self.handshakes: Handshakes | None = None  #: of TLS; they are counted
        self.watch: Watch | None = None  #: applies faults; None while there is no rule
        self.routes = Routes(promise.apis)  #: of its connections; metrics set what handles their requests
        self._is_stopping = False
        self._sockets: list[socket.socket] = []
        self._servers: list[asyncio.Server] = []
        self._is_empty = asyncio.Event()

    @property
    def port(self) -> int:
        return self.endpoint.port

    async def start(self) -> None:
        """Binds the address. Clients that connect before :meth:`accept` wait.

        :raises OSError: the address cannot be bound
        :raises ConfigError: the configs of TLS or of SASL are not valid for this listener
        """
        if self.endpoint.security_protocol in ENCRYPTED:
            self._engine = self._new_engine()
        if self.endpoint.security_protocol in AUTHENTICATING:
            from barnabas.server.sasl import Gates

            self.gates = Gates(self._node, self.endpoint.name)
        self._sockets = self._bind(self.endpoint.host, self.endpoint.port, self._backlog)
        if self._engine is not None:
            self._node.reconfigurables.append(self)
        self.endpoint = self.endpoint._replace(port=self._sockets[0].getsockname()[1])

    def _new_engine(self) -> "Engine":
        from barnabas.security.tls.engine import Engine, weaker_than_configured
        from barnabas.security.tls.reading import read_store

        config = self._node.config
        configs = ListenerConfigs(config, self.endpoint.name)
        is_inter_broker = self.endpoint.name == config.inter_broker_listener_name
        engine = Engine(configs, read_store, is_inter_broker=is_inter_broker)
        if notice := weaker_than_configured(configs):
            logger.warning("The %s: %s", self.name, notice)
        return engine

    def _factory(self, loop: asyncio.AbstractEventLoop) -> Callable[[], asyncio.BaseProtocol]:
        """Returns the factory of the protocol of an accepted socket."""
        if self._engine is None:
            return lambda: Connection(self, loop)
        from barnabas.server.tls import Handshakes, TlsTransport

        self._handshaker = BackgroundThread(loop.call_soon_threadsafe, "barnabas-tls")
        handshakes = self.handshakes = Handshakes(loop, self._handshaker)
        return lambda: TlsTransport(self, handshakes, cast("Engine", self._engine))

    def check(self, proposed: BrokerConfig) -> None:
        """Checks that the listener can replace its key stores by those of other settings.

        As in Kafka, files that have changed under the same settings are read only when the stores are replaced.

        :raises ConfigError: it cannot
        """
        configs = ListenerConfigs(proposed, self.endpoint.name)
        if self._engine is not None and self._engine.has_other_configs(configs):
            self._engine.exchanged(configs)

    def reconfigure(self) -> None:
        """Replaces the key stores by those of the broker's settings. Open connections are not affected."""
        if self._engine is None:
            return
        try:
            engine = self._engine.exchanged(ListenerConfigs(self._node.config, self.endpoint.name))
        except ConfigError as error:  # a file has changed since the settings were checked
            logger.error("The %s keeps its certificates: %s", self.name, error)
            return
        if engine is not self._engine:
            self._engine = engine
            logger.info("The %s has new certificates", self.name)

    async def accept(self) -> None:
        """Starts accepting clients."""
        loop = asyncio.get_running_loop()
        factory = self._factory(loop)
        for listening in self._sockets:
            if self._receive_buffer > 0:
                listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self._receive_buffer)
            if self._send_buffer > 0:
                listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self._send_buffer)
            server = await loop.create_server(factory, sock=listening)
            self._servers.append(server)

    def stop_accepting(self) -> None:
        """Stops accepting clients, and closes each connection once the written responses have been sent."""
        self._is_stopping = True
        for server in self._servers:
            server.close()
        for listening in self._sockets[len(self._servers) :]:
            listening.close()
        for connection in self._arriving:
            connection.abort()
        self._arriving.clear()
        for connection in list(self.connections):
            connection.close("the broker is stopping", level=logging.DEBUG)

    async def stop(self) -> None:
        """Returns once all connections are closed. Aborts those whose clients do not read their last responses."""
        self.stop_accepting()
        try:
            async with asyncio.timeout(LAST_ANSWERS_S):
                await self._until_empty()
        except TimeoutError:
            for connection in list(self.connections):
                connection.abort()
            await self._until_empty()
        if self._handshaker is not None:
            self._handshaker.close()

    async def _until_empty(self) -> None:
        while self.connections:
            self._is_empty.clear()
            await self._is_empty.wait()

    # ------------------------------------------------------------ a connection calls

    def admit(self, connection: Guest) -> bool:
        """Returns whether the connection may stay; it may have to wait (``max.connection.creation.rate``, KIP-612)."""
        if self.watch is not None and not self.watch.admits(connection):
            return False
        if connection in self.connections:  # its handshake was admitted
            return True
        if self._is_stopping:  # it was accepted before the listener stopped, and nobody would close it
            return False
        rates = self._node.connection_rates
        if rates is None and not self._arriving:
            return self._let_in(connection)
        if not self._arriving:
            wait_ms = 0 if rates is None else rates.arrives(self.endpoint.name)
            if not wait_ms:
                return self._let_in(connection)
            self._wait(wait_ms)
        elif len(self._arriving) >= self._backlog:
            return False
        connection.hold()
        self._arriving.append(connection)
        return True

    def _wait(self, milliseconds: int) -> None:
        self._node.scheduler.call_later(milliseconds / 1000, self._let_next_in)

    def _let_next_in(self) -> None:
        """Admits the clients that have waited long enough, one after the other, as Kafka's acceptor does."""
        while self._arriving:
            connection = self._arriving.popleft()
            if not connection.is_closing:
                if not self._let_in(connection):
                    connection.abort()
                elif connection in self.connections:
                    connection.let_in()
            rates = self._node.connection_rates
            if self._arriving and rates is not None and (wait_ms := rates.arrives(self.endpoint.name)):
                self._wait(wait_ms)
                return

    def _let_in(self, connection: Guest) -> bool:
        """Returns whether the connection may stay, by the quota of its address and the limits of connections."""
        host, rates = connection.peer[0], self._node.connection_rates
        if rates is not None and (throttle_ms := rates.refuses(self.endpoint.name, host)):
            connection.hold()
            self._node.scheduler.call_later(throttle_ms / 1000, connection.abort)
            return True
        if refusal := self.census.refuses(host, self._node, self.endpoint.name):
            logger.warning("Refusing a connection from %s: %s", host, refusal)
            return False
        self.census.enter(host, self.endpoint.name)
        self.connections[connection] = None
        return True

    def replace(self, handshake: Guest, connection: Connection) -> None:
        """Replaces the handshake that was admitted by its connection."""
        del self.connections[handshake]
        self.connections[connection] = None

    def forget(self, connection: Guest) -> None:
        if connection in self.connections:
            del self.connections[connection]
            self.census.leave(connection.peer[0], self.endpoint.name)
            if not self.connections:
                self._is_empty.set()

    def new_responder(self, peer: tuple[str, int], principal: Principal) -> Responder:
        session = Session(
            listener=self.endpoint.name,
            security_protocol=self.endpoint.security_protocol,
            client_host=peer[0],
            client_port=peer[1],
            principal=principal,
            promise=self._promise,
            number=next(self._node.connection_numbers),
        )
        dispatcher = Dispatcher(self._node, session, self.routes)
        return dispatcher if self.gates is None else self.gates.new_gate(dispatcher)

    # ------------------------------------------------------------ the idle sweeper calls

    def close_idle(self, now: float, longest: float) -> None:
        """Closes connections that have sent nothing for ``longest`` seconds and wait for no response."""
        for connection in list(self.connections):
            if now - connection.last_active > longest and not connection.is_waiting:
                connection.close("idle (connections.max.idle.ms)", level=logging.INFO)


class Census:
    """Counts the connections of all listeners of a broker."""

    def __init__(self) -> None:
        self._by_host: Counter[str] = Counter()
        self._by_listener: Counter[str] = Counter()

    @property
    def total(self) -> int:
        return self._by_host.total()

    def refuses(self, host: str, node: Node, listener: str) -> str | None:
        """Returns why no further connection from that host is allowed; None if one is."""
        config = node.config
        if self.total >= config["max.connections"]:
            return f"{self.total} are connected (max.connections)"
        if self._by_listener[listener] >= ListenerConfigs(config, listener)["max.connections"]:
            return f"{self._by_listener[listener]} are connected to {listener} (its max.connections)"
        most = config["max.connections.per.ip"]
        for entry in config["max.connections.per.ip.overrides"].split(","):
            of_host, _, number = entry.rpartition(":")
            if of_host.strip() == host:
                most = int(number)
        if self._by_host[host] >= most:
            return f"{self._by_host[host]} are connected from there (max.connections.per.ip)"
        return None

    def enter(self, host: str, listener: str) -> None:
        self._by_host[host] += 1
        self._by_listener[listener] += 1

    def leave(self, host: str, listener: str) -> None:
        self._by_listener[listener] -= 1
        self._by_host[host] -= 1
        if not self._by_host[host]:
            del self._by_host[host]

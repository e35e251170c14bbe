"""Listening sockets: who may connect, how many, and for how long in silence.

Knows nothing of what connections carry.
"""

import asyncio
import logging
import socket
from collections import Counter
from typing import NamedTuple

from barnabas.api_handlers.context import Context
from barnabas.api_handlers.registry import Promise
from barnabas.broker import Broker
from barnabas.server.buffers import BufferPool
from barnabas.server.connection import Connection

logger = logging.getLogger(__name__)

SWEEPS_PER_IDLE_TIME = 10
"""How often within ``connections.max.idle.ms`` the idle are looked for."""


class Bound(NamedTuple):
    """Where a listener listens."""

    name: str
    host: str
    port: int


def bind(host: str, port: int, backlog: int) -> list[socket.socket]:
    """Sockets for each address of ``host`` (all interfaces when empty), on one port even when that is 0.

    :raises OSError: names the address that is taken or is not ours
    """
    families = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
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
                raise OSError(error.errno, f"can't listen on {host or '*'}:{port}: {error.strerror}") from error
            listening.setblocking(False)
            listening.listen(backlog)
    except BaseException:
        for each in sockets:
            each.close()
        raise
    return sockets


class Listener:
    """One entry of ``listeners``, bound; it accepts once :meth:`start` is called."""

    def __init__(
        self,
        name: str,
        host: str,
        port: int,
        broker: Broker,
        buffers: BufferPool,
        census: "Census",
        promise: Promise,
    ) -> None:
        self.name = name
        self._promise = promise
        self.buffers = buffers
        self.census = census
        self._broker = broker
        config = broker.config
        self.max_request_bytes: int = config["socket.request.max.bytes"]
        self._send_buffer: int = config["socket.send.buffer.bytes"]
        self._receive_buffer: int = config["socket.receive.buffer.bytes"]
        self._sockets = bind(host, port, config["socket.listen.backlog.size"])
        self.port: int = self._sockets[0].getsockname()[1]
        self.bound = Bound(name, host, self.port)
        self.connections: set[Connection] = set()
        self._is_stopping = False
        self._servers: list[asyncio.Server] = []

    async def start(self) -> None:
        """Accept from now on."""
        loop = asyncio.get_running_loop()
        for listening in self._sockets:
            if self._receive_buffer > 0:
                listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self._receive_buffer)
            if self._send_buffer > 0:
                listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self._send_buffer)
            server = await loop.create_server(lambda: Connection(self, loop), sock=listening)
            self._servers.append(server)

    def stop_accepting(self) -> None:
        self._is_stopping = True
        for server in self._servers:
            server.close()
        if not self._servers:
            for each in self._sockets:
                each.close()

    # ------------------------------------------------------------ a connection calls

    def admit(self, connection: Connection) -> bool:
        """Whether it may stay, by ``max.connections`` and ``max.connections.per.ip``."""
        if self._is_stopping:  # it was accepted already, and is only now made: nobody would close it
            return False
        host = connection.peer[0]
        if refusal := self.census.refuses(host, self._broker):
            logger.warning("Refusing a connection from %s: %s", host, refusal)
            return False
        self.census.enter(host)
        self.connections.add(connection)
        return True

    def forget(self, connection: Connection) -> None:
        if connection in self.connections:
            self.connections.remove(connection)
            self.census.leave(connection.peer[0])

    def new_context(self, client_host: str) -> Context:
        return Context(
            self._broker,
            listener=self.name,
            client_host=client_host,
            promise=self._promise,
            connection=next(self._broker.connection_numbers),
        )

    # ------------------------------------------------------------ the clock calls

    def close_idle(self, now: float, longest: float) -> None:
        """Close who has said nothing for ``longest`` seconds and is owed nothing."""
        for connection in list(self.connections):
            if now - connection.last_active > longest and not connection.is_waiting:
                connection.close("idle (connections.max.idle.ms)", level=logging.INFO)


class Census:
    """How many are connected, over all listeners of a broker."""

    def __init__(self) -> None:
        self._by_host: Counter[str] = Counter()

    @property
    def total(self) -> int:
        return self._by_host.total()

    def refuses(self, host: str, broker: Broker) -> str | None:
        """Why nobody else may come in from that host, if so."""
        config = broker.config
        if self.total >= config["max.connections"]:
            return f"{self.total} are connected (max.connections)"
        most = config["max.connections.per.ip"]
        for entry in config["max.connections.per.ip.overrides"].split(","):
            of_host, _, number = entry.rpartition(":")
            if of_host.strip() == host:
                most = int(number)
        if self._by_host[host] >= most:
            return f"{self._by_host[host]} are connected from there (max.connections.per.ip)"
        return None

    def enter(self, host: str) -> None:
        self._by_host[host] += 1

    def leave(self, host: str) -> None:
        self._by_host[host] -= 1
        if not self._by_host[host]:
            del self._by_host[host]

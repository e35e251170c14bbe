"""A gateway: the listening port of the proxy for one node, and the connections of its clients.

Knows nothing of what connections carry. The gateway of a node is created when a response first names the node.
"""

import asyncio
import contextlib
import logging
import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, cast

from barnabas.api_handlers.session import Session
from barnabas.diagnosis import Address
from barnabas.errors import KafkaError
from barnabas.proxy.passage import Common, Passage
from barnabas.server.buffers import BufferPool
from barnabas.server.connection import Connection
from barnabas.server.listener import bind

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    from barnabas.api_handlers.registry import Promise
    from barnabas.proxy.upstream import Upstream
    from barnabas.server.connection import Responder
    from barnabas.server.faulty import Watch

logger = logging.getLogger(__name__)

BACKLOG = 128


class House(Common, Protocol):
    """The common part of the gateways (:class:`barnabas.proxy.proxy.Proxy`)."""

    @property
    def numbers(self) -> "Iterator[int]": ...

    @property
    def promise(self) -> "Promise": ...

    @property
    def advertised_host(self) -> str | None: ...

    def port_of(self, node: Address, /) -> int: ...

    async def connect(self, node: Address, /) -> "Upstream": ...

    def opened(self, connection: int, node: Address, client: tuple[str, int], /) -> None: ...

    def closed(self, connection: int, /) -> None: ...


class ProxiedConnection(Connection):
    """A client's connection. It is served once the connection to its node is made."""

    def __init__(self, gateway: "Gateway", loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(gateway, loop)  # type: ignore[arg-type]
        self.gateway = gateway

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        # Written data is sent at once, without a copy, or it is known that it was not sent.
        self.transport.set_write_buffer_limits(0)
        self.peer = transport.get_extra_info("peername")[:2]
        proxy = self.gateway.proxy
        session = Session(
            listener=self.gateway.name, client_host=self.peer[0], promise=proxy.promise, number=next(proxy.numbers)
        )
        self.passage = Passage(session, self, proxy, self._place)
        self._responder = self.passage
        if not self.gateway.admit(self):
            self.abort()

    def wrap(self, wrapped: "Callable[[Responder, Connection], Responder]") -> None:
        """Replaces the responder, once the previous requests are answered."""
        super().wrap(wrapped)
        if self._pending is None and self.passage.is_awaited:
            self.hold()
            self.passage.when_answered(self.let_in)

    def buffer_updated(self, nbytes: int) -> None:
        """Serves the requests that have arrived, and sends them on together."""
        upstream = self.passage.upstream
        if upstream is None:
            super().buffer_updated(nbytes)
            return
        upstream.is_gathering = True
        try:
            super().buffer_updated(nbytes)
        finally:
            upstream.send_on()

    def resume_writing(self) -> None:
        super().resume_writing()
        self.passage.resume()

    def _place(self, host: str, port: int) -> tuple[str, int]:
        """Returns the address at which the client sees a node: that of the proxy to which it has connected."""
        proxy = self.gateway.proxy
        local: str = proxy.advertised_host or self.transport.get_extra_info("sockname")[0]
        return local, proxy.port_of(Address(host, port))


class Gateway:
    """Listens for the clients of one node.

    :param nodes: its address; the first gateway has the bootstrap servers, and uses one that can be reached
    """

    def __init__(self, proxy: House, nodes: Sequence[Address], buffers: BufferPool) -> None:
        self.proxy = proxy
        self.nodes = nodes
        self.buffers = buffers
        self.max_request_bytes = 2**31 - 1  # the node has its own limit
        self.connections: set[ProxiedConnection] = set()
        self.watch: Watch | None = None  #: applies faults; None while there is no rule
        self.port = 0
        self._sockets: list[socket.socket] = []
        self._servers: list[asyncio.Server] = []
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def name(self) -> str:
        return str(self.nodes[0])

    def bind(self, host: str, port: int) -> None:
        """Binds the address. Clients that connect before :meth:`accept` wait. :raises OSError: it cannot be bound"""
        self._sockets = bind(host, port, BACKLOG)
        self.port = self._sockets[0].getsockname()[1]

    async def accept(self) -> None:
        """Starts accepting clients."""
        loop = asyncio.get_running_loop()
        for listening in self._sockets:
            self._servers.append(await loop.create_server(lambda: ProxiedConnection(self, loop), sock=listening))

    async def stop(self) -> None:
        """Closes the port and all connections."""
        for server in self._servers:
            server.close()
        for listening in self._sockets[len(self._servers) :]:
            listening.close()
        for task in list(self._tasks):
            task.cancel()
        for connection in list(self.connections):
            connection.abort()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # ------------------------------------------------------------ a connection calls

    def admit(self, connection: ProxiedConnection) -> bool:
        """Connects to the node for a client. Returns whether the connection may stay."""
        if self.watch is not None and not self.watch.admits(connection):
            return False
        self.connections.add(connection)
        connection.hold()
        self.start(self._reach(connection))
        return True

    def start(self, coroutine: "Coroutine[None, None, None]") -> None:
        """Runs a coroutine as a task, which is cancelled when the gateway stops."""
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _reach(self, connection: ProxiedConnection) -> None:
        for node in self.nodes:
            try:
                upstream = await self.proxy.connect(node)
            except (OSError, KafkaError) as error:
                logger.warning("Cannot reach %s: %s", node, error)
                continue
            if connection.is_closing:
                upstream.close("the client has disconnected")
                return
            connection.passage.reach(upstream)
            self.proxy.opened(connection.session.number, node, connection.peer)
            connection.let_in()
            return
        connection.abort()

    def forget(self, connection: Connection) -> None:
        with contextlib.suppress(KeyError):
            self.connections.remove(cast(ProxiedConnection, connection))
            self.proxy.closed(connection.session.number)

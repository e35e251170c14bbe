"""The proxy: it listens on a port for each node of a cluster.

Knows nothing of the command line. The function that connects to nodes, and the observer of requests, are passed in.
"""

import asyncio
import errno
import itertools
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Protocol, cast

from barnabas.api_handlers.registry import APIS, Promise
from barnabas.diagnosis import Address
from barnabas.proxy.addresses import addressed, looks
from barnabas.proxy.gateway import Gateway, ProxiedConnection
from barnabas.proxy.passage import Observer as RequestObserver
from barnabas.proxy.upstream import Upstream
from barnabas.server.buffers import BufferPool
from barnabas.server.connection import Connection
from barnabas.wire.frames import requests
from barnabas.wire.messages.metadata import MetadataResponse
from barnabas.wire.types import ZERO_UUID

logger = logging.getLogger(__name__)

PORTS_TRIED: Final = 1000
"""The number of ports after a given one that are tried for the nodes, since some may be in use."""

Connect = Callable[[Address, Callable[[], Upstream]], Awaitable[Upstream]]
"""Connects to a node, and authenticates. :raises OSError, KafkaError: it cannot connect, or cannot authenticate"""


class Observer(RequestObserver, Protocol):
    """An observer that receives connections, too."""

    def opened(self, connection: int, node: Address, client: tuple[str, int], /) -> None: ...

    def closed(self, connection: int, /) -> None: ...


class Proxy:
    """A proxy in front of the cluster with the bootstrap servers ``to``.

    :param connect: makes connections to nodes
    :param host: to listen on; empty for all interfaces
    :param port: the bootstrap port; the nodes have the ports after it. With 0 all ports are free ones
    :param advertised_host: the host in advertised addresses; None: the address to which the client has connected
    """

    def __init__(
        self,
        to: Sequence[Address],
        connect: Connect,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        advertised_host: str | None = None,
    ) -> None:
        self._connect = connect
        self._host = host
        self._port = port
        self.advertised_host = advertised_host
        self.observer: Observer | None = None  #: receives all requests; None: they are not observed
        self.requests = requests()
        self.addressed = addressed(self.requests)
        self.looks = looks(self.requests, self.addressed)
        self.promise = Promise(APIS)
        self.numbers = itertools.count(1)
        self.topics: dict[bytes, str] = {}
        self.node_ids: dict[Address, int] = {}
        self._buffers = BufferPool()
        self.gateways = [Gateway(self, to, self._buffers)]
        self.by_node: dict[Address, Gateway] = {to[0]: self.gateways[0]} if len(to) == 1 else {}
        self.on_gateway: Callable[[Gateway], object] = lambda gateway: None  #: called with each new gateway

    @property
    def port(self) -> int:
        """The bootstrap port for clients."""
        return self.gateways[0].port

    @property
    def is_faulty(self) -> bool:
        """Whether there are rules of faults."""
        return self.gateways[0].watch is not None

    async def start(self) -> None:
        """Listens. :raises OSError: the port is in use"""
        self.gateways[0].bind(self._host, self._port)
        await self.gateways[0].accept()

    async def stop(self) -> None:
        for gateway in self.gateways:
            await gateway.stop()

    # ------------------------------------------------------------ gateways call

    def port_of(self, node: Address) -> int:
        """Returns the port of a node. Creates its gateway if there is none."""
        gateway = self.by_node.get(node)
        if gateway is None:
            gateway = Gateway(self, [node], self._buffers)
            gateway.watch = self.gateways[0].watch
            self._bind(gateway)
            self.by_node[node] = gateway
            self.gateways.append(gateway)
            self.on_gateway(gateway)
            gateway.start(gateway.accept())
            logger.info("%s is reached at port %d", node, gateway.port)
        return gateway.port

    def _bind(self, gateway: Gateway) -> None:
        if self._port == 0:
            gateway.bind(self._host, 0)
            return
        first = self.gateways[-1].port + 1
        for port in range(first, first + PORTS_TRIED):
            try:
                gateway.bind(self._host, port)
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
            else:
                return
        raise OSError(errno.EADDRINUSE, f"the ports from {first} on are taken")

    async def connect(self, node: Address) -> Upstream:
        """Connects to a node. :raises OSError, KafkaError: it cannot be reached, or refuses"""
        loop = asyncio.get_running_loop()
        return await self._connect(node, lambda: Upstream(str(node), loop, self._buffers))

    def opened(self, connection: int, node: Address, client: tuple[str, int]) -> None:
        if self.observer is not None:
            self.observer.opened(connection, node, client)

    def closed(self, connection: int) -> None:
        if self.observer is not None:
            self.observer.closed(connection)

    # ------------------------------------------------------------ topics and nodes

    def node_of(self, connection: Connection) -> int | None:
        """Returns the id of the node to which a client's connection leads; None if no Metadata has named it yet."""
        nodes = cast(ProxiedConnection, connection).gateway.nodes
        return self.node_ids.get(nodes[0]) if len(nodes) == 1 else None

    def note(self, response: MetadataResponse) -> None:
        """Remembers the names of topics by their ids, and the ids of nodes by their addresses."""
        for node in response.brokers:
            self.node_ids[Address(node.host, node.port)] = node.node_id
        for topic in response.topics:
            if topic.name and topic.topic_id != ZERO_UUID:
                self.topics[bytes(topic.topic_id)] = topic.name

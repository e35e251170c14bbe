"""A node and its listeners as a list of services, started and stopped in order.

Knows nothing of processes and signals. The caller owns the event loop.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping
from functools import partial
from random import Random, SystemRandom
from typing import TYPE_CHECKING

from barnabas.api_handlers.peer_requests import join
from barnabas.api_handlers.registry import BROKER_APIS, CONTROLLERS_PROMISE, TELEMETRY_APIS, Promise
from barnabas.broker import Broker, Node
from barnabas.clock import Clock, Scheduler, SystemClock
from barnabas.config import BrokerConfig
from barnabas.config.endpoints import Endpoint
from barnabas.errors import KafkaError
from barnabas.log.background import Background, BackgroundThread
from barnabas.log.cleaner_workers import ThreadWorker
from barnabas.log.files import DiskFiles, Files
from barnabas.peers.in_process import InProcessPeers
from barnabas.peers.lazy import LazyPeers
from barnabas.peers.peers import Peers
from barnabas.server.buffers import BufferPool
from barnabas.server.http_services import new_services
from barnabas.server.idle import IdleSweeper
from barnabas.server.listener import Bind, Census, Listener, bind
from barnabas.server.services import Service, Services, Step

if TYPE_CHECKING:
    from barnabas.peers.network import NetworkPeers
    from barnabas.server.http import HttpService

logger = logging.getLogger(__name__)


SHUTDOWN_S = 300.0
"""How long a controlled shutdown may take (``BrokerServer.shutdown``)."""


class Server:
    """One node.

    ``clock``, ``files`` and ``random`` are the machine's, and ``scheduler`` is the event loop, unless others are passed
    in. ``on_fatal`` is called with the reason when the broker cannot continue; the caller then has to stop the server.
    ``features`` are the levels at which a new cluster starts, where they differ from the default; an existing cluster
    has to be at these levels. ``wrap_peers`` wraps the peers, which reach other nodes. ``bind`` makes the listening
    sockets. ``new_background`` makes the executors of work outside the event loop; it is called with a function that
    schedules a call in the loop, and a name.

    :raises ConfigError: ``barnabas.compatible.with`` names no release
    """

    def __init__(
        self,
        config: BrokerConfig,
        *,
        files: Files | None = None,
        clock: Clock | None = None,
        scheduler: Scheduler | None = None,
        cluster_clock: Clock | None = None,
        cluster_scheduler: Scheduler | None = None,
        random: Random | None = None,
        on_fatal: Callable[[str], object] = lambda reason: None,
        features: Mapping[str, int] | None = None,
        wrap_peers: Callable[[Peers], Peers] = lambda peers: peers,
        bind: Bind = bind,
        new_background: Callable[[Callable[..., object], str], Background] = BackgroundThread,
    ) -> None:
        self.config = config
        self._bind = bind
        self._new_background = new_background
        self._wrap_peers = wrap_peers
        self._features = features
        self._on_fatal = on_fatal
        self._promise = promise(config["barnabas.compatible.with"], bool(config["barnabas.metrics.listener"]))
        self._files = files or DiskFiles()
        self.clock = clock or SystemClock()
        self._scheduler = scheduler
        self._cluster_clock = cluster_clock
        self._cluster_scheduler = cluster_scheduler
        self._random = random or SystemRandom()  # nonces and ids that cannot be guessed
        self._services = Services()
        self.listeners: list[Listener] = []  #: for clients; a process that is only a controller has none
        self.controller_listeners: list[Listener] = []
        self.http_services: list[HttpService] = []  #: those whose config is set, once they have started
        self.node: Node
        self.background: Background

    @property
    def broker(self) -> Broker:
        """The node. Only for a process that is a broker."""
        assert isinstance(self.node, Broker)
        return self.node

    async def start(self) -> None:
        """Opens the data, binds the listeners, registers the broker, and accepts clients.

        :raises OSError: a directory cannot be used, or an address cannot be bound
        :raises LogDirectoryError: a log directory is in use, or is another node's
        :raises MetadataLogError: the metadata log cannot be read
        :raises ConfigError: the configs of a listener, of those of the other nodes, or of an HTTP service are not valid
        """
        self.node = self._new_node()
        buffers, census = BufferPool(), Census()

        def new_listener(endpoint: Endpoint, promise: Promise) -> Listener:
            return Listener(endpoint, self.node, buffers, census, promise, self._bind)

        if self.config.is_broker:
            self.listeners = [new_listener(each, self._promise) for each in self.config.listeners]
        if self.config.is_controller:
            own = self.config.controller_listeners
            self.controller_listeners = [new_listener(each, CONTROLLERS_PROMISE) for each in own]
        self.http_services = new_services(self, self.config)
        await self._services.start(self._in_order())

    def disconnect(self) -> None:
        """Closes the connections to other nodes. The next requests to them make new ones."""
        self._peers.close()
        self._controller_peers.close()

    async def stop(self) -> None:
        """Stops accepting clients, sends the written responses, and closes the broker cleanly."""
        await self._services.stop()

    def _in_order(self) -> list[Service]:
        """Returns the services in the order in which they are started.

        The node registers the ports that its listeners are bound to. A controller accepts connections before that, a
        broker once it has registered.
        """
        every = [*self.controller_listeners, *self.listeners]
        return [
            Step("peers", stop=self._disconnect),
            Step("node", start=self._open, stop=self._close),
            *every,
            Step(
                "controller's acceptors",
                start=partial(_accept, self.controller_listeners),
                stop=partial(_stop_accepting, self.controller_listeners),
            ),
            Step("metadata", start=self._catch_up, stop=self._resign),
            Step("registration", start=self._register),
            Step("acceptors", start=partial(_accept, self.listeners), stop=partial(_stop_accepting, self.listeners)),
            IdleSweeper(every, self.config["connections.max.idle.ms"] / 1000),
            *self.http_services,
            Step("controlled shutdown", stop=self._shut_down),
        ]

    def _new_node(self) -> Node:
        loop = asyncio.get_running_loop()
        as_broker, as_controller = InProcessPeers(), InProcessPeers()

        def brokers() -> "NetworkPeers":
            name = node.config.inter_broker_listener_name
            return connected(node, node.broker_endpoint, name, "sasl.mechanism.inter.broker.protocol")

        def controllers() -> "NetworkPeers":
            name = node.config.controller_listener_name
            return connected(node, node.quorum.endpoint_of, name, "sasl.mechanism.controller.protocol")

        self._peers = LazyPeers(self.config.node_id, as_broker, brokers)
        self._controller_peers = LazyPeers(self.config.node_id, as_controller, controllers)
        self.background = self._new_background(loop.call_soon_threadsafe, "barnabas-disk")
        node = (Broker if self.config.is_broker else Node)(
            self.config,
            files=self._files,
            clock=self.clock,
            scheduler=self._scheduler or loop,
            cluster_clock=self._cluster_clock,
            cluster_scheduler=self._cluster_scheduler,
            random=self._random,
            background=self.background,
            reader=self._new_background(loop.call_soon_threadsafe, "barnabas-reads"),
            resolver=self._new_background(loop.call_soon_threadsafe, "barnabas-names"),
            # Another process cannot clean files that are in this one's memory.
            new_cleaner_worker=(lambda: ThreadWorker(loop.call_soon_threadsafe))
            if isinstance(self._files, DiskFiles)
            else None,
            peers=self._wrap_peers(self._peers),
            controller_peers=self._wrap_peers(self._controller_peers),
            features=self._features,
        )
        join(as_broker, node)
        join(as_controller, node, CONTROLLERS_PROMISE)
        node.on_fatal = self._on_fatal
        return node

    # ------------------------------------------------------------ steps

    async def _open(self) -> None:
        self.node.open()
        if not self.node.quorum.is_sole_voter:
            self._controller_peers.prepare()
            self._peers.prepare()

    async def _disconnect(self) -> None:
        self.disconnect()

    async def _close(self) -> None:
        self.node.close()

    async def _catch_up(self) -> None:
        """Waits until the broker has applied the metadata that the controllers have committed, and opens its logs.

        :raises TimeoutError: that takes longer than ``initial.broker.registration.timeout.ms``
        """
        node = self.node
        if isinstance(node, Broker) and not node.quorum.is_sole_voter:
            limit_ms = self.config["initial.broker.registration.timeout.ms"]
            try:
                async with asyncio.timeout(limit_ms / 1000):
                    await _called(node.quorum.when_caught_up)
            except TimeoutError:
                raise TimeoutError(f"no controller has sent the metadata log within {limit_ms} ms") from None
            node.open_logs()

    async def _resign(self) -> None:
        """Resigns if this controller is the active one, and waits for the election of another one, as long as an
        election may take.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.config["controller.quorum.election.timeout.ms"] / 1000):
                await _called(self.node.quorum.resign)

    async def _shut_down(self) -> None:
        """Waits until other brokers, if there are any, lead the partitions that this broker leads."""
        node = self.node
        if isinstance(node, Broker) and len(node.image.brokers) > 1 and self.config["controlled.shutdown.enable"]:
            try:
                async with asyncio.timeout(SHUTDOWN_S):
                    await _called(node.shut_down)
            except TimeoutError:
                logger.warning("The controller has not moved the leaders away from this broker. It stops without that")

    async def _register(self) -> None:
        """Waits until the registration is committed.

        :raises KafkaError: the controller refuses it, or the request is lost
        """
        registered: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def done(result: None, error: KafkaError | None) -> None:
            if not registered.done():
                if error is None:
                    registered.set_result(None)
                else:
                    registered.set_exception(error)

        listeners = (*self.controller_listeners, *self.listeners)
        self.node.register({listener.endpoint.name: listener.port for listener in listeners}, done)
        await registered


async def _called(function: Callable[[Callable[[], object]], object]) -> None:
    """Waits until ``function`` has called the callback that it is given."""
    called: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def done() -> None:
        if not called.done():
            called.set_result(None)

    function(done)
    await called


async def _accept(listeners: list[Listener]) -> None:
    try:
        for listener in listeners:
            await listener.accept()
    except BaseException:
        await _stop_accepting(listeners)
        raise


async def _stop_accepting(listeners: list[Listener]) -> None:
    """Closes the connections of all listeners at once. Each listener then waits for its own."""
    for listener in listeners:
        listener.stop_accepting()


def connected(
    node: Node, resolve: Callable[[int], Endpoint | None], listener_name: str, mechanism_config: str
) -> "NetworkPeers":
    """Returns the peers that reach the nodes whose endpoints ``resolve`` returns, by the security configs of the
    listener.

    :param mechanism_config: the config that names the SASL mechanism
    :raises ConfigError: the listener's configs are not valid
    """
    from barnabas.peers.network import NetworkPeers

    protocol = node.config.security_protocol_of(listener_name)
    if protocol == "PLAINTEXT":
        return NetworkPeers(node, resolve)
    from barnabas.peers.secure import SecureConnect

    return NetworkPeers(node, resolve, SecureConnect(node, listener_name, protocol, mechanism_config))


def promise(release: str | None, telemetry: bool = False) -> Promise:
    """Returns the APIs and versions for ApiVersions: all of them, or those of a release of Apache Kafka.

    :param telemetry: whether clients may push their metrics

    :raises ConfigError: there is no such release
    """
    if release is None:
        return Promise({**BROKER_APIS, **TELEMETRY_APIS}) if telemetry else Promise()
    from barnabas.api_handlers import releases

    found = releases.find(release)
    if missing := releases.missing(found):
        logger.info(
            "Clients see the APIs of Apache Kafka %s, except these keys and versions, which are not supported: %s",
            found,
            ", ".join(f"{key} ({versions})" for key, versions in missing.items()),
        )
    known = releases.narrowed(found)
    return Promise({**known, **TELEMETRY_APIS} if telemetry and releases.has_telemetry(found) else known, found)

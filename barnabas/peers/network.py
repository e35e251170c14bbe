"""Nodes on the network: a connection for each node and lane, opened when it is first needed.

Knows nothing of what requests mean, nor of TLS and SASL. Follows Apache Kafka's ``NetworkClient`` and
``InterBrokerSendThread``.
"""

import asyncio
import logging
import ssl
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, NamedTuple, Protocol

from barnabas.clock import Clock, Scheduler, Timer
from barnabas.config.endpoints import Endpoint
from barnabas.config.settings import Settings
from barnabas.deadlines import Deadline, Deadlines
from barnabas.errors import (
    NONE,
    KafkaError,
    NetworkException,
    RequestTimedOut,
    SaslAuthenticationFailed,
    UnsupportedSaslMechanism,
    UnsupportedVersion,
)
from barnabas.peers.connection import Limits, PeerConnection
from barnabas.peers.handshake import response_to
from barnabas.peers.peers import ApiVersions, ConnectionRefused, Done, error_of
from barnabas.wire.message import Request
from barnabas.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

logger = logging.getLogger(__name__)

LARGEST_RESPONSE = 0x7FFFFFFF
RECONNECT_BACKOFF_S = 0.05
"""The delay after a failed attempt to connect (``reconnect.backoff.ms``)."""

VERSION = 3
"""The version of ApiVersions: every broker since Apache Kafka 2.4 supports it."""
SOFTWARE = "barnabas"

CLIENT_IDS: Mapping[str, str] = {
    "": "broker-{node_id}",
    "controller": "{node_id}",  # NodeToControllerChannelManagerImpl, as the next
    "forwarding": "{node_id}",
    "isr": "{node_id}",
    "add-partitions": "AddPartitionsManager-client-{node_id}",  # BrokerServer
    "persister": "Persister-client-{node_id}",
    "metadata": "raft-client-{node_id}",  # KafkaRaftManager
}
"""The client ids of some lanes, as Apache Kafka has them; the others are ``broker-1-fetcher-0`` and so on."""

Connect = Callable[[Endpoint, Callable[[], PeerConnection]], Coroutine[Any, Any, PeerConnection]]
"""Opens a connection, and authenticates if the listener requires it.

:raises OSError: the node cannot be reached
:raises KafkaError: the other node refuses it
"""


async def connect_plainly(endpoint: Endpoint, new: Callable[[], PeerConnection]) -> PeerConnection:
    """Opens a connection without TLS and SASL."""
    _, connection = await asyncio.get_running_loop().create_connection(new, endpoint.host, endpoint.port)
    return connection


class Surroundings(Protocol):
    """What is used of the node that sends the requests."""

    @property
    def node_id(self) -> int: ...

    @property
    def config(self) -> Settings: ...

    @property
    def cluster_clock(self) -> Clock: ...

    @property
    def cluster_scheduler(self) -> Scheduler: ...


class _Waiting(NamedTuple):
    """A request that has not been sent yet."""

    request: Request
    done: Done
    deadline: float  #: when it times out, by the monotonic clock


class NetworkPeers:
    """The other nodes of a cluster.

    :param resolve: returns the endpoint of a node, None for an unknown one
    """

    def __init__(
        self,
        node: Surroundings,
        resolve: Callable[[int], Endpoint | None],
        connect: Connect = connect_plainly,
    ) -> None:
        self.node = node
        self.resolve = resolve
        self.connect = connect
        self.deadlines = Deadlines(node.cluster_clock, node.cluster_scheduler)
        self._lanes: dict[tuple[int, str], Lane] = {}

    def send(
        self, node_id: int, request: Request, done: Done, *, lane: str = "", timeout_ms: int | None = None
    ) -> None:
        if timeout_ms is None:
            timeout_ms = self.node.config["request.timeout.ms"]
        found = self._lanes.get((node_id, lane))
        if found is None:
            found = self._lanes[node_id, lane] = Lane(self, node_id, lane)
        found.send(request, done, self.node.cluster_clock.monotonic() + timeout_ms / 1000)

    def versions_of(self, node_id: int) -> ApiVersions | None:
        known = (lane.versions for (node, _), lane in self._lanes.items() if node == node_id)
        return next((versions for versions in known if versions), None)

    def close(self) -> None:
        """Closes all connections. Pending requests get NETWORK_EXCEPTION."""
        lanes, self._lanes = self._lanes, {}
        for lane in lanes.values():
            lane.close()
        self.deadlines.close()


class Lane:
    """The connection for one lane to one node, and the requests that wait for it."""

    def __init__(self, peers: NetworkPeers, node_id: int, name: str) -> None:
        self._peers = peers
        self._node = peers.node
        self._node_id = node_id
        self._client_id = CLIENT_IDS.get(name, f"broker-{{node_id}}-{name}").format(node_id=self._node.node_id)
        self._waiting: deque[_Waiting] = deque()
        self._watch = Deadline(self._check)  # when the next waiting request may time out
        self._connection: PeerConnection | None = None
        self._endpoint: Endpoint | None = None
        self.versions: ApiVersions = {}  #: the versions of the last connection
        self._connecting: asyncio.Task[None] | None = None
        self._backoff: Timer | None = None
        self._is_out = False  # whether the last attempt to connect failed

    def send(self, request: Request, done: Done, deadline: float) -> None:
        """Sends the request, once there is a connection."""
        endpoint = self._peers.resolve(self._node_id)
        if endpoint is None:
            done(None, NetworkException(f"No address of node {self._node_id} is known"))
            return
        connection = self._connection
        if connection is not None and endpoint != self._endpoint:
            connection.close("it has another address now")
            connection = self._connection
        if connection is not None:
            self._write(connection, request, done, deadline)
            return
        self._endpoint = endpoint
        self._waiting.append(_Waiting(request, done, deadline))
        self._check_at(deadline)
        if self._connecting is None and self._backoff is None:
            self._connect()

    def _write(self, connection: PeerConnection, request: Request, done: Done, deadline: float) -> None:
        version = self._version_of(request)
        if version is None:
            done(None, UnsupportedVersion(f"Node {self._node_id} has no version of {type(request).__name__}"))
        else:
            connection.send(request, version, deadline, done)

    def _version_of(self, request: Request) -> int | None:
        """Returns the newest version that both nodes support; None if there is none."""
        first, last = self.versions.get(request.api_key, (0, -1))
        version = min(last, request.versions.last)
        return version if version >= max(first, request.versions.first) else None

    # ------------------------------------------------------------ time

    def _check_at(self, moment: float) -> None:
        if moment < self._watch.at:
            self._peers.deadlines.set(self._watch, max(moment - self._node.cluster_clock.monotonic(), 0.001))

    def _check(self) -> None:
        """Fails the requests that have timed out, sent or not."""
        now = self._node.cluster_clock.monotonic()
        overdue = [each for each in self._waiting if each.deadline <= now]
        self._waiting = deque(each for each in self._waiting if each.deadline > now)
        if self._waiting:
            self._check_at(min(each.deadline for each in self._waiting))
        if self._connection is not None:
            self._connection.check()
        for each in overdue:
            each.done(None, RequestTimedOut())

    # ------------------------------------------------------------ connecting

    def _connect(self) -> None:
        self._backoff = None
        if self._waiting:
            self._connecting = asyncio.ensure_future(self._open())

    async def _open(self) -> None:
        """Opens the connection, and sends the waiting requests. They fail if it cannot be opened."""
        endpoint = self._endpoint
        assert endpoint is not None
        name = f"node {self._node_id} at {endpoint.host}:{endpoint.port}"
        settings = self._node.config
        limits = Limits(settings["connections.max.idle.ms"] / 1000, LARGEST_RESPONSE)
        made: list[PeerConnection] = []

        def new() -> PeerConnection:
            made.append(
                PeerConnection(
                    name, self._client_id, self._node.cluster_clock, limits, self._check_at, on_lost=self._lost
                )
            )
            return made[-1]

        try:
            async with asyncio.timeout(settings["socket.connection.setup.timeout.ms"] / 1000):
                connection = await self._peers.connect(endpoint, new)
                self.versions = await versions_of(connection)
        except (ssl.SSLError, SaslAuthenticationFailed, UnsupportedSaslMechanism) as error:
            self._log(logging.ERROR, "The connection to %s failed authentication due to: %s", name, error)
            self._failed(made)
        except (OSError, TimeoutError, KafkaError) as error:
            self._log(logging.INFO, "Cannot connect to %s: %s", name, str(error) or type(error).__name__)
            self._failed(made, ConnectionRefused if isinstance(error, ConnectionRefusedError) else NetworkException)
        except Exception:  # a bug: the waiting requests must fail all the same
            logger.exception("Unexpected error while connecting to %s", name)
            self._failed(made)
        else:
            self._connecting = None
            self._connection = connection
            self._is_out = False
            while self._waiting and self._connection is not None:
                self._write(self._connection, *self._waiting.popleft())

    def _log(self, level: int, text: str, *arguments: object) -> None:
        """Logs one line for each outage, however often it tries to connect."""
        logger.log(logging.DEBUG if self._is_out else level, text, *arguments)
        self._is_out = True

    def _failed(self, made: list[PeerConnection], error: type[NetworkException] = NetworkException) -> None:
        for connection in made:
            connection.close("it is not usable", level=logging.DEBUG)
        self._connecting = None
        self._backoff = self._node.cluster_scheduler.call_later(RECONNECT_BACKOFF_S, self._connect)
        self._refuse(error)

    def _refuse(self, error: type[NetworkException]) -> None:
        waiting, self._waiting = self._waiting, deque()
        for each in waiting:
            each.done(None, error(f"Node {self._node_id} cannot be reached"))

    def _lost(self, connection: PeerConnection) -> None:
        if connection is self._connection:
            self._connection = None

    def close(self) -> None:
        self._watch.cancel()
        if self._backoff is not None:
            self._backoff.cancel()
        if self._connecting is not None:
            self._connecting.cancel()
        if self._connection is not None:
            self._connection.close("this node stops", level=logging.DEBUG)
        self._refuse(NetworkException)


async def versions_of(connection: PeerConnection) -> dict[int, tuple[int, int]]:
    """Returns the first and the last version of each API that the other node supports.

    :raises KafkaError: the request fails
    """
    request = ApiVersionsRequest(client_software_name=SOFTWARE, client_software_version="1")
    response: ApiVersionsResponse = await response_to(connection, request, VERSION)
    if response.error_code != NONE:
        raise error_of(response.error_code) or KafkaError()
    return {each.api_key: (each.min_version, each.max_version) for each in response.api_keys}

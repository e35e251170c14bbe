"""One node of a cluster in this process, which can be started, stopped, killed and isolated.

Knows nothing of the other nodes. All functions are called on the thread of the event loop.
"""

import logging
from collections.abc import Callable, Mapping
from typing import Any

from barnabas.clock import Clock, Scheduler, Timer
from barnabas.config import BrokerConfig
from barnabas.errors import NetworkException
from barnabas.log import meta_properties
from barnabas.log.files import Files, MemoryFile, MemoryFiles
from barnabas.log.meta_properties import MetaProperties
from barnabas.peers.peers import ApiVersions, Done, Peers
from barnabas.server.faulty import Watch
from barnabas.server.server import Server
from barnabas.testing.turning import TurnedClock, Undisturbed
from barnabas.uuids import random_uuid
from barnabas.wire.message import Request

DIRECTORY = "/barnabas"


class MortalScheduler:
    """A scheduler that drops all its timers when the node is killed."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self.is_dead = False

    def call_later(self, delay: float, callback: Callable[..., object], *args: Any) -> Timer:
        return self._scheduler.call_later(delay, self._call, callback, args)

    def _call(self, callback: Callable[..., object], args: tuple[Any, ...]) -> None:
        if not self.is_dead:
            callback(*args)


class CutPeers:
    """Peers that cannot be reached while the node is isolated."""

    def __init__(self, peers: Peers, node_id: int, is_cut: Callable[[], bool]) -> None:
        self._peers = peers
        self._node_id = node_id
        self._is_cut = is_cut

    def send(
        self, node_id: int, request: Request, done: Done, *, lane: str = "", timeout_ms: int | None = None
    ) -> None:
        if self._is_cut() and node_id != self._node_id:
            done(None, NetworkException(f"Node {self._node_id} is cut off"))
        else:
            self._peers.send(node_id, request, done, lane=lane, timeout_ms=timeout_ms)

    def versions_of(self, node_id: int) -> ApiVersions | None:
        return self._peers.versions_of(node_id)


class Shut:
    """Refuses all connections to a listener while the node is isolated."""

    def admits(self, guest: object) -> bool:
        return False


class ClusterNode:
    """A node and its files, which are kept when it stops.

    :param properties: its configs, without ids and directories
    :param clock: of all nodes of the cluster
    """

    def __init__(
        self, node_id: int, properties: Mapping[str, str], clock: TurnedClock, random_bytes: Callable[[int], bytes]
    ) -> None:
        self.id = node_id
        self.properties = {**properties, "node.id": str(node_id), "log.dirs": DIRECTORY}
        self.server: Server | None = None
        self.is_cut = False
        self.new_watch: Callable[[Server], Watch] | None = None  #: makes the watch once a rule is set
        self._watch: Watch | None = None
        self._files = MemoryFiles(clock)
        self._clock = clock
        self._random_bytes = random_bytes
        self._schedulers: tuple[MortalScheduler, MortalScheduler]  #: of the clock, and of the machine's time

    def format(self, cluster_id: str) -> None:
        """Formats the log directory for that cluster."""
        self._files.makedirs(DIRECTORY)
        meta_properties.write(
            self._files, DIRECTORY, MetaProperties(cluster_id, self.id, random_uuid(self._random_bytes))
        )

    @property
    def is_running(self) -> bool:
        return self.server is not None

    async def start(self, loop: Scheduler) -> None:
        """Starts the node; has no effect if it runs. :raises Exception: it cannot start"""
        if self.server is not None:
            return
        turned, mortal = self._schedulers = MortalScheduler(self._clock), MortalScheduler(loop)
        server = Server(
            BrokerConfig.from_properties(self.properties, dev=True),
            files=self._files,
            clock=self._clock,
            scheduler=turned,
            cluster_clock=Undisturbed(self._clock),
            cluster_scheduler=mortal,
            on_fatal=logging.getLogger(__name__).critical,
            wrap_peers=lambda peers: CutPeers(peers, self.id, lambda: self.is_cut or mortal.is_dead),
        )
        await server.start()
        self.server = server
        self._watch = None
        self._keep_ports(server)
        self.update_watch()

    def _keep_ports(self, server: Server) -> None:
        """Makes the node use the same ports when it starts again."""
        bound = [listener.endpoint for listener in (*server.listeners, *server.controller_listeners)]
        self.properties["listeners"] = ",".join(f"{each.name}://{each.host}:{each.port}" for each in bound)

    async def stop(self) -> None:
        """Stops the node cleanly; has no effect if it does not run."""
        server, self.server = self.server, None
        if server is not None:
            await server.stop()

    def kill(self) -> None:
        """Ends the node as ``kill -9`` does, without any notification. Its files stay."""
        server, self.server = self.server, None
        if server is None:
            return
        for scheduler in self._schedulers:
            scheduler.is_dead = True
        self._files = copied(self._files, self._clock)  # what the dead node still writes is dropped
        self.cut(server)
        for listener in (*server.listeners, *server.controller_listeners):
            listener.stop_accepting()

    def isolate(self) -> None:
        """Isolates the node from clients and other nodes."""
        self.is_cut = True
        assert self.server is not None, f"node {self.id} does not run"
        self.cut(self.server)
        for listener in (*self.server.listeners, *self.server.controller_listeners):
            listener.watch = Shut()

    def heal(self) -> None:
        """Ends the isolation."""
        self.is_cut = False
        if self.server is not None:
            for listener in (*self.server.listeners, *self.server.controller_listeners):
                listener.watch = None
            self.update_watch()

    def update_watch(self) -> None:
        """Applies the rules of the node, if there are any, to its connections, unless it is isolated."""
        if self.new_watch is None or self.server is None or self.is_cut:
            return
        if self._watch is None:
            self._watch = self.new_watch(self.server)
        self._watch.update()

    @staticmethod
    def cut(server: Server) -> None:
        """Aborts all connections of the node."""
        server.disconnect()
        for listener in (*server.listeners, *server.controller_listeners):
            for connection in list(listener.connections):
                connection.abort()


def copied(files: Files, clock: Clock) -> MemoryFiles:
    """Returns files with the same content, none of which is open or locked."""
    assert isinstance(files, MemoryFiles)
    copy = MemoryFiles(clock)
    for path, names in files.directories.items():
        inside = copy.directories[path] = {}
        for name, file in names.items():
            new = inside[name] = MemoryFile(clock, file.path, bytes(file.content))
            new.modified_ms = file.modified_ms
    return copy

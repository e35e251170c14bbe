"""A cluster of several brokers in this process, on a thread of their own, for the time of a ``with`` block.

Knows nothing of pytest. The brokers talk to one another over sockets, as those of several machines do; their files are
in memory. Several clusters can run at the same time.
"""

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from random import SystemRandom
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from barnabas.broker import Broker, Node
from barnabas.cluster.controller.commands.replicas import AlterPartitionReassignments, ElectLeaders
from barnabas.cluster.controller.commands.topics import CreateTopics, NewTopic
from barnabas.cluster.image.image import PartitionImage
from barnabas.errors import ElectionNotNeeded, KafkaError, NotController, UnknownTopicOrPartition
from barnabas.server.run import loop_factory
from barnabas.testing.cluster_node import ClusterNode
from barnabas.testing.controls import Controls
from barnabas.testing.in_process import as_property
from barnabas.testing.seeing import Seeing
from barnabas.testing.turning import BrokerClock, TurnedClock
from barnabas.uuids import random_uuid, uuid_text

if TYPE_CHECKING:
    from barnabas.testing.cluster_faults import ClusterFaults

T = TypeVar("T")

CONTROLLER_ID = 1000
"""The node id of the first controller. The controllers are not brokers."""

LONGEST_WAIT_S = 30.0
"""The timeout of calls to the cluster's thread."""

SETTLING_S = 5.0
"""How long an advance of the clock waits for replicas of what it has written."""

LOOK_S = 0.01
"""The polling interval of waits."""

ELECTION_MS, FETCH_MS = 300, 600
"""The time-outs of the controllers' elections. Kafka's 1 and 2 seconds are long in a test."""

HEARTBEAT_MS, SESSION_MS = 150, 800
"""The interval of heartbeats and the session timeout of brokers. Kafka's 2 and 9 seconds are long in a test."""

COPIES = 3
"""The default replication factor, in a cluster with as many brokers or more."""


class Cluster(Seeing):
    """Brokers with the ids from 1 on, and controllers with the ids from 1000 on, all on free ports of 127.0.0.1.

    Configs are those of every node, as for :class:`~barnabas.testing.Broker`. Topics have three replicas, or as many as
    there are brokers; internal topics, too. A broker that is killed is noticed within a second
    (``broker.session.timeout.ms``).

    ``racks`` are those of the brokers, in their order: replicas are spread over them, and consumers of a rack read from
    the nearest replica if ``replica.selector.class`` is set.

    One controller is enough unless a test stops it as well: three of them survive the loss of one. Controllers are
    nodes for :meth:`stop`, :meth:`kill`, :meth:`start`, :meth:`isolate` and :meth:`heal`.

    >>> from barnabas.testing import Cluster
    >>> with Cluster(3) as cluster:
    ...     cluster.create_topic("orders")
    ...     cluster.kill(cluster.leader("orders"))
    """

    def __init__(
        self,
        brokers: int = 3,
        configs: Mapping[str, object] | None = None,
        *,
        controllers: int = 1,
        racks: Sequence[str] = (),
        **keywords: object,
    ) -> None:
        named = {name.replace("_", "."): value for name, value in keywords.items()}
        if racks and len(racks) != brokers:
            raise ValueError(f"{len(racks)} racks for {brokers} brokers")
        copies = min(brokers, COPIES)
        defaults = {
            "controller.quorum.election.timeout.ms": ELECTION_MS,
            "controller.quorum.fetch.timeout.ms": FETCH_MS,
            "broker.heartbeat.interval.ms": HEARTBEAT_MS,
            "broker.session.timeout.ms": SESSION_MS,
            "default.replication.factor": copies,
            "offsets.topic.replication.factor": copies,
            "transaction.state.log.replication.factor": copies,
            "share.coordinator.state.topic.replication.factor": copies,
        }
        given = {name: as_property(value) for name, value in {**defaults, **(configs or {}), **named}.items()}
        random, clock = SystemRandom(), TurnedClock()
        self._turned = clock
        self.cluster_id = uuid_text(random_uuid(random.randbytes))
        self._reserved = {CONTROLLER_ID + index: reserve() for index in range(controllers)}
        addresses = {node_id: f"127.0.0.1:{each.getsockname()[1]}" for node_id, each in self._reserved.items()}
        given["controller.quorum.voters"] = ",".join(f"{node_id}@{each}" for node_id, each in addresses.items())
        self._controllers = {
            node_id: ClusterNode(
                node_id,
                given | {"process.roles": "controller", "listeners": f"CONTROLLER://{address}"},
                clock,
                random.randbytes,
            )
            for node_id, address in addresses.items()
        }
        self._brokers = {
            node_id: ClusterNode(
                node_id,
                given | rack | {"process.roles": "broker", "listeners": "PLAINTEXT://127.0.0.1:0"},
                clock,
                random.randbytes,
            )
            for node_id, rack in enumerate(([{"broker.rack": each} for each in racks] or [{}] * brokers), 1)
        }
        self._faults: ClusterFaults | None = None
        self._loop: asyncio.AbstractEventLoop
        self._thread: threading.Thread | None = None

    # ------------------------------------------------------------ start and stop

    def __enter__(self) -> Self:
        self._loop = self._turned.loop = loop_factory()()
        self._thread = threading.Thread(target=self._loop.run_forever, name="barnabas-cluster", daemon=True)
        self._thread.start()
        try:
            self._await(self._start_all())
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self._await(self._stop_all())
        finally:
            self._end()

    async def _start_all(self) -> None:
        for node in self._nodes.values():
            node.format(self.cluster_id)
        await asyncio.gather(*(node.start(self._loop) for node in self._nodes.values()))
        await self._until(self._all_unfenced)

    def _all_unfenced(self) -> bool:
        """Returns whether each broker that runs knows of all others that run."""
        running = {node.id for node in self._brokers.values() if node.is_running}
        return all(
            running <= {each.id for each in broker.image.brokers.values() if not each.fenced}
            for broker in self._running()
        )

    async def _stop_all(self) -> None:
        for node in self._nodes.values():
            node.heal()
        for nodes in (self._brokers, self._controllers):
            await asyncio.gather(*(node.stop() for node in nodes.values()))

    def _end(self) -> None:
        thread, self._thread = self._thread, None
        assert thread is not None
        self._loop.call_soon_threadsafe(self._loop.stop)
        thread.join()
        self._loop.close()
        for each in self._reserved.values():
            each.close()

    # ------------------------------------------------------------ brokers

    @property
    def node_ids(self) -> list[int]:
        """The ids of all brokers."""
        return list(self._brokers)

    @property
    def controller_ids(self) -> list[int]:
        """The ids of all controllers."""
        return list(self._controllers)

    @property
    def active_controller(self) -> int:
        """The id of the active controller; -1 while there is none."""
        return self._call(lambda: next((node.node_id for node in self._controlling()), -1))

    @property
    def _nodes(self) -> dict[int, ClusterNode]:
        return {**self._controllers, **self._brokers}

    @property
    def bootstrap_servers(self) -> str:
        """The ``bootstrap.servers`` for clients, with the addresses of all brokers."""
        return ",".join(map(self.address, self._brokers))

    def address(self, node: int) -> str:
        """Returns host and port of one broker."""
        return self._nodes[node].properties["listeners"].partition("://")[2]

    def metrics_url(self, node: int) -> str:
        """Returns where /metrics and /health of a running node are, if ``barnabas.metrics.listener`` is set.

        :raises RuntimeError: it is not set, or the node does not run
        """
        server = self._nodes[node].server
        for service in () if server is None else server.http_services:
            if service.name == "metrics":
                return service.url
        raise RuntimeError(f'node {node} shows no metrics: Cluster(barnabas_metrics_listener="127.0.0.1:0")')

    def stop(self, node: int) -> None:
        """Stops a node cleanly: other brokers lead its partitions before it ends."""
        self._await(self._nodes[node].stop())

    def kill(self, node: int) -> None:
        """Ends a node as ``kill -9`` does.

        The controller notices the end of a broker after ``broker.session.timeout.ms``. The other controllers notice
        that of the active one at once, since its address refuses connections.
        """
        self._call(self._nodes[node].kill)

    def start(self, node: int) -> None:
        """Starts a node again, with its old data and its old address, and returns when the other nodes see it."""
        self._await(self._nodes[node].start(self._loop))
        self._await(self._until(self._all_unfenced))

    def rolling_restart(self, while_away: Callable[[int], object] = lambda node: None) -> None:
        """Restarts one broker after the other, each once all replicas are in sync.

        :param while_away: is called with each broker's id while it is stopped
        """
        for node in self.node_ids:
            self.wait_in_sync()
            self.stop(node)
            while_away(node)
            self.start(node)
        self.wait_in_sync()

    def isolate(self, node: int) -> None:
        """Cuts a node off from clients and all other nodes, until :meth:`heal`."""
        self._call(self._nodes[node].isolate)

    def heal(self, node: int) -> None:
        """Ends the isolation of a node."""
        self._call(self._nodes[node].heal)

    # ------------------------------------------------------------ faults

    @property
    def faults(self) -> "ClusterFaults":
        """The rules by which requests to the brokers go wrong, each on one of them or on all."""
        if self._faults is None:
            from barnabas.testing.cluster_faults import ClusterFaults

            self._faults = ClusterFaults(self._brokers, self._call, self._turned, self._loop)
        return self._faults

    def fault_report(self) -> str:
        """Returns which faults there were, a line each. Imports nothing if there was no rule."""
        return "" if self._faults is None else self._faults.report()

    # ------------------------------------------------------------ time

    @property
    def clock(self) -> BrokerClock:
        """The clock of all nodes, which a test may advance (docs/how-to/turn-the-clock.md).

        Nodes wait for one another by the machine's time: elections, heartbeats and replication go on as they did.
        """
        return BrokerClock(self._turned, lambda seconds: self._await(self._advance(seconds)))

    async def _advance(self, seconds: float) -> None:
        await self._turned.advance(seconds, self._settled)

    async def _settled(self) -> None:
        """Waits for the background threads of the nodes that run, and for replicas of what the timers have written."""
        servers = [node.server for node in self._nodes.values() if node.server is not None]
        await asyncio.gather(*(Controls.of(server).settled() for server in servers))
        ends = {
            partition: partition.log.log_end_offset
            for broker in self._running()
            for partition in broker.partitions.values()
            if partition.leads and self._are_running(partition.image.isr)
        }
        with contextlib.suppress(TimeoutError):  # a node may be killed meanwhile
            await self._until(lambda: all(each.log.high_watermark >= end for each, end in ends.items()), SETTLING_S)

    def _are_running(self, nodes: Iterable[int]) -> bool:
        return {*nodes} <= {broker.node_id for broker in self._running()}

    # ------------------------------------------------------------ topics

    def create_topic(
        self,
        name: str,
        *,
        partitions: int = 1,
        replicas: int = -1,
        configs: Mapping[str, object] | None = None,
    ) -> None:
        """Creates a topic, and returns when all brokers know it, and have their logs of it.

        :param replicas: of each partition; by default three, or as many as there are brokers
        :raises KafkaError: an error of CreateTopics, such as TopicAlreadyExists
        """
        given = [(key, as_property(value)) for key, value in (configs or {}).items()]
        (created,) = self._submit(CreateTopics([NewTopic(name, partitions, replicas, configs=given)]))
        if created.error is not None:
            raise created.error
        self._await(self._until(lambda: all(broker.hosting.is_ready(name) for broker in self._running())))

    def partition(self, topic: str, partition: int = 0) -> PartitionImage:
        """Returns replicas, leader and in-sync replicas of a partition, as the active controller knows them.

        :raises UnknownTopicOrPartition: there is none
        """
        found = self._call(lambda: self._active.image.partition(topic, partition))
        if found is None:
            raise UnknownTopicOrPartition(f"{topic}-{partition}")
        return found

    def leader(self, topic: str, partition: int = 0) -> int:
        """Returns the id of the leader; -1 if there is none."""
        return self.partition(topic, partition).leader

    def move_leader(self, topic: str, partition: int, node: int) -> None:
        """Makes an in-sync replica the leader, and the first of the replicas; returns when all brokers know.

        :raises KafkaError: it is not in sync
        """
        replicas = self.partition(topic, partition).replicas
        target = [node, *(each for each in replicas if each != node)]
        self._submit(AlterPartitionReassignments([(topic, [(partition, target)])]))
        ((_, (elected,)),) = self._submit(ElectLeaders(0, [(topic, [partition])]))
        if elected.error is not None and not isinstance(elected.error, ElectionNotNeeded):
            raise elected.error

        def is_led() -> bool:
            images = (broker.image.partition(topic, partition) for broker in self._running())
            return all(image is not None and image.leader == node for image in images)

        self._await(self._until(is_led))

    def wait_in_sync(self, topic: str | None = None, *, timeout: float = LONGEST_WAIT_S) -> None:
        """Waits until every replica of a topic, or of all topics, is in sync.

        :raises TimeoutError: they are not within ``timeout`` seconds
        """
        self.wait_until(
            lambda: all(
                set(partition.isr) == set(partition.replicas)
                for name, found in self._active.image.topics_by_name.items()
                if topic in (None, name)
                for partition in found.partitions.values()
            ),
            timeout=timeout,
        )

    def wait_until(self, condition: Callable[[], bool], *, timeout: float = LONGEST_WAIT_S) -> None:
        """Waits until the condition, which is called on the cluster's thread, is true.

        :raises TimeoutError: it is not within ``timeout`` seconds
        """
        asyncio.run_coroutine_threadsafe(self._until(condition, timeout), self._loop).result()

    # ------------------------------------------------------------ on the cluster's thread

    def broker(self, node: int) -> Broker:
        """Returns a running broker. It may only be used on the cluster's thread."""
        server = self._brokers[node].server
        assert server is not None, f"broker {node} does not run"
        return server.broker

    def _running(self) -> list[Broker]:
        return [node.server.broker for node in self._brokers.values() if node.server is not None and not node.is_cut]

    def _controlling(self) -> list[Node]:
        """Returns the active controller, if there is one. An isolated one may consider itself active for a while."""
        nodes = [node.server.node for node in self._controllers.values() if node.server is not None and not node.is_cut]
        return [node for node in nodes if node.quorum.is_leader]

    @property
    def _active(self) -> Node:
        found = self._controlling()
        if not found:
            raise NotController
        return found[0]

    def _submit(self, command: Any) -> Any:
        """Returns the result of a controller command once it is committed. :raises KafkaError: it is refused"""

        async def submit() -> Any:
            answered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

            def done(result: Any, error: KafkaError | None) -> None:
                if error is None:
                    answered.set_result(result)
                else:
                    answered.set_exception(error)

            self._active.controller.submit(command, done)
            return await answered

        return self._await(submit())

    async def _until(self, condition: Callable[[], bool], timeout: float = LONGEST_WAIT_S) -> None:
        end = time.monotonic() + timeout
        while not condition():
            if time.monotonic() > end:
                raise TimeoutError(f"it was not so within {timeout} s")
            await asyncio.sleep(LOOK_S)

    def _call(self, function: Callable[[], T]) -> T:
        async def on_loop() -> T:
            return function()

        return self._await(on_loop())

    def _await(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(2 * LONGEST_WAIT_S)


def reserve() -> socket.socket:
    """Returns a socket on a free port of 127.0.0.1 that does not listen: it reserves the port."""
    reserved = socket.socket()
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    reserved.bind(("127.0.0.1", 0))
    return reserved

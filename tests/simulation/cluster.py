"""The nodes of a simulation, by a list of their roles, and a hash over everything that they do.

Knows nothing of clients and faults.
"""

import asyncio
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from random import Random

from barnabas.broker import Broker
from barnabas.cluster.features import DIRECTORIES
from barnabas.cluster.formatting import Voter
from barnabas.config.endpoints import Endpoint
from barnabas.uuids import random_uuid, uuid_text
from tests.simulation.loop import SimulatedLoop
from tests.simulation.network import FIRST_PORT, LATENCIES_S, Network, host_of
from tests.simulation.node import DIRECTORY, SimulatedNode

BROKER, CONTROLLER, COMBINED = "broker", "controller", "broker,controller"

FIRST_CONTROLLER = 1000
CONTROLLER_PORT = FIRST_PORT + 1
STATIC_VOTERS = "controller.quorum.voters"

CONFIGS: Mapping[str, str] = {
    "broker.heartbeat.interval.ms": "300",
    "broker.session.timeout.ms": "1500",
    "controller.quorum.election.timeout.ms": "500",
    "controller.quorum.fetch.timeout.ms": "1000",
    "replica.lag.time.max.ms": "2000",
    "replica.socket.timeout.ms": "5000",
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
    "request.timeout.ms": "5000",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "transaction.state.log.num.partitions": "2",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.num.partitions": "2",
    "share.coordinator.state.topic.min.isr": "2",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "2000",
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.session.timeout.ms": "4000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.min.session.timeout.ms": "1000",
    "group.streams.heartbeat.interval.ms": "500",
    "group.streams.min.heartbeat.interval.ms": "500",
    "group.streams.session.timeout.ms": "4000",
    "group.streams.min.session.timeout.ms": "1000",
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.share.heartbeat.interval.ms": "500",
    "group.share.min.heartbeat.interval.ms": "500",
    "group.share.session.timeout.ms": "4000",
    "group.share.min.session.timeout.ms": "1000",
    "group.share.record.lock.duration.ms": "3000",
    "group.share.min.record.lock.duration.ms": "1000",
}
"""The configs of all nodes. Kafka's times are shortened, so that a minute has many failures."""


def controller_endpoint(node_id: int) -> Endpoint:
    """Returns the endpoint at which other controllers reach a controller."""
    return Endpoint("CONTROLLER", host_of(str(node_id)), CONTROLLER_PORT, "PLAINTEXT")


def controller_address(node_id: int) -> str:
    """Returns the host and port of a controller."""
    return f"{host_of(str(node_id))}:{CONTROLLER_PORT}"


def bootstrap_servers(controllers: Iterable[int]) -> dict[str, str]:
    """Returns the config by which nodes find a dynamic quorum."""
    return {"controller.quorum.bootstrap.servers": ",".join(map(controller_address, controllers))}


def rack_of(node_id: int) -> str:
    """Returns the rack of a broker, which has it for itself."""
    return f"rack-{node_id}"


class SimulatedCluster:
    """Nodes with the ids from 1 on; those that are only controllers from 1000 on.

    :param roles: the roles of the nodes, such as ``[CONTROLLER, BROKER, BROKER, BROKER]``
    :param is_dynamic: whether the voters of the quorum are in its log, and can change (KIP-853)
    :param levels: the levels of features that differ from the defaults
    :param directories: the log directories of the brokers
    """

    def __init__(
        self,
        loop: SimulatedLoop,
        random: Random,
        roles: Sequence[str],
        *,
        is_dynamic: bool = False,
        configs: Mapping[str, str] | None = None,
        levels: Mapping[str, int] | None = None,
        directories: Sequence[str] = (DIRECTORY,),
        latency_s: tuple[float, float] = LATENCIES_S[0],
        trace: Callable[[str], object] | None = None,
    ) -> None:
        self.loop = loop
        self.network = loop.network = Network(loop, Random(random.getrandbits(64)), latency_s, trace)
        self.levels = levels or {}
        self.directories = directories
        self.nodes: dict[int, SimulatedNode] = {}
        self.voteless: set[int] = set()  #: voters that were removed, whose directory ids no request names
        ids: list[int] = []
        for role in roles:
            first = FIRST_CONTROLLER if role == CONTROLLER else 1
            ids.append(first + sum((each == CONTROLLER) == (role == CONTROLLER) for each in roles[: len(ids)]))
        controllers = [node_id for node_id, role in zip(ids, roles, strict=True) if role != BROKER]
        static = {STATIC_VOTERS: ",".join(f"{each}@{controller_address(each)}" for each in controllers)}
        self._common = {**CONFIGS, **(bootstrap_servers(controllers) if is_dynamic else static), **(configs or {})}
        for node_id, role in zip(ids, roles, strict=True):
            self._add(node_id, role, random)
        self.cluster_id = uuid_text(random_uuid(random.randbytes))
        self.voters = {  #: those of a dynamic quorum, as it begins or as it was made dynamic
            node_id: Voter(node_id, random_uuid(random.randbytes), [controller_endpoint(node_id)])
            for node_id in (controllers if is_dynamic else ())
        }
        for node in self.nodes.values():
            node.format(self.cluster_id, list(self.voters.values()) if node.role != BROKER else [], self.levels)

    def _add(self, node_id: int, role: str, random: Random) -> SimulatedNode:
        host = host_of(str(node_id))
        listeners = [f"PLAINTEXT://{host}:{FIRST_PORT}"] * (role != CONTROLLER)
        listeners += [f"CONTROLLER://{host}:{CONTROLLER_PORT}"] * (role != BROKER)
        properties = {**self._common, "process.roles": role, "listeners": ",".join(listeners)}
        if role != CONTROLLER:
            properties["broker.rack"] = rack_of(node_id)
        directories = (DIRECTORY,) if role == CONTROLLER else self.directories
        node = self.nodes[node_id] = SimulatedNode(
            node_id, properties, self.network, Random(random.getrandbits(64)), directories
        )
        return node

    def add_broker(self, random: Random) -> SimulatedNode:
        """Adds a broker that is not part of the cluster yet."""
        node = self._add(max(self.broker_ids) + 1, BROKER, random)
        node.is_gone = True
        return node

    def renew(self, node: SimulatedNode) -> None:
        """Makes a broker part of the cluster, with an empty disk."""
        node.put_in_empty()
        node.format(self.cluster_id, [], self.levels)
        node.is_gone = False

    def renew_controller(self, node: SimulatedNode) -> None:
        """Gives a controller that is no voter an empty disk, with another directory id."""
        node.put_in_empty()
        node.format(self.cluster_id, [], self.levels, joins=True)
        self.voters[node.id] = self.voters[node.id]._replace(directory_id=node.directory_id)

    def replace_disks(self, node: SimulatedNode, directories: Sequence[str]) -> None:
        """Gives a node with a broker empty disks for some of its log directories."""
        for directory in directories:
            node.empty(directory)
        node.format(self.cluster_id, [], self.levels, joins=node.role == COMBINED)
        if node.id in self.voters:
            self.voters[node.id] = self.voters[node.id]._replace(directory_id=node.directory_id)

    def make_dynamic(self) -> None:
        """Has all nodes find a quorum that has become dynamic by bootstrap servers, from their next starts on."""
        controllers = [node for node in self.nodes.values() if node.role != BROKER]
        for properties in (self._common, *(node.properties for node in self.nodes.values())):
            del properties[STATIC_VOTERS]
            properties |= bootstrap_servers(node.id for node in controllers)
        self.voters = {
            node.id: Voter(node.id, node.directory_id, [controller_endpoint(node.id)]) for node in controllers
        }

    @property
    def broker_ids(self) -> list[int]:
        return [node_id for node_id, node in self.nodes.items() if node_id < FIRST_CONTROLLER and not node.is_gone]

    async def start(self) -> None:
        """Starts all nodes, and returns when they are up."""
        await asyncio.gather(*(node.start() for node in self.nodes.values()))

    def brokers(self) -> dict[int, Broker]:
        """Returns the brokers that are up."""
        up = ((node_id, node.server) for node_id, node in self.nodes.items() if node.server is not None)
        return {node_id: server.node for node_id, server in up if isinstance(server.node, Broker)}

    def misplaced(self) -> Iterator[str]:
        """Yields the brokers and replicas whose directory is not in the broker's metadata as it is (KIP-858)."""
        for broker_id, broker in self.brokers().items():
            image = broker.image
            own = sorted(each.directory_id for each in broker.log_manager.directories)
            if image.metadata_version < DIRECTORIES:
                continue
            registration = image.brokers.get(broker_id)
            if registration is None or sorted(registration.log_dirs) != own:
                yield f"broker {broker_id}"
            for topic in image.topics_by_id.values():
                for index, partition in topic.partitions.items():
                    found = dict(zip(partition.replicas, partition.directories, strict=True)).get(broker_id)
                    hosted = broker.partitions.get((topic.name, index))
                    if found is not None and (hosted is None or found != hosted.log.log_directory.directory_id):
                        yield f"{topic.name}-{index} on broker {broker_id}"

    def close(self) -> None:
        """Ends all processes."""
        for node in self.nodes.values():
            node.kill(power_cut=False)

    def digest(self) -> str:
        """Returns the hash over all messages and writes."""
        whole = hashlib.blake2b(self.network.hash.digest(), digest_size=16)
        for node in self.nodes.values():
            whole.update(node.written.digest())
        return whole.hexdigest()

"""The directory of a cluster: for each node its properties, its data and its application log.

Knows nothing of processes. All nodes are brokers; of three and more, the first three are controllers as well, of fewer
the first one.
"""

import errno
import os
import socket
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from random import SystemRandom
from typing import NamedTuple

from barnabas.clock import SystemClock
from barnabas.cluster.formatting import Node, format_directories
from barnabas.config import BrokerConfig
from barnabas.config.sources import parse_properties
from barnabas.log import meta_properties
from barnabas.log.files import DiskFiles
from barnabas.uuids import random_uuid, uuid_text

HOST = "127.0.0.1"
PORTS = range(15_000, 32_000)
"""The ports of nodes. Systems give higher ones to connections of clients (Linux from 32768 on, others from 49152 on),
which could take a port before its node starts.
"""
MOST_COPIES = 3
MOST_IN_SYNC = 2
CONTROLLERS = 3
"""A quorum of three survives the loss of one; a quorum of two would survive none."""

FAILOVER = {
    "broker.heartbeat.interval.ms": "100",
    "broker.session.timeout.ms": "600",
    "controller.quorum.election.timeout.ms": "200",
    "controller.quorum.fetch.timeout.ms": "400",
    "replica.fetch.wait.max.ms": "100",
}
"""Time-outs for nodes between which there is no network: leaders of a killed node are replaced within a second.

A follower begins to follow another partition with its next fetch, once the one in flight is answered: with 500 ms, as
by default, a new leader waits that long for its followers.
"""

#: Configs whose default replication factor is lowered in a cluster with fewer nodes.
_COPIES = (
    "default.replication.factor",
    "offsets.topic.replication.factor",
    "transaction.state.log.replication.factor",
    "share.coordinator.state.topic.replication.factor",
)
_IN_SYNC = ("transaction.state.log.min.isr", "share.coordinator.state.topic.min.isr")


class NodeFiles(NamedTuple):
    """The paths of one node's files."""

    node_id: int
    home: Path

    @property
    def properties(self) -> Path:
        return self.home / "server.properties"

    @property
    def data(self) -> Path:
        return self.home / "data"

    @property
    def log(self) -> Path:
        return self.home / "node.log"

    @property
    def ready(self) -> Path:
        """The file that the node writes once it answers (:mod:`barnabas.cli.ready_files`)."""
        return self.home / "ready.json"

    def settings(self) -> BrokerConfig:
        """Returns the settings in the properties file.

        :raises ConfigError: a value is invalid
        :raises OSError: the file cannot be read
        """
        return BrokerConfig.from_properties(parse_properties(self.properties.read_text("utf-8")))

    @property
    def address(self) -> str:
        """The address for clients."""
        endpoint = self.settings().advertised_listeners[0]
        return f"{endpoint.host}:{endpoint.port}"


def lay_out(directory: Path, nodes: int, overrides: Mapping[str, str], first_port: int) -> list[NodeFiles]:
    """Writes the files of all nodes that have none, and formats their data directories; returns the nodes.

    Existing files are not changed: a cluster that is started again keeps its addresses and its data.

    :param first_port: of node 1, the others follow; 0 takes free ports
    :raises ConfigError: a property is invalid
    :raises FormatError: a directory belongs to another cluster
    :raises OSError: the directory cannot be written to
    """
    found = [NodeFiles(node_id, directory / f"node-{node_id}") for node_id in range(1, nodes + 1)]
    controllers = _controllers(found)
    voters = ",".join(f"{node_id}@{address}" for node_id, address in controllers.items())
    taken = {int(address.rpartition(":")[2]) for address in controllers.values()}
    for node, port in zip(found, _free_ports(nodes, taken), strict=True):
        if not node.properties.exists():
            node.home.mkdir(parents=True, exist_ok=True)
            listeners = [f"PLAINTEXT://{HOST}:{first_port + node.node_id - 1 if first_port else port}"]
            if node.node_id in controllers:
                listeners.append(f"CONTROLLER://{controllers[node.node_id]}")
            properties = {
                "process.roles": "broker,controller" if node.node_id in controllers else "broker",
                "node.id": str(node.node_id),
                "listeners": ",".join(listeners),
                "controller.listener.names": "CONTROLLER",
                "controller.quorum.voters": voters,
                "log.dirs": str(node.data),
                **FAILOVER,
                **dict.fromkeys(_COPIES, str(min(nodes, MOST_COPIES))),
                **dict.fromkeys(_IN_SYNC, str(min(nodes, MOST_IN_SYNC))),
                **overrides,
            }
            text = "".join(f"{name}={_escaped(value)}\n" for name, value in properties.items())
            node.properties.write_text(text, "utf-8")
    cluster_id = _cluster_id(found[0])
    for node in found:
        _format(node, cluster_id)
    return found


def _controllers(nodes: list[NodeFiles]) -> dict[int, str]:
    """Returns the addresses of the controllers by their node ids: those that the cluster has, or new ones."""
    if nodes[0].properties.exists():
        pairs = (voter.split("@") for voter in nodes[0].settings()["controller.quorum.voters"])
        return {int(node_id): address for node_id, address in pairs}
    number = CONTROLLERS if len(nodes) >= CONTROLLERS else 1
    return {node.node_id: f"{HOST}:{port}" for node, port in zip(nodes, _free_ports(number), strict=False)}


def _cluster_id(node: NodeFiles) -> str:
    found = meta_properties.read(DiskFiles(), str(node.data)) if node.data.is_dir() else None
    return uuid_text(random_uuid()) if found is None else found.cluster_id


def _format(node: NodeFiles, cluster_id: str) -> None:
    settings = node.settings()
    format_directories(
        DiskFiles(),
        Node(
            cluster_id=cluster_id,
            node_id=node.node_id,
            directories=settings.directories,
            metadata_directory=settings.metadata_log_dir,
            has_static_voters=True,
        ),
        {},
        [],
        ignore_formatted=True,
        now_ms=SystemClock().time_ms(),
        random_bytes=os.urandom,
    )


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\")


def _free_ports(number: int, but: Collection[int] = ()) -> list[int]:
    """Returns different ports of :data:`PORTS` on which nobody listens, without those in ``but``.

    :raises OSError: there are not enough
    """
    found: list[int] = []
    for port in SystemRandom().sample(PORTS, len(PORTS)):
        with socket.socket() as probe, suppress(OSError):
            probe.bind((HOST, port))
            if port not in but:
                found.append(port)
        if len(found) == number:
            return found
    raise OSError(errno.EADDRINUSE, f"no {number} ports of {HOST} between {PORTS[0]} and {PORTS[-1]} are free")

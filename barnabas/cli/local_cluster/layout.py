"""The directory of a cluster: for each node its properties, its data and what it writes to its log.

Knows nothing of processes. Node 1 is the controller, and a broker; the others are brokers.
"""

import os
import socket
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from barnabas.clock import SystemClock
from barnabas.cluster.formatting import Node, format_directories
from barnabas.config import BrokerConfig
from barnabas.config.sources import parse_properties
from barnabas.log import meta_properties
from barnabas.log.files import DiskFiles
from barnabas.uuids import random_uuid, uuid_text

HOST = "127.0.0.1"
MOST_COPIES = 3
MOST_IN_SYNC = 2

#: By how many copies these fall back to fewer than Kafka's default, in a cluster that has not as many nodes.
_COPIES = (
    "default.replication.factor",
    "offsets.topic.replication.factor",
    "transaction.state.log.replication.factor",
    "share.coordinator.state.topic.replication.factor",
)
_IN_SYNC = ("transaction.state.log.min.isr", "share.coordinator.state.topic.min.isr")


class NodeFiles(NamedTuple):
    """Where one node's files are."""

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

    def settings(self) -> BrokerConfig:
        """Returns what the properties say.

        :raises ConfigError: a value is invalid
        :raises OSError: the file cannot be read
        """
        return BrokerConfig.from_properties(parse_properties(self.properties.read_text("utf-8")))

    @property
    def address(self) -> str:
        """Where clients connect."""
        endpoint = self.settings().advertised_listeners[0]
        return f"{endpoint.host}:{endpoint.port}"


def lay_out(directory: Path, nodes: int, overrides: Mapping[str, str], first_port: int) -> list[NodeFiles]:
    """Writes the files of all nodes that have none, and formats their data directories; returns the nodes.

    What is there stays as it is: a cluster is started again with the addresses and the data that it had.

    :param first_port: of node 1, the others follow; 0 takes free ports
    :raises ConfigError: a property is invalid
    :raises FormatError: a directory belongs to another cluster
    :raises OSError: the directory cannot be written to
    """
    found = [NodeFiles(node_id, directory / f"node-{node_id}") for node_id in range(1, nodes + 1)]
    controller = found[0]
    ports = _free_ports(nodes + 1)
    for node, port in zip(found, ports, strict=False):
        if not node.properties.exists():
            node.home.mkdir(parents=True, exist_ok=True)
            is_controller = node is controller
            listeners = [f"PLAINTEXT://{HOST}:{first_port + node.node_id - 1 if first_port else port}"]
            if is_controller:
                listeners.append(f"CONTROLLER://{HOST}:{ports[-1]}")
                voter = f"{node.node_id}@{HOST}:{ports[-1]}"
            else:
                (voter,) = controller.settings()["controller.quorum.voters"]
            properties = {
                "process.roles": "broker,controller" if is_controller else "broker",
                "node.id": str(node.node_id),
                "listeners": ",".join(listeners),
                "controller.listener.names": "CONTROLLER",
                "controller.quorum.voters": voter,
                "log.dirs": str(node.data),
                **dict.fromkeys(_COPIES, str(min(nodes, MOST_COPIES))),
                **dict.fromkeys(_IN_SYNC, str(min(nodes, MOST_IN_SYNC))),
                **overrides,
            }
            text = "".join(f"{name}={_escaped(value)}\n" for name, value in properties.items())
            node.properties.write_text(text, "utf-8")
    cluster_id = _cluster_id(controller)
    for node in found:
        _format(node, cluster_id)
    return found


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
            directories=settings.log_dirs,
            metadata_directory=settings["metadata.log.dir"] or settings.log_dirs[0],
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


def _free_ports(number: int) -> list[int]:
    """Returns ports that nobody listens on, each another."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(number)]
        for each in sockets:
            each.bind((HOST, 0))
        return [each.getsockname()[1] for each in sockets]

"""The ready file (``barnabas serve --ready-file``, ``barnabas cluster --ready-file``): tells the program that has
started a broker or a cluster its addresses and process ids.

Knows nothing of who reads it. The file is created atomically once the broker answers requests.
"""

import contextlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from barnabas import __version__
from barnabas.server.server import Server


def remove(path: str) -> None:
    """Removes the file of a previous run."""
    with contextlib.suppress(FileNotFoundError):
        Path(path).unlink()


def write(path: str, server: Server, bootstrap_servers: str | None) -> None:
    """Writes the file. :raises OSError: it cannot be written"""
    listeners = (*server.listeners, *server.controller_listeners)
    http = {service.name: service.url for service in server.http_services}
    found = {
        "bootstrap_servers": bootstrap_servers,
        "admin": http.get("admin"),
        "pid": os.getpid(),
        "listeners": {each.endpoint.name: str(each.endpoint) for each in listeners},
        "http": http,
        "node_id": server.config.node_id,
        "cluster_id": server.node.cluster_id,
        "version": __version__,
    }
    _write(path, found)


def write_cluster(path: str, nodes: Iterable[Path]) -> None:
    """Writes the file of a cluster. :raises OSError: it cannot be written, or that of a node cannot be read

    :param nodes: the files of its nodes
    """
    found = [json.loads(node.read_text("utf-8")) for node in nodes]
    servers = [node["bootstrap_servers"] for node in found if node["bootstrap_servers"] is not None]
    _write(path, {"bootstrap_servers": ",".join(servers), "pid": os.getpid(), "nodes": found})


def _write(path: str, found: Any) -> None:
    temporary = Path(f"{path}.{os.getpid()}.tmp")
    temporary.write_text(json.dumps(found, indent=2) + "\n", "utf-8")
    temporary.replace(path)

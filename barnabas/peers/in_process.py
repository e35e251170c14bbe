"""Nodes in this process: a request is a call, and its response a callback.

Knows nothing of handlers: each node provides the function that handles its requests.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from barnabas.errors import KafkaError, NetworkException
from barnabas.peers.peers import ApiVersions, Done
from barnabas.wire.message import Request, Response


class Node(NamedTuple):
    """What a node provides."""

    answer: Callable[[Request, int, Done], object]
    """Handles a request of that version."""
    newest_version: Callable[[Request], int]
    """The newest version of such a request that the node supports."""


class InProcessPeers:
    """The nodes that have joined. A request is handled at once, unless its handler waits.

    :param encodes: whether requests and responses are encoded and decoded, so that no two nodes share an object
    """

    def __init__(self, *, encodes: bool = False) -> None:
        self._encodes = encodes
        self._nodes: dict[int, Node] = {}

    def join(self, node_id: int, node: Node) -> None:
        """Adds the node: requests can reach it from now on."""
        self._nodes[node_id] = node

    def leave(self, node_id: int) -> None:
        """Removes the node: requests cannot reach it any more."""
        self._nodes.pop(node_id, None)

    def send(
        self, node_id: int, request: Request, done: Done, *, lane: str = "", timeout_ms: int | None = None
    ) -> None:
        """Passes the request to the node. Lanes and time-outs are not needed, since nothing is queued, and handlers
        have time-outs.
        """
        node = self._nodes.get(node_id)
        if node is None:
            done(None, NetworkException())
            return
        version = node.newest_version(request)
        if self._encodes:
            request = type(request).decode(request.encode(version=version), version=version)
            done = partial(_decoded, done, version)
        node.answer(request, version, done)

    def versions_of(self, node_id: int) -> ApiVersions | None:
        """Returns None: all nodes in a process have the same versions."""
        return None


def _decoded(done: Done, version: int, response: Response | None, error: KafkaError | None) -> None:
    if response is not None:
        response = type(response).decode(response.encode(version=version), version=version)
    done(response, error)

"""Nodes in this process: a request is a call, and its response a callback.

Knows nothing of handlers: each node brings the function that answers its requests.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from barnabas.errors import KafkaError, NetworkException
from barnabas.peers.peers import ApiVersions, Done
from barnabas.wire.message import Request, Response


class Node(NamedTuple):
    """What a node brings."""

    answer: Callable[[Request, int, Done], object]
    """Answers a request of that version."""
    newest_version: Callable[[Request], int]
    """The newest version in which the node answers such a request."""


class InProcessPeers:
    """The nodes that have joined. A request waits for no turn of the event loop unless its handler does.

    :param encodes: whether requests and responses go through their bytes, so that no two nodes share an object
    """

    def __init__(self, *, encodes: bool = False) -> None:
        self._encodes = encodes
        self._nodes: dict[int, Node] = {}

    def join(self, node_id: int, node: Node) -> None:
        """Lets requests reach the node."""
        self._nodes[node_id] = node

    def leave(self, node_id: int) -> None:
        """Lets no request reach the node any more."""
        self._nodes.pop(node_id, None)

    def send(
        self, node_id: int, request: Request, done: Done, *, lane: str = "", timeout_ms: int | None = None
    ) -> None:
        """Has the node answer. There are no lanes, since nothing waits, and the handlers' own time-outs suffice."""
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
        """Returns None: all nodes in a process are of one build."""
        return None


def _decoded(done: Done, version: int, response: Response | None, error: KafkaError | None) -> None:
    if response is not None:
        response = type(response).decode(response.encode(version=version), version=version)
    done(response, error)

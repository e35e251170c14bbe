"""The interface for requests to other nodes, over the network or in the same process.

Knows nothing of sockets, nor of any request.
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from barnabas.errors import NONE, KafkaError, NetworkException, UnknownServerError
from barnabas.wire.message import Request

Done = Callable[[Any, KafkaError | None], object]
"""Called once with the response and None; or with None and an error, if there is no response.

The errors: NETWORK_EXCEPTION (the node cannot be reached, or has closed the connection; :class:`ConnectionRefused` if
nothing listens there), REQUEST_TIMED_OUT (it has not responded within ``request.timeout.ms``), UNSUPPORTED_VERSION (it
does not support the request). After the first two the node may have handled the request.
"""


class ConnectionRefused(NetworkException):
    """Nothing listens at the node's port: its process has ended, or has not started yet."""


ApiVersions = Mapping[int, tuple[int, int]]
"""The first and the last version of each API that a node supports, by API key."""


class Peers(Protocol):
    """The nodes of a cluster, including this one."""

    def send(
        self, node_id: int, request: Request, done: Done, *, lane: str = "", timeout_ms: int | None = None
    ) -> None:
        """Sends the request in the newest version that both nodes support. ``done`` is called at once, or later.

        :param lane: the requests to a node in one lane share a connection, and are handled one after the other;
            requests that may wait for long at the node, as a fetch does, have a lane of their own
        :param timeout_ms: how long to wait for the response; by default ``request.timeout.ms``
        """

    def versions_of(self, node_id: int) -> ApiVersions | None:
        """Returns the versions of the node's ApiVersions response; None before it, and for nodes in this process."""


def error_of(code: int, message: str | None = None) -> KafkaError | None:
    """Returns the error with that code and text; None for 0, UnknownServerError for an unknown code."""
    if code == NONE:
        return None
    kind = KafkaError.by_code.get(code, UnknownServerError)
    return kind(message) if message else kind()

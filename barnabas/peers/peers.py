"""What sends a request to another node, whichever way it goes.

Knows nothing of sockets, nor of any request.
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from barnabas.errors import NONE, KafkaError, NetworkException, UnknownServerError
from barnabas.wire.message import Request

Done = Callable[[Any, KafkaError | None], object]
"""Called once with the response and None; or with None and an error, if there is no response.

The errors: NETWORK_EXCEPTION (the node cannot be reached, or has closed the connection; :class:`ConnectionRefused` if
nobody listens there), REQUEST_TIMED_OUT (it has not answered within ``request.timeout.ms``), UNSUPPORTED_VERSION (it
does not answer such a request). After the first two the node may have done what the request asks for.
"""


class ConnectionRefused(NetworkException):
    """A node's machine answers that nobody listens at its port: its process has ended, or has not started yet."""


ApiVersions = Mapping[int, tuple[int, int]]
"""The first and the last version of each API that a node answers, by API key."""


class Peers(Protocol):
    """The nodes of a cluster, this one among them."""

    def send(
        self, node_id: int, request: Request, done: Done, *, lane: str = "", timeout_ms: int | None = None
    ) -> None:
        """Sends the request, in the newest version that both nodes know; ``done`` is called at once, or later.

        :param lane: the requests to a node in one lane go over one connection, and are answered one after the other;
            what may wait for long on the other side, as a fetch does, has a lane of its own
        :param timeout_ms: how long to wait for the answer; by default ``request.timeout.ms``
        """

    def versions_of(self, node_id: int) -> ApiVersions | None:
        """Returns the versions of the node's ApiVersions response; None before it, and for nodes in this process."""


def error_of(code: int, message: str | None = None) -> KafkaError | None:
    """Returns the error with that code and text, None for 0; UnknownServerError where there is no such error."""
    if code == NONE:
        return None
    kind = KafkaError.by_code.get(code, UnknownServerError)
    return kind(message) if message else kind()

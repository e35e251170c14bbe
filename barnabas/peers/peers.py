"""What sends a request to another node, whichever way it goes.

Knows nothing of sockets, nor of any request.
"""

from collections.abc import Callable
from typing import Any, Protocol

from barnabas.errors import NONE, KafkaError, UnknownServerError
from barnabas.wire.message import Request

Done = Callable[[Any, type[KafkaError] | None], object]
"""Called once with the response and None; or with None and an error, if there is no response.

The errors: NETWORK_EXCEPTION (the node cannot be reached, or has closed the connection), REQUEST_TIMED_OUT (it has not
answered within ``request.timeout.ms``), UNSUPPORTED_VERSION (it does not answer such a request). After the first two
the node may have done what the request asks for.
"""


class Peers(Protocol):
    """The nodes of a cluster, this one among them."""

    def send(self, node_id: int, request: Request, done: Done) -> None:
        """Sends the request, in the newest version that both nodes know; ``done`` is called at once, or later."""


def error_of(code: int) -> type[KafkaError] | None:
    """Returns the error with that code, None for 0; UnknownServerError where there is no such error."""
    return None if code == NONE else KafkaError.by_code.get(code, UnknownServerError)
